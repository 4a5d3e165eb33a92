// With a demo graph, whoever looks may be any of its users: a menu beside the tabs. The one who is chosen is kept for this
// browser tab, so that another tab can be somebody else.
import { useEffect, useState } from 'react';

const { endpoint, demo } = document.getElementById('graphiql').dataset;
const count = Number(demo); // ids from 1; none without --demo
const key = 'kith-demo-user';

const kept = Number(sessionStorage.getItem(key) ?? 1); // 0 is nobody
let user = kept <= count ? kept : 1;
let session = null;

/** The header of whoever is chosen. */
export async function identity() {
  if (count === 0 || user === 0) return {};
  if (session?.user !== user || Date.parse(session.expiresAt) < Date.now() + 60_000) {
    const chosen = user;
    const answer = await fetch(`/demo/token?user=${chosen}`, { method: 'POST' });
    if (!answer.ok) throw new Error(await answer.text());
    session = { user: chosen, ...(await answer.json()) };
  }
  return { Authorization: `Bearer ${session.token}` };
}

/** Some of the users by name, and one by id. */
function Menu() {
  const [chosen, choose] = useState(user);
  const [people, setPeople] = useState([]);
  useEffect(() => {
    const ids = Array.from({ length: Math.min(12, count) }, (_, i) => i + 1);
    if (chosen > ids.length) ids.push(chosen);
    namesOf(ids).then(setPeople, () => setPeople(ids.map(id => ({ id: String(id), name: `User ${id}` }))));
  }, [chosen]);
  const become = value => {
    user = value === 'random' ? 1 + Math.floor(Math.random() * count) : Number(value);
    sessionStorage.setItem(key, user);
    choose(user);
  };
  return (
    <label className="kith-user">
      as user{' '}
      <select value={chosen} onChange={event => become(event.target.value)}>
        {people.map(({ id, name }) => (
          <option key={id} value={id}>
            {name} ({id})
          </option>
        ))}
        <option value="random">somebody else</option>
        <option value="0">nobody</option>
      </select>
    </label>
  );
}

export const DemoUsers = count > 0 ? Menu : () => null;

async function namesOf(ids) {
  const answer = await fetch(endpoint, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query: 'query Names($ids: [ID!]!) { users(by: {ids: $ids}) { id name } }', variables: { ids } }),
  });
  const { data } = await answer.json();
  return data.users.filter(Boolean);
}
