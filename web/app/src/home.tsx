// The home feed, and suggestions of whom to follow beside it.
import { useEffect, useState } from 'react';
import { useClient, useMutation, useQuery } from 'urql';
import { FeedSeenDocument, MarkFeedSeenDocument, PublishDocument, ViewerDocument } from './gql';
import { Composer, Feed } from './posts';
import { Link } from './router';
import { SuggestionsBeside } from './suggestions';
import { Empty, PageTitle } from './ui';

export function Home() {
  const client = useClient();
  const [version, setVersion] = useState(0);
  const [{ data }] = useQuery({ query: ViewerDocument });
  const [, publish] = useMutation(PublishDocument);
  // How far the feed has been seen is kept by the gateway, for all devices.
  const [unseen, setUnseen] = useState('');
  useEffect(() => {
    const look = async () => {
      const { data } = await client.query(FeedSeenDocument, {}, { requestPolicy: 'network-only' }).toPromise();
      const feed = data?.viewer?.feed;
      if (feed?.unseen?.count) setUnseen(`${feed.unseen.count}${feed.unseen.hasMore ? '+' : ''} new since your last visit`);
      if (feed?.pageInfo.startCursor) await client.mutation(MarkFeedSeenDocument, { upTo: feed.pageInfo.startCursor }).toPromise();
    };
    void look();
  }, [client, version]);
  return (
    <div className="columns">
      <div>
        <PageTitle title="Home" />
        <Composer
          label="New post"
          prompt="What would you like to share?"
          button="Post"
          longest={2_000}
          send={(text, clientKey) => publish({ text, clientKey })}
          sent="Posted. Your followers can see it now."
        />
        {unseen && <p className="quiet">{unseen}</p>}
        <Feed
          refreshed={() => setVersion(version + 1)}
          empty={
            data?.viewer?.user.followingCount === 0 ? (
              <Empty icon="home" title="You don’t follow anyone yet.">
                <Link to="/start">Follow a few people</Link>, and their posts will appear here.
              </Empty>
            ) : (
              <Empty icon="home" title="No posts yet from the people you follow." />
            )
          }
        />
      </div>
      <SuggestionsBeside />
    </div>
  );
}
