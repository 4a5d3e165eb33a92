package bench_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"kith/files/importer"
	"kith/graph/cursor"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sqlstore"
)

// fame is a graph for comparing one user whom everybody follows with quiet users, who have exactly
// 100 followers. Each of these users belongs to a block of 100 members. It follows half of them,
// and all of them follow it. The star and a quiet user differ only in the followers from elsewhere.
// Members follow 49 or 50 users: the star or quiet users, and others of the block.
type fame struct {
	followers int // of the star
	blocks    int // the first block is the star's, each other block is that of two quiet users
}

const (
	star           storage.UserID = 1
	firstQuiet     storage.UserID = 2
	quietFollowers                = 100 // members of a block
	followed                      = 50
	fameEpoch                     = storage.Micros(1_700_000_000_000_000)
	fameSpan                      = storage.Micros(365 * 24 * 3600 * 1_000_000) // the times of follows are within this span
)

func (f fame) quiets() int { return 2 * (f.blocks - 1) }

// member is a member of a block.
func (f fame) member(block, i int) storage.UserID {
	return firstQuiet + storage.UserID(f.quiets()+block*quietFollowers+i%quietFollowers)
}

// last is the last user. The star has exactly this many followers.
func (f fame) last() storage.UserID { return firstQuiet + storage.UserID(f.quiets()+f.followers) - 1 }

// blockOf is the block of the star or a quiet user.
func blockOf(id storage.UserID) int { return int(id) / 2 }

// randomQuiet draws a quiet user.
func (f fame) randomQuiet(r *rand.Rand) storage.UserID {
	return firstQuiet + storage.UserID(r.IntN(f.quiets()))
}

// near draws a member of the block of a user, who is the star or a quiet user.
func (f fame) near(id storage.UserID, r *rand.Rand) storage.UserID {
	return f.member(blockOf(id), r.IntN(quietFollowers))
}

// twin is a quiet user with the same followers as another quiet user. For the star, it is a quiet
// user whose followers all follow the star, too.
func (f fame) twin(id storage.UserID, r *rand.Rand) storage.UserID {
	if id == star {
		return f.randomQuiet(r)
	}
	return id ^ 1
}

// anybody draws a member of any block.
func (f fame) anybody(r *rand.Rand) storage.UserID {
	return f.member(r.IntN(f.blocks), r.IntN(quietFollowers))
}

// followings are the users whom a user follows, in no order.
func (f fame) followings(id storage.UserID) []storage.UserID {
	n := int(id-firstQuiet) - f.quiets() // the index among the users who are not famous
	var list []storage.UserID
	block, at := n/quietFollowers, n%quietFollowers
	switch {
	case n < 0:
		block, at = blockOf(id), -1
	case block >= f.blocks:
		return []storage.UserID{star}
	case block == 0:
		list = append(list, star)
	default:
		quiet := storage.UserID(2 * block)
		list = append(list, star, quiet, quiet^1)
	}
	for i := at + 1; len(list) < followed; i++ {
		list = append(list, f.member(block, i))
	}
	return list
}

// writeTo writes the graph as an edge list.
func (f fame) writeTo(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<20)
	for id := star; id <= f.last(); id++ {
		r := rand.New(rand.NewPCG(8, uint64(id)))
		for _, peer := range f.followings(id) {
			at := fameEpoch + storage.Micros(r.Int64N(int64(fameSpan)))
			fmt.Fprintf(out, "%d\t%d\t%d.%06d\n", id, peer, at/1e6, at%1e6)
		}
	}
	return out.Flush()
}

// store makes a store that has the graph.
func (f fame) store(t testing.TB, location string) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location})
	must.OK(t, err)
	defer store.Close()
	list, to := io.Pipe()
	go func() { _ = to.CloseWithError(f.writeTo(to)) }()
	_, err = importer.Run(context.Background(), store, importer.Config{Files: []string{"-"}, Stdin: list})
	_ = list.Close()
	must.OK(t, err)
	for _, id := range []storage.UserID{star, firstQuiet, storage.UserID(f.quiets() + 1)} {
		want := storage.Counts{Following: followed, Follower: quietFollowers, Friend: followed}
		if id == star {
			want.Follower = int64(f.followers)
		}
		got := storage.CountLookups.Read(t.Context(), store, id)[0].Value
		got.Version = 0
		if got != want {
			t.Fatalf("the counts of user %d are %+v, not %+v", id, got, want)
		}
	}
}

// more gives the star further followers, up to a number, who follow nobody else. The rows are those of an import, without claims of handles.
func (f fame) more(t testing.TB, db *sql.DB, followers int) fame {
	t.Helper()
	conn, err := db.Conn(t.Context())
	must.OK(t, err)
	defer conn.Close()
	exec := func(text string, args ...any) {
		if _, err := conn.ExecContext(t.Context(), text, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("SET sql_log_bin = 0")
	const step = 1_000_000
	for f.followers < followers {
		first := int64(f.last()) + 1
		n := int64(min(step, followers-f.followers))
		ids := fmt.Sprintf("FROM seq_%d_to_%d", first, first+n-1)
		at := fmt.Sprintf("%d + CRC32(seq) * 7000", fameEpoch)
		exec("INSERT INTO users (user_id, handle, name, created_at, updated_at) SELECT seq, CONCAT('u', seq), CONCAT('u', seq), 1, 1 " + ids)
		exec("INSERT INTO user_counts (user_id, following_count, version) SELECT seq, 1, 1 " + ids)
		exec("INSERT INTO following SELECT seq, ?, 1, "+at+" "+ids, star)
		exec("INSERT INTO follower SELECT ?, seq, 1, "+at+" "+ids, star)
		exec("UPDATE user_counts SET follower_count = follower_count + ?, version = version + 1 WHERE user_id = ?", n, star)
		f.followers += int(n)
	}
	return f
}

// A fameQuestion asks about one user, and about others in relation to it.
type fameQuestion struct {
	name  string
	query string // $id, and $x or $to for others
	// args adds variables for other users.
	args func(f fame, r *rand.Rand, about storage.UserID, v map[string]any)
}

const userFields = `{ nodes { id name } complete }`

// middle is a cursor in the middle of a list of followers.
var middle = (*cursor.Sealer)(nil).Encode(cursor.Followers, int64(fameEpoch+fameSpan/2), int64(star))

// fameQuestions are all questions about a user that may cost more if the user has many followers.
var fameQuestions = []fameQuestion{
	{name: "q1, counts", query: `($id: ID!) { user(by: {id: $id}) { id name followingCount followerCount } }`},
	{name: "q2, followings", query: `($id: ID!) { user(by: {id: $id}) { followings(first: 20) { edges { followedAt node { id name } } complete } } }`},
	{name: "q3, relations to 50", query: `($id: ID!, $to: [ID!]!) { relationships(from: [$id], to: $to) { id following followedBy } }`, args: withFifty},
	{name: "relations of 50 to it", query: `($id: ID!, $to: [ID!]!) { relationships(from: $to, to: [$id]) { id following followedBy followedAt } }`, args: withFifty},
	{name: "relation, with times", query: `($id: ID!, $x: ID!) { relationship(from: $id, to: $x) { status followedAt followedByAt } }`, args: withMember},
	{name: "viewer's relation", query: `($id: ID!) { user(by: {id: $id}) { viewerRelationship { status followedAt followedByAt } } }`},
	{name: "q4, common followings", query: `($id: ID!, $x: ID!) { user(by: {id: $id}) { commonFollowings(with: $x, first: 20) { totalCount nodes { id name } complete } } }`, args: withMember},
	{name: "q5, common followers", query: `($id: ID!, $x: ID!) { user(by: {id: $id}) { commonFollowers(with: $x, first: 20) { totalCount nodes { id name } complete } } }`, args: withTwin},
	{name: "common followers, latest", query: `($id: ID!, $x: ID!) { user(by: {id: $x}) { commonFollowers(with: $id, first: 20, orderBy: RECENT) { nodes { id name } complete } } }`, args: withTwin},
	{name: "q6, suggestions", query: `($id: ID!) { user(by: {id: $id}) { followSuggestions(first: 20) { edges { sharedCount node { id name } } complete } } }`},
	{name: "followers", query: `($id: ID!) { user(by: {id: $id}) { followers(first: 20) { edges { followedAt node { id name } } complete } } }`},
	{name: "followers, oldest", query: `($id: ID!) { user(by: {id: $id}) { followers(last: 20) { edges { followedAt node { id name } } complete } } }`},
	{name: "followers, from the middle", query: `($id: ID!) { user(by: {id: $id}) { followers(first: 20, after: "` + middle + `") { edges { followedAt node { id name } } complete } } }`},
	{name: "followers you know", query: `($id: ID!) { user(by: {id: $id}) { followersYouKnow(first: 20) { totalCount nodes { id name } complete } } }`},
	{name: "friends", query: `($id: ID!) { user(by: {id: $id}) { friends(first: 20) { totalCount nodes { id name } complete } } }`},
	{name: "not following back", query: `($id: ID!) { user(by: {id: $id}) { notFollowingBack(first: 20) ` + userFields + ` } }`},
	{name: "not followed back", query: `($id: ID!) { user(by: {id: $id}) { notFollowedBack(first: 20) ` + userFields + ` } }`},
	{name: "people: followers of both", query: `($id: ID!, $x: ID!) { people(where: {and: [{followersOf: $id}, {followersOf: $x}]}, first: 20) ` + userFields + ` }`, args: withTwin},
	{name: "people: followed, not followers", query: `($id: ID!, $x: ID!) { people(where: {and: [{followedBy: $x}, {not: {followersOf: $id}}]}, first: 20) ` + userFields + ` }`, args: withMember},
}

func withFifty(f fame, r *rand.Rand, about storage.UserID, v map[string]any) {
	to := make([]string, 50)
	for i := range to {
		to[i] = f.anybody(r).String()
		if i%2 == 0 {
			to[i] = f.near(about, r).String()
		}
	}
	v["to"] = to
}

func withMember(f fame, r *rand.Rand, about storage.UserID, v map[string]any) {
	v["x"] = f.near(about, r).String()
}

func withTwin(f fame, r *rand.Rand, about storage.UserID, v map[string]any) {
	v["x"] = f.twin(about, r).String()
}

// body is one request about a user.
func (q fameQuestion) body(f fame, r *rand.Rand, about storage.UserID) []byte {
	variables := map[string]any{"id": about.String()}
	if q.args != nil {
		q.args(f, r, about, variables)
	}
	body, err := json.Marshal(map[string]any{"query": "query Q" + q.query, "variables": variables})
	if err != nil {
		panic(err) // it contains only texts
	}
	return body
}
