// The viewer's own profile, and who sees which part of it.
import { useRef, useState, type FormEvent } from 'react';
import { useMutation, useQuery } from 'urql';
import { Bring } from './bring';
import { SignOutEverywhereDocument, UpdateProfileDocument, ViewerDocument, type Visibility } from './gql';
import { Face } from './people';
import { Link, navigate } from './router';
import { signOut } from './session';
import { Failure, PageTitle, Select, Skeleton, atMost, report, sentence } from './ui';

const audiences: [Visibility, string][] = [
  ['EVERYONE', 'Everyone'],
  ['FOLLOWERS', 'My followers'],
  ['NOBODY', 'Only me'],
];

/** The fields of a form that somebody has changed since they were shown, or saved. What another tab has saved meanwhile stays. */
function useChanges() {
  const last = useRef<FormData>(undefined);
  const [ref] = useState(() => (form: HTMLFormElement | null) => void (last.current = form ? new FormData(form) : undefined));
  const save = (form: HTMLFormElement, send: (changed: (name: string) => string | undefined) => ReturnType<typeof report>) => {
    const before = last.current!;
    const now = (last.current = new FormData(form));
    const changed = (name: string) => (now.get(name) === before.get(name) ? undefined : String(now.get(name) ?? ''));
    void send(changed).then(saved => saved || (last.current = before));
  };
  return { ref, save };
}

export function Settings() {
  const [{ data, error }, ask] = useQuery({ query: ViewerDocument });
  const [, update] = useMutation(UpdateProfileDocument);
  const [, end] = useMutation(SignOutEverywhereDocument);
  const [face, setFace] = useState<string>();
  const [profile, sight] = [useChanges(), useChanges()];
  const me = data?.viewer?.user;
  if (!me) return error ? <Failure text={sentence(error)} retry={() => ask({ requestPolicy: 'network-only' })} /> : <Skeleton />;

  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    profile.save(event.currentTarget, changed => report(update({ name: changed('name'), bio: changed('bio'), avatarUrl: face }), 'Saved.'));
  };
  const saveSight = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    sight.save(event.currentTarget, changed => {
      const [followings, followers] = [changed('followings'), changed('followers')] as (Visibility | undefined)[];
      const [discoverable, locked] = [changed('discoverable'), changed('locked')].map(box => (box === undefined ? box : box === 'on'));
      return report(update({ listVisibility: { followings, followers }, discoverable, locked }), 'Saved.');
    });
  };
  const leave = async () => {
    if (!(await report(end({})))) return;
    signOut();
    navigate('/');
  };
  return (
    <>
      <PageTitle title="Settings" />
      <form className="card" ref={profile.ref} onSubmit={save} aria-label="Profile">
        <h2>Profile</h2>
        <div className="two">
          <Face of={{ id: me.id, avatarUrl: face ?? me.avatarUrl }} size={64} />
          <button type="button" className="button" onClick={() => setFace(`/faces/${Math.floor(Math.random() * 1e9)}.svg`)}>
            Another face
          </button>
        </div>
        <label className="field">
          Name
          <input name="name" defaultValue={me.name} {...atMost(100)} required />
        </label>
        <label className="field">
          About you
          <textarea name="bio" defaultValue={me.bio ?? ''} {...atMost(500)} rows={3} />
        </label>
        <button className="button primary">Save profile</button>
      </form>
      <form className="card" ref={sight.ref} onSubmit={saveSight} aria-label="Privacy">
        <h2>Privacy</h2>
        <Select name="followings" text="Who can see who I follow" options={audiences} value={me.listVisibility.followings} />
        <Select name="followers" text="Who can see my followers" options={audiences} value={me.listVisibility.followers} />
        <label className="choice">
          <input type="checkbox" name="discoverable" defaultChecked={data.viewer!.discoverable} /> Suggest me to others
        </label>
        <label className="choice">
          <input type="checkbox" name="locked" defaultChecked={me.locked} /> Approve followers: only people I approve can follow me and see my posts, favorites and lists
        </label>
        <div className="bar">
          <button className="button primary">Save privacy</button>
        </div>
        <div className="bar">
          <Link to="/blocked" className="button">
            Blocked people
          </Link>
          <Link to="/muted" className="button">
            Muted people
          </Link>
          <Link to="/dismissed" className="button">
            Dismissed suggestions
          </Link>
        </div>
      </form>
      <Bring />
      <section className="card">
        <h2>Sessions</h2>
        <p className="quiet">Signs you out on every device, including this one.</p>
        <button type="button" className="button danger" onClick={leave}>
          Sign out everywhere
        </button>
      </section>
    </>
  );
}
