// Suggestions of whom to follow, with the reasons; and the first page after registering, which follows many at once.
import { useEffect, useState, type ReactNode } from 'react';
import { useMutation, useQuery } from 'urql';
import { DismissSuggestionDocument, FollowManyDocument, SuggestionsDocument, UndismissSuggestionDocument, type SuggestionsQuery } from './gql';
import { Endless, Face, Faces, FollowButton, Row, tellFollowed } from './people';
import { Link, navigate } from './router';
import { Count, Empty, Failure, Icon, PageTitle, Skeleton, present, report, sentence, tell } from './ui';

type Edges = NonNullable<NonNullable<SuggestionsQuery['viewer']>['user']['followSuggestions']>['edges'];
type Suggestion = NonNullable<NonNullable<Edges>[number]>;

/** The one reason why somebody is suggested. */
function Reason({ of }: { of: Suggestion }): ReactNode {
  switch (of.reason) {
    case 'PINNED':
      return 'A good place to start';
    case 'POPULAR':
      return 'Followed by many people';
  }
  const via = present(of.via);
  const others = of.sharedCount - via.length;
  const first = via[0];
  if (of.reason === 'FOLLOWS_YOU') return 'Follows you';
  if (!first) return of.reason === 'SHARED_AUDIENCE' ? 'Followed by people who follow the same accounts as you' : null;
  return (
    <Faces of={via}>
      Followed by {via.length === 1 || of.sharedCount > 2 ? first.name : via.map(one => one.name).join(' and ')}
      {of.sharedCount > 2 && ` and ${via.length - 1 + others} more you follow`}
    </Faces>
  );
}

function SuggestionRow({ of }: { of: Suggestion }) {
  const [, send] = useMutation(DismissSuggestionDocument);
  const [, undo] = useMutation(UndismissSuggestionDocument);
  const person = of.node!;
  const dismiss = async () => {
    const { error } = await send({ userId: person.id });
    if (error) return tell(sentence(error), 'bad');
    tell(`${person.name} won’t be suggested to you for now.`, 'good', () => report(undo({ userId: person.id })));
  };
  return (
    <Row
      person={person}
      reason={
        <>
          <Reason of={of} />
          <span>
            <Count of={person.followerCount} /> {person.followerCount === 1 ? 'follower' : 'followers'}
          </span>
        </>
      }
      actions={
        <>
          <FollowButton person={person} />
          <button type="button" className="button plain" aria-label={`Do not suggest ${person.name}`} onClick={dismiss}>
            <Icon name="close" />
          </button>
        </>
      }
    />
  );
}

export function Suggestions() {
  return (
    <>
      <PageTitle title="Discover" />
      <p className="quiet">People you may know or like, best matches first.</p>
      <Endless
        document={SuggestionsDocument}
        variables={{ first: 20 }}
        pick={data => {
          const page = data.viewer?.user.followSuggestions;
          return page ? { items: present(page.edges).filter(edge => edge.node), pageInfo: page.pageInfo } : null;
        }}
        id={edge => edge.node!.id}
        row={edge => <SuggestionRow of={edge} />}
        label="suggestions"
        empty={<Empty icon="people" title="No suggestions right now.">People you follow or have dismissed are left out.</Empty>}
      />
    </>
  );
}

const besideFeed = 5;

/** The best few, beside the feed. */
export function SuggestionsBeside() {
  const [{ data, fetching, error }, ask] = useQuery({ query: SuggestionsDocument, variables: { first: besideFeed + 3 } });
  const page = data?.viewer?.user.followSuggestions;
  const edges = present(page?.edges).filter(edge => edge.node);
  // Whoever is dismissed makes room for others.
  const few = !!page?.pageInfo.hasNextPage && edges.length < besideFeed;
  useEffect(() => {
    if (few) ask({ requestPolicy: 'cache-and-network' });
  }, [few, edges.length]);
  if (error && !data) return null;
  return (
    <aside className="beside card" aria-labelledby="beside-title">
      <header>
        <h2 id="beside-title">Who to follow</h2>
        <Link to="/suggestions">See all</Link>
      </header>
      <div className="cards">
        {!data && fetching && <Skeleton rows={besideFeed} />}
        {edges.slice(0, besideFeed).map(edge => (
          <SuggestionRow key={edge.node!.id} of={edge} />
        ))}
      </div>
      {data && edges.length === 0 && <p className="quiet pad">No suggestions right now.</p>}
    </aside>
  );
}

/** The first page of a new user: choose people, and follow all of them with one request. */
export function Start() {
  const [{ data, error, fetching }, ask] = useQuery({ query: SuggestionsDocument, variables: { first: 40 } });
  const [, followMany] = useMutation(FollowManyDocument);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [busy, setBusy] = useState(false);
  const people = present(data?.viewer?.user.followSuggestions?.edges).flatMap(edge => edge.node ?? []);
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const follow = async () => {
    setBusy(true);
    const { data: done, error: failed } = await followMany({ userIds: [...chosen] });
    setBusy(false);
    if (failed) return tell(sentence(failed), 'bad');
    tellFollowed(done?.followMany?.outcomes ?? []);
    navigate('/');
  };
  if (error && !data) return <Failure text={sentence(error)} retry={() => ask({ requestPolicy: 'network-only' })} />;
  return (
    <>
      <PageTitle title="Who do you know?" />
      <p className="quiet">Choose people to follow. You can unfollow them at any time.</p>
      {!data && fetching && <Skeleton />}
      <ul className="choices">
        {people.map(one => (
          <li key={one.id}>
            <label>
              <input type="checkbox" checked={chosen.has(one.id)} onChange={() => toggle(one.id)} />
              <Face of={one} size={40} />
              <span>
                <b>{one.name}</b>
                <small className="quiet">{one.bio ?? `@${one.handle}`}</small>
              </span>
            </label>
          </li>
        ))}
      </ul>
      {data && people.length === 0 && <Empty icon="people" title="No suggestions yet." />}
      <div className="bar">
        <button type="button" className="button primary" disabled={busy || chosen.size === 0} onClick={follow}>
          {chosen.size === 1 ? 'Follow one person' : `Follow ${chosen.size} people`}
        </button>
        <button type="button" className="button" onClick={() => setChosen(new Set(people.map(one => one.id)))}>
          Choose all
        </button>
        <Link to="/" className="button">
          Not now
        </Link>
      </div>
    </>
  );
}
