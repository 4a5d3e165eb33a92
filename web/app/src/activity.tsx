// What others have done that concerns the viewer, in groups of a day.
import { useEffect } from 'react';
import { useMutation, useQuery } from 'urql';
import * as gql from './gql';
import { Endless, Faces } from './people';
import { Link } from './router';
import { Age, Empty, Icon, PageTitle, present, type IconName } from './ui';

type Kind = { icon: IconName; one: string; many: string; answers?: boolean };

const kinds: Record<gql.ActivityKind, Kind> = {
  FOLLOW: { icon: 'people', one: 'now follows you', many: 'follow you' },
  FOLLOW_REQUEST: { icon: 'inbox', one: 'asked to follow you', many: 'asked to follow you', answers: true },
  FRIEND_REQUEST: { icon: 'inbox', one: 'wants to be friends', many: 'want to be friends', answers: true },
  FRIEND_ACCEPTED: { icon: 'check', one: 'accepted your friend request', many: 'accepted your friend requests' },
  FOLLOW_ACCEPTED: { icon: 'check', one: 'accepted your follow request', many: 'accepted your follow requests' },
  FAVORITE: { icon: 'heart', one: 'favorited your post', many: 'favorited your post' },
  COMMENT: { icon: 'comment', one: 'commented on your post', many: 'commented on your post' },
  MENTION: { icon: 'at', one: 'mentioned you', many: 'mentioned you' },
};

/** What the last one in a group has done. */
export function lastOf({ kind, actors }: gql.HappenedFragment) {
  const last = present(actors)[0];
  return last && `${last.name} ${kinds[kind].one}.`;
}

export function Activity() {
  const [{ data: viewer }] = useQuery({ query: gql.ViewerDocument });
  const [{ data }] = useQuery({ query: gql.ActivityDocument, variables: { after: null } });
  const [, see] = useMutation(gql.MarkActivitySeenDocument);
  const upTo = data?.viewer?.activity?.pageInfo.startCursor;
  const isNew = !!viewer?.viewer?.activity?.unseen?.count;
  useEffect(() => {
    if (upTo && isNew) void see({ upTo });
  }, [upTo, isNew]);
  return (
    <>
      <PageTitle title="Activity" />
      <Endless
        document={gql.ActivityDocument}
        variables={{}}
        pick={({ viewer }) => viewer?.activity && { items: present(viewer.activity.nodes), pageInfo: viewer.activity.pageInfo }}
        id={group => group.id}
        row={group => <Group of={group} />}
        label="activity"
        empty={
          <Empty icon="bell" title="Nothing has happened yet.">
            Follows, requests, favorites, comments and mentions of other people appear here.
          </Empty>
        }
      />
    </>
  );
}

function Group({ of: { kind, at, actors, othersCount, complete, post } }: { of: gql.HappenedFragment }) {
  const shown = present(actors);
  const [last, second] = shown;
  if (!last) return null;
  const { icon, one, many, answers } = kinds[kind];
  const others = shown.length - 1 + othersCount;
  return (
    <div className="group">
      <Icon name={icon} />
      <Faces of={shown}>
        <Link to={`/u/${last.handle}`}>{last.name}</Link>
        {others === 1 && second ? (
          <>
            {' and '}
            <Link to={`/u/${second.handle}`}>{second.name}</Link>
          </>
        ) : (
          others > 0 && ` and ${others}${complete ? '' : '+'} ${others === 1 ? 'other' : 'others'}`
        )}{' '}
        {others ? many : one}{' '}
        <small className="quiet">
          · <Age at={at} />
        </small>
      </Faces>
      {post && (
        <Link to={`/post/${post.id}`} className="note-line quiet">
          “{post.text}”
        </Link>
      )}
      {answers && (
        <Link to="/requests" className="note-line">
          See requests
        </Link>
      )}
    </div>
  );
}
