// Somebody's profile: counts, lists, and everything that the viewer can do.
import { useState, type FormEvent, type ReactNode } from 'react';
import { useMutation, useQuery, useSubscription } from 'urql';
import * as gql from './gql';
import { Endless, Face, Faces, FollowButton, PeopleList, nodesOf, pageOf } from './people';
import { ListsDialog, Lists } from './lists';
import { scopes } from './own';
import { PostCard, ReportDialog } from './posts';
import { FollowRequest, FriendRequest } from './requests';
import { Link } from './router';
import { becomeDemoUser, demoUsers, useSession } from './session';
import { Count, Dialog, Empty, Failure, Icon, Menu, PageTitle, Select, Skeleton, atMost, day, present, report, sentence, tell } from './ui';

type Person = NonNullable<gql.ProfileQuery['user']>;

export function Profile({ handle, tab = 'posts' }: { handle: string; tab?: string }) {
  const session = useSession();
  const [{ data, error }, ask] = useQuery({ query: gql.ProfileDocument, variables: { handle }, requestPolicy: 'cache-and-network' });
  const user = data?.user;
  const isOwn = !!user && user.id === session?.userId;
  useSubscription({ query: gql.RelationshipChangesDocument, variables: { userIds: user ? [user.id] : [] }, pause: !session || !user || isOwn });
  if (!data) return error ? <Failure text={sentence(error)} retry={() => ask({ requestPolicy: 'network-only' })} /> : <Skeleton />;
  if (!user) {
    return (
      <>
        <PageTitle title={`@${handle}`} />
        <Empty icon="search" title="There is no account with this handle." />
      </>
    );
  }
  const apart = !!user.viewerRelationship?.blocking || !!user.viewerRelationship?.blockedBy;
  const at = { handle, tab, apart };
  return (
    <>
      <Head user={user} isOwn={isOwn} />
      <nav className="tabs" aria-label={`Lists of ${user.name}`}>
        {(
          [
            ['posts', 'Posts', user.postCount],
            ['following', 'Following', user.followingCount],
            ['followers', 'Followers', user.followerCount],
            ['friends', 'Friends', user.friendCount],
            ['favorites', 'Favorites', user.favoritesGivenCount],
          ] as const
        ).map(([to, name, count]) => (
          <Part key={to} at={at} to={to} data-list={to} data-count={count}>
            <b>{count === null ? '–' : <Count of={count} />}</b> {count === 1 ? name.replace(/s$/, '') : name}
          </Part>
        ))}
        {!apart && <Part at={at} to="similar">Similar</Part>}
        {!apart && <Part at={at} to="lists">Lists</Part>}
      </nav>
      <Tab key={tab} user={user} tab={tab} isOwn={isOwn} />
    </>
  );
}

type PartProps = { at: { handle: string; tab: string; apart: boolean }; to: string; children: ReactNode };

/** Leads to a part of a profile. A block closes all lists: none is offered. */
function Part({ at: { handle, tab, apart }, to, ...rest }: PartProps) {
  return apart ? <span {...rest} /> : <Link {...rest} to={`/u/${handle}${to === 'posts' ? '' : `/${to}`}`} aria-current={tab === to ? 'page' : undefined} />;
}

function Tab({ user, tab, isOwn }: { user: Person; tab: string; isOwn: boolean }) {
  const { handle, name } = user;
  const closed = <Empty icon="people" title={whyClosed(user, tab)} />;
  switch (tab) {
    case 'following':
      return (
        <PeopleList
          document={gql.FollowingsDocument}
          filtered
          variables={{ handle }}
          pick={data => pageOf(data.user?.list)}
          label="following"
          closed={closed}
          empty={<Empty icon="people" title={isOwn ? 'You don’t follow anyone yet.' : `${name} doesn’t follow anyone yet.`}>{isOwn && <Link to="/start">Find people to follow</Link>}</Empty>}
        />
      );
    case 'followers':
      return (
        <PeopleList
          document={gql.FollowersDocument}
          filtered
          variables={{ handle }}
          pick={data => pageOf(data.user?.list)}
          label="followers"
          closed={closed}
          empty={<Empty icon="people" title={isOwn ? 'No one follows you yet.' : `No one follows ${name} yet.`} />}
        />
      );
    case 'friends':
      return (
        <PeopleList
          document={gql.FriendsDocument}
          filtered
          variables={{ handle }}
          pick={data => pageOf(data.user?.list)}
          label="friends"
          closed={closed}
          empty={<Empty icon="people" title="No friends yet.">Friends are people who follow each other.</Empty>}
        />
      );
    case 'known':
      return (
        <PeopleList
          document={gql.KnownDocument}
          variables={{ handle }}
          pick={data => pageOf(data.user?.list)}
          label="followers you know"
          closed={closed}
          empty={<Empty icon="people" title={`No one you follow follows ${name}.`} />}
        />
      );
    case 'similar':
      return (
        <PeopleList
          document={gql.SimilarDocument}
          searchable={false}
          variables={{ handle }}
          pick={data => pageOf(data.user?.list)}
          label="similar people"
          closed={closed}
          empty={<Empty icon="people" title={`No one shares enough followers with ${isOwn ? 'you' : name} yet.`} />}
        />
      );
    case 'lists':
      return <Lists of={user.id} empty={<Empty icon="list" title={isOwn ? 'You don’t have any lists yet.' : `${name} has no public lists.`} />} />;
    case 'posts':
      return (
        <Endless
          document={gql.PostsDocument}
          variables={{ handle }}
          pick={data => nodesOf(data.user?.posts)}
          id={post => post.id}
          row={post => <PostCard post={post} />}
          label="posts"
          closed={closed}
          empty={<Empty icon="home" title={isOwn ? 'You haven’t posted yet.' : `${name} hasn’t posted yet.`} />}
        />
      );
    case 'favorites':
      return (
        <Endless
          document={gql.FavoritesDocument}
          variables={{ handle }}
          pick={data => nodesOf(data.user?.favorites)}
          id={post => post.id}
          keep={isOwn ? post => post.viewerHasFavorited !== false : undefined}
          row={post => <PostCard post={post} />}
          label="favorites"
          closed={closed}
          empty={<Empty icon="heart" title={isOwn ? 'You don’t have any favorites yet.' : `${name} doesn’t have any favorites yet.`} />}
        />
      );
  }
  return <Empty icon="search" title="There is no such page." />;
}

/** Why the viewer does not see what a tab shows. */
function whyClosed({ name, locked, listVisibility, viewerRelationship: standing }: Person, tab: string) {
  if (standing?.blocking) return `You blocked ${name}.`;
  if (standing?.blockedBy) return `${name} blocked you.`;
  if (locked && !standing?.following) return `Only people ${name} has approved can see this.`;
  const of = tab === 'following' ? [listVisibility.followings] : tab === 'friends' ? Object.values(listVisibility) : [listVisibility.followers];
  return of.includes('NOBODY') ? `${name} keeps this list private.` : `Only followers of ${name} can see this list.`;
}

function Head({ user, isOwn }: { user: Person; isOwn: boolean }) {
  const session = useSession();
  const known = user.followersYouKnow;
  const faces = present(known?.nodes).slice(0, 3);
  const joined = new Date(user.createdAt).toLocaleDateString('en', { month: 'long', year: 'numeric' });
  return (
    <section className="head">
      <Face of={user} size={96} />
      <div className="head-text">
        <PageTitle title={user.name} />
        <p className="quiet">
          @{user.handle} · joined {joined}
          {user.locked && <span className="tag">approves followers</span>}
          {user.viewerRelationship?.followedBy && !isOwn && <span className="tag">follows you</span>}
        </p>
        {!isOwn && user.viewerRelationship && <Since of={user.viewerRelationship} />}
        {user.bio && <p>{user.bio}</p>}
        {(user.viewerRelationship?.special || user.viewerRelationship?.remark) && (
          <p className="mark-line">
            <Icon name="mark" /> {user.viewerRelationship.remark || 'Marked'}
          </p>
        )}
        {!isOwn && known && known.totalCount > 0 && (
          <Link to={`/u/${user.handle}/known`} className="known">
            <Faces of={faces}>
              Followed by {known.totalCount}
              {known.complete ? '' : ' or more'} you know
            </Faces>
          </Link>
        )}
      </div>
      {isOwn ? (
        <div className="head-actions">
          <Link to="/settings" className="button">
            Edit profile
          </Link>
          <Link to="/picture" className="button">
            Network
          </Link>
        </div>
      ) : (
        <div className="head-actions">{!session ? <FollowButton person={user} /> : user.viewerRelationship && <Actions user={user} standing={user.viewerRelationship} />}</div>
      )}
    </section>
  );
}

type Standing = gql.StandingFragment;

/** Since when the viewer follows somebody, what it has asked, and what it has muted. */
function Since({ of: { following, followedAt, firstFollowedAt, muted, mutedUntil, sentRequest } }: { of: Standing }) {
  return (
    <>
      {following && followedAt && (
        <p className="quiet">
          Following since {day(followedAt)}
          {firstFollowedAt && day(firstFollowedAt) !== day(followedAt) && `, for the first time on ${day(firstFollowedAt)}`}
        </p>
      )}
      {sentRequest?.state === 'PENDING' && <p className="quiet">You asked to be friends.</p>}
      {muted && <p className="quiet">You muted {muted === 'POSTS' ? 'their posts' : 'this person'}{mutedUntil && ` until ${day(mutedUntil)}`}.</p>}
    </>
  );
}

/** Everything that the viewer can do with somebody. */
function Actions({ user, standing }: { user: Person; standing: Standing }) {
  const session = useSession();
  const [dialog, setDialog] = useState<'' | 'friend' | 'mark' | 'lists' | 'mute' | 'report' | 'block'>('');
  const [, unblock] = useMutation(gql.UnblockDocument);
  const [, tellOf] = useMutation(gql.ReportUserDocument);
  const [{ data }] = useQuery({ query: gql.ViewerDocument, requestPolicy: 'cache-only', pause: !session });
  const close = () => setDialog('');
  const me = data?.viewer?.user.handle;
  const isDemo = Number(user.id) <= demoUsers;
  if (standing.blocking) {
    return (
      <button type="button" className="button" onClick={() => report(unblock({ userId: user.id }), `You unblocked ${user.name}.`)}>
        Unblock
      </button>
    );
  }
  return (
    <>
      <FollowButton person={user} />
      {standing.followRequestedBy && <FollowRequest person={user} />}
      {standing.receivedRequest?.state === 'PENDING' && <FriendRequest person={user} />}
      <Menu label={`More: ${user.name}`}>
        {!standing.blockedBy && (
          <>
            <AskForFriendship user={user} standing={standing} ask={() => setDialog('friend')} />
            {standing.following && (
              <button type="button" onClick={() => setDialog('mark')}>
                {standing.special ? 'Marked' : 'Mark'}
              </button>
            )}
            {me && <Link to={`/common/${me}/${user.handle}`}>In common</Link>}
            <Link to={`/picture/${user.id}`}>Network</Link>
            <button type="button" onClick={() => setDialog('lists')}>
              Add to list…
            </button>
          </>
        )}
        <button type="button" onClick={() => setDialog('mute')}>
          {standing.muted ? 'Muted' : 'Mute'}
        </button>
        {!standing.blockedBy && (
          <button type="button" className="danger" onClick={() => setDialog('report')}>
            Report
          </button>
        )}
        <button type="button" className="danger" onClick={() => setDialog('block')}>
          Block
        </button>
        {isDemo && (
          <button type="button" onClick={() => becomeDemoUser(user.id).catch(problem => tell(String(problem.message), 'bad'))}>
            Be {user.name.split(' ')[0]}
          </button>
        )}
      </Menu>
      {dialog === 'friend' && <AskDialog user={user} close={close} />}
      {dialog === 'mark' && <MarkDialog user={user} standing={standing} close={close} />}
      {dialog === 'lists' && <ListsDialog user={user} close={close} />}
      {dialog === 'mute' && <MuteDialog user={user} standing={standing} close={close} />}
      {dialog === 'report' && <ReportDialog of={user.name} send={reason => tellOf({ userId: user.id, reason })} close={close} />}
      {dialog === 'block' && <BlockDialog user={user} standing={standing} close={close} />}
    </>
  );
}

/** Asks somebody to be friends, or withdraws that. */
function AskForFriendship({ user, standing, ask }: { user: Person; standing: Standing; ask: () => void }) {
  const [, cancel] = useMutation(gql.WithdrawRequestDocument);
  if (standing.status === 'MUTUAL' || standing.receivedRequest?.state === 'PENDING') return null;
  const waits = standing.sentRequest?.state === 'PENDING';
  return (
    <button type="button" onClick={waits ? () => report(cancel({ kind: 'FRIEND', userId: user.id }), 'Request withdrawn.') : ask}>
      {waits ? 'Withdraw request' : 'Ask to be friends'}
    </button>
  );
}

type DialogProps = { user: Person; close: () => void };

function AskDialog({ user, close }: DialogProps) {
  const [, ask] = useMutation(gql.RequestFriendDocument);
  const send = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const message = String(new FormData(event.currentTarget).get('message')).trim();
    if (await report(ask({ userId: user.id, message: message || null }), `Request sent to ${user.name}.`)) close();
  };
  return (
    <Dialog title={`Ask ${user.name} to be friends`} close={close}>
      <form onSubmit={send}>
        <label className="field">
          Message (optional)
          <textarea name="message" {...atMost(300)} rows={3} />
        </label>
        <button className="button primary">Send request</button>
      </form>
    </Dialog>
  );
}

function MarkDialog({ user, standing, close }: DialogProps & { standing: Standing }) {
  const [, mark] = useMutation(gql.SetFollowMarkDocument);
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    close();
    void report(mark({ userId: user.id, special: form.get('special') === 'on', remark: String(form.get('remark')).trim() }), 'Saved. Only you see it.');
  };
  return (
    <Dialog title={`Mark ${user.name}`} close={close}>
      <form onSubmit={send}>
        <label className="choice">
          <input type="checkbox" name="special" defaultChecked={standing.special ?? false} /> Marked
        </label>
        <label className="field">
          Note (only you see it)
          <input name="remark" {...atMost(100)} defaultValue={standing.remark ?? ''} />
        </label>
        <button className="button primary">Save</button>
      </form>
    </Dialog>
  );
}

const lengths = [
  ['', 'Until I unmute'],
  ['1', 'For a day'],
  ['7', 'For a week'],
  ['30', 'For 30 days'],
] as const;

function MuteDialog({ user, standing, close }: DialogProps & { standing: Standing }) {
  const [, mute] = useMutation(gql.MuteDocument);
  const [, unmute] = useMutation(gql.UnmuteDocument);
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const days = Number(form.get('days'));
    close();
    void report(
      mute({ userId: user.id, scope: form.get('scope') as gql.MuteScope, until: days ? new Date(Date.now() + days * 86_400_000).toISOString() : null }),
      `You muted ${user.name}.`,
    );
  };
  return (
    <Dialog title={`Mute ${user.name}`} close={close}>
      <form onSubmit={send}>
        <p>{user.name} won’t be told, and muting doesn’t change who you follow.</p>
        <Select name="scope" text="What to hide" options={scopes} value={standing.muted ?? 'EVERYTHING'} />
        <Select name="days" text="For how long" options={lengths} />
        <div className="bar">
          <button className="button primary">Mute</button>
          {standing.muted && (
            <button
              type="button"
              className="button"
              onClick={() => {
                close();
                void report(unmute({ userId: user.id }), `You unmuted ${user.name}.`);
              }}
            >
              Unmute
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

function BlockDialog({ user, standing, close }: DialogProps & { standing: Standing }) {
  const [, block] = useMutation(gql.BlockDocument);
  const [, remove] = useMutation(gql.RemoveFollowerDocument);
  const make = (change: typeof block | typeof remove, good: string) => () => {
    close();
    void report(change({ userId: user.id }), good);
  };
  return (
    <Dialog title={`Block ${user.name}?`} close={close}>
      <p>You won’t be able to follow each other, or see each other in lists, search and suggestions. Any follows between you end now.</p>
      <div className="bar">
        <button type="button" className="button danger" onClick={make(block, `You blocked ${user.name}.`)}>
          Block
        </button>
        {standing.followedBy && (
          <button type="button" className="button" onClick={make(remove, `${user.name} no longer follows you.`)}>
            Just remove as a follower
          </button>
        )}
        <button type="button" className="button" onClick={close}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

