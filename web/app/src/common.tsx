// What two people have in common: whom both follow, and who follows both.
import { useState } from 'react';
import { useQuery } from 'urql';
import { CommonFollowersDocument, CommonFollowingsDocument, TwoPeopleDocument } from './gql';
import { Face, PeopleList, pageOf } from './people';
import { Link } from './router';
import { Empty, Failure, PageTitle, Skeleton, sentence } from './ui';

export function Common({ one, other }: { one: string; other: string }) {
  const [{ data, error }, ask] = useQuery({ query: TwoPeopleDocument, variables: { handles: [one, other] } });
  const [fans, setFans] = useState(false);
  if (!data) return error ? <Failure text={sentence(error)} retry={() => ask({ requestPolicy: 'network-only' })} /> : <Skeleton />;
  const [a, b] = data.users;
  if (!a || !b) {
    return (
      <>
        <PageTitle title="In common" />
        <Empty icon="search" title="There is no account with this handle." />
      </>
    );
  }
  const lists = {
    variables: { id: a.id, with: b.id },
    closed: <Empty icon="people" title="One of them doesn’t show you this list." />,
  };
  return (
    <>
      <PageTitle title="In common" />
      <div className="two">
        {[a, b].map(person => (
          <Link key={person.id} to={`/u/${person.handle}`} className="who">
            <Face of={person} size={64} />
            <b>{person.name}</b>
          </Link>
        ))}
      </div>
      <div className="tabs" role="group" aria-label="Which list">
        <button type="button" aria-pressed={!fans} onClick={() => setFans(false)}>
          Both follow
        </button>
        <button type="button" aria-pressed={fans} onClick={() => setFans(true)}>
          Follow both
        </button>
      </div>
      {fans ? (
        <PeopleList
          key="fans"
          document={CommonFollowersDocument}
          {...lists}
          pick={data => pageOf(data.user?.list)}
          label="common followers"
          empty={<Empty icon="people" title={`No one follows both ${a.name} and ${b.name}.`} />}
        />
      ) : (
        <PeopleList
          key="followings"
          document={CommonFollowingsDocument}
          {...lists}
          pick={data => pageOf(data.user?.list)}
          label="common followings"
          empty={<Empty icon="people" title={`${a.name} and ${b.name} don’t follow anyone in common.`} />}
        />
      )}
    </>
  );
}
