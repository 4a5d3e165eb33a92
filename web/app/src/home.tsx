// The home feed, and whom one may like to follow beside it.
import { useEffect, useRef, useState, type FormEvent } from 'react';
import { useClient, useMutation, useSubscription } from 'urql';
import { sentence } from './client';
import { FeedDocument, FeedItemsDocument, PublishDocument } from './gql';
import { Endless } from './people';
import { PostCard } from './posts';
import { Link } from './router';
import { SuggestionsBeside } from './suggestions';
import { Empty, PageTitle, present, tell } from './ui';

export function Home() {
  const client = useClient();
  const [fresh, setFresh] = useState(0);
  const [version, setVersion] = useState(0);
  const [item] = useSubscription({ query: FeedItemsDocument });
  useEffect(() => {
    if (item.data) setFresh(n => n + 1);
  }, [item.data]);
  const refresh = async () => {
    await client.query(FeedDocument, { after: null }, { requestPolicy: 'network-only' }).toPromise();
    setFresh(0);
    setVersion(version + 1);
  };
  return (
    <div className="columns">
      <div>
        <PageTitle title="Home" />
        <Composer />
        {fresh > 0 && (
          <button type="button" className="button wide" onClick={refresh}>
            {fresh === 1 ? 'One new post' : `${fresh} new posts`}
          </button>
        )}
        <Endless
          key={version}
          document={FeedDocument}
          variables={{}}
          pick={data => data.viewer?.feed && { items: present(data.viewer.feed.nodes), pageInfo: data.viewer.feed.pageInfo }}
          id={post => post.id}
          row={post => <PostCard post={post} />}
          label="Posts"
          empty={
            <Empty icon="home" title="Nothing has been posted yet.">
              <Link to="/start">Follow a few people</Link> and their posts appear here.
            </Empty>
          }
        />
      </div>
      <SuggestionsBeside />
    </div>
  );
}

const longest = 2_000;

function Composer() {
  const [text, setText] = useState('');
  const [, publish] = useMutation(PublishDocument);
  // The same key until the post has been taken: sent twice, it is published once.
  const clientKey = useRef(crypto.randomUUID());
  const send = async (event: FormEvent) => {
    event.preventDefault();
    const { error } = await publish({ text: text.trim(), clientKey: clientKey.current });
    if (error) return tell(sentence(error), 'bad');
    clientKey.current = crypto.randomUUID();
    setText('');
    tell('Your followers see it now.');
  };
  return (
    <form className="composer card" onSubmit={send} aria-label="New post">
      <label>
        <span className="visually-hidden">What you want to say</span>
        <textarea rows={2} maxLength={longest} placeholder="Say something to your followers" value={text} onChange={event => setText(event.target.value)} />
      </label>
      <button className="button primary" disabled={text.trim() === ''}>
        Post
      </button>
    </form>
  );
}
