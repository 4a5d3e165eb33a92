// Posts, with the comments below them.
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from 'react';
import { useClient, useMutation, useQuery, type CombinedError } from 'urql';
import * as gql from './gql';
import { Endless, Face, nodesOf } from './people';
import { Link, navigate } from './router';
import { askToSignIn, useSession } from './session';
import { Age, Count, Dialog, Empty, Failure, Icon, Menu, PageTitle, Skeleton, atMost, lengthOf, report, sentence, tell } from './ui';

/** A text whose handles lead to who has them. */
const named = (text: string) => text.split(/(?<![\w.@])(@\w{1,30})(?![\w@])/).map((part, i) => (i % 2 ? <Link key={i} to={`/u/${part.slice(1).toLowerCase()}`}>{part}</Link> : part));

export function PostCard({ post, alone = false }: { post: gql.PostCardFragment; alone?: boolean }) {
  const session = useSession();
  const [open, setOpen] = useState(alone);
  const [, favorite] = useMutation(gql.FavoriteDocument);
  const [, unfavorite] = useMutation(gql.UnfavoriteDocument);
  const { author } = post;
  return (
    <article className="post" aria-label={author ? `Post by ${author.name}` : 'Post'}>
      <Author of={post} size={40} to={`/post/${post.id}`}>
        <PostMenu post={post} alone={alone} />
      </Author>
      <p className="text">{named(post.text)}</p>
      <footer>
        <button
          type="button"
          className={`button plain like ${post.viewerHasFavorited ? 'on' : ''}`}
          aria-pressed={!!post.viewerHasFavorited}
          aria-label={`Favorite, ${post.favoritesReceivedCount}`}
          onClick={() => (session ? report((post.viewerHasFavorited ? unfavorite : favorite)({ postId: post.id })) : askToSignIn('Sign in to favorite this post'))}
        >
          <Icon name="heart" />
          <Count of={post.favoritesReceivedCount} />
        </button>
        <button type="button" className="button plain talk" aria-expanded={open} aria-label={`Comments, ${post.commentCount}`} onClick={() => setOpen(!open)}>
          <Icon name="comment" />
          <Count of={post.commentCount} />
        </button>
      </footer>
      {open && <Comments post={post} />}
    </article>
  );
}

function PostMenu({ post: { id, author }, alone }: { post: gql.PostCardFragment; alone: boolean }) {
  const session = useSession();
  const [, remove] = useMutation(gql.DeletePostDocument);
  const [, mute] = useMutation(gql.MuteDocument);
  const [, unmute] = useMutation(gql.UnmuteDocument);
  const [, tellOf] = useMutation(gql.ReportPostDocument);
  const [reports, setReports] = useState(false);
  const quiet = async ({ id: userId, name }: gql.PersonFragment) => {
    if (await report(mute({ userId, scope: 'POSTS', until: null }))) tell(`You muted the posts of ${name}.`, 'good', () => report(unmute({ userId })));
  };
  return (
    <>
      <Menu label={`More: the post by ${author?.name ?? 'someone'}`}>
        <button type="button" onClick={() => copy(new URL(`/app/post/${id}`, location.href).href)}>
          Copy link
        </button>
        {session && author && author.id !== session.userId && (
          <>
            <button type="button" onClick={() => quiet(author)}>
              Mute posts of {author.name}
            </button>
            <button type="button" className="danger" onClick={() => setReports(true)}>
              Report
            </button>
          </>
        )}
        {session && author?.id === session.userId && (
          <button type="button" className="danger" onClick={async () => (await report(remove({ id }))) && alone && navigate('/')}>
            Delete this post
          </button>
        )}
      </Menu>
      {reports && <ReportDialog of="this post" send={reason => tellOf({ postId: id, reason })} close={() => setReports(false)} />}
    </>
  );
}

type ReportProps = { of: string; send: (reason: string) => Promise<{ error?: CombinedError }>; close: () => void };

/** Tells the operators what is wrong with somebody, or with a post. */
export function ReportDialog({ of, send, close }: ReportProps) {
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const reason = String(new FormData(event.currentTarget).get('reason')).trim();
    if (await report(send(reason), 'Reported. The operators will read it.')) close();
  };
  return (
    <Dialog title={`Report ${of}`} close={close}>
      <form onSubmit={submit}>
        <label className="field">
          What is wrong?
          <textarea name="reason" {...atMost(500)} rows={3} required />
          <small className="quiet">Only the operators read this.</small>
        </label>
        <button className="button primary">Send report</button>
      </form>
    </Dialog>
  );
}

/** Copies a link. Browsers have a clipboard only in secure contexts. */
const copy = async (link: string) => tell((await navigator.clipboard?.writeText(link).then(() => 'Link copied.', () => link)) ?? link);

/** The viewer's feed, or that of a list. Posts that are added while it is shown wait behind a button. */
export function Feed({ list, empty, refreshed }: { list?: string; empty: ReactNode; refreshed?: () => void }) {
  const client = useClient();
  const only = list ? { list } : undefined;
  const [fresh, setFresh] = useState(0);
  const [version, setVersion] = useState(0);
  // Each event counts. The library's hook has the last one of those that come between two drawings.
  useEffect(() => client.subscription(gql.PostAddedDocument, { only }).subscribe(({ data }) => data && setFresh(n => n + 1)).unsubscribe, [client, list]);
  const refresh = async () => {
    const { error } = await client.query(gql.FeedDocument, { only, after: null }, { requestPolicy: 'network-only' }).toPromise();
    if (error) return tell(sentence(error), 'bad');
    setFresh(n => Math.max(0, n - fresh)); // others may have come meanwhile
    setVersion(version + 1);
    refreshed?.();
  };
  return (
    <>
      {fresh > 0 && (
        <button type="button" className="button wide" onClick={refresh}>
          {fresh === 1 ? 'One new post' : `${fresh} new posts`}
        </button>
      )}
      <Endless key={version} document={gql.FeedDocument} variables={{ only }} pick={data => nodesOf(data.viewer?.feed)} id={post => post.id} row={post => <PostCard post={post} />} label="Posts" empty={empty} />
    </>
  );
}

/** One post, at an address of its own. */
export function PostPage({ id }: { id: string }) {
  const [{ data, error, fetching }, ask] = useQuery({ query: gql.PostDocument, variables: { id }, requestPolicy: 'cache-and-network' });
  const post = data?.node && 'text' in data.node ? data.node : null;
  return (
    <>
      <PageTitle title={post?.author ? `Post by ${post.author.name}` : 'Post'} />
      {post ? (
        <PostCard post={post} alone />
      ) : fetching ? (
        <Skeleton rows={1} />
      ) : error ? (
        <Failure text={sentence(error)} retry={() => ask({ requestPolicy: 'network-only' })} />
      ) : (
        <Empty icon="search" title="This post was deleted, or you can’t see it." />
      )}
    </>
  );
}

/** Who has written something, and when. */
function Author({ of: { author, createdAt }, size, to, children }: { of: Pick<gql.PostCardFragment, 'author' | 'createdAt'>; size: number; to?: string; children?: ReactNode }) {
  return (
    <header>
      {author && (
        <Link to={`/u/${author.handle}`} className="who">
          <Face of={author} size={size} />
          <span>
            <b>{author.name}</b>
            <small className="quiet">@{author.handle}</small>
          </span>
        </Link>
      )}
      <small className="quiet">
        {to ? <Link to={to} className="quiet" children={<Age at={createdAt} />} /> : <Age at={createdAt} />}
      </small>
      {children}
    </header>
  );
}

function Comments({ post }: { post: gql.PostCardFragment }) {
  const session = useSession();
  const client = useClient();
  const [, add] = useMutation(gql.AddCommentDocument);
  // A list that is still being read may lack what is added meanwhile, so it comes first.
  const send = async (text: string, clientKey: string) => {
    await client.query(gql.CommentsDocument, { id: post.id, after: null }).toPromise();
    return add({ postId: post.id, text, clientKey });
  };
  return (
    <section className="comments" aria-label="Comments">
      {session ? (
        <Composer label="New comment" prompt="Write a comment" button="Comment" longest={500} send={send} />
      ) : (
        <button type="button" className="button" onClick={() => askToSignIn('Sign in to comment')}>
          Sign in to comment
        </button>
      )}
      <Endless
        document={gql.CommentsDocument}
        variables={{ id: post.id }}
        pick={({ node }) => nodesOf(node && 'comments' in node ? node.comments : null)}
        id={comment => comment.id}
        row={comment => <Comment comment={comment} mayDelete={!!session && [comment.author?.id, post.author?.id].includes(session.userId)} />}
        label="comments"
        closed={<p className="quiet">This post was deleted.</p>}
        empty={<p className="quiet">No comments yet.</p>}
      />
    </section>
  );
}

function Comment({ comment, mayDelete }: { comment: gql.CommentFragment; mayDelete: boolean }) {
  const [, remove] = useMutation(gql.DeleteCommentDocument);
  return (
    <div className="comment">
      <Author of={comment} size={32}>
        {mayDelete && (
          <button type="button" className="button plain" aria-label={`Delete the comment by ${comment.author?.name ?? 'someone'}`} onClick={() => report(remove({ id: comment.id }))}>
            <Icon name="trash" />
          </button>
        )}
      </Author>
      <p className="text">{named(comment.text)}</p>
    </div>
  );
}

type ComposerProps = {
  label: string;
  prompt: string;
  button: string;
  /** Characters. */
  longest: number;
  send: (text: string, clientKey: string) => Promise<{ error?: CombinedError }>;
  sent?: string;
};

/** Writes a post, or a comment. */
export function Composer({ label, prompt, button, longest, send, sent }: ComposerProps) {
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const { userId } = useSession()!;
  const [{ data }] = useQuery({ query: gql.ViewerDocument });
  // A text keeps its key until it has been accepted: if it is sent twice, it is published once. Another text has another key.
  const draft = useRef({ text: '', key: '' });
  const left = longest - lengthOf(text);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (draft.current.text !== text.trim()) draft.current = { text: text.trim(), key: newKey() };
    setBusy(true);
    const { error } = await send(draft.current.text, draft.current.key);
    setBusy(false);
    if (error) return tell(sentence(error), 'bad');
    draft.current = { text: '', key: '' };
    setText('');
    if (sent) tell(sent);
  };
  return (
    <form className="composer card" onSubmit={submit} aria-label={label}>
      <Face of={data?.viewer?.user ?? { id: userId, avatarUrl: null }} size={40} />
      <label>
        <span className="visually-hidden">{prompt}</span>
        <textarea rows={2} placeholder={prompt} value={text} readOnly={busy} onChange={event => setText(event.target.value)} />
      </label>
      <small className="quiet">{left.toLocaleString('en')} left</small>
      <button className="button primary" disabled={busy || text.trim() === '' || left < 0}>
        {button}
      </button>
    </form>
  );
}

// crypto.randomUUID exists only in secure contexts.
const newKey = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), part => part.toString(36)).join('-');
