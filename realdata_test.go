package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"kith/internal/kithtest"
	"kith/internal/testenv"
)

// TestRealGraph imports real follow graphs with the command, compares every row with
// the file, and every answer that was computed apart with what comes over GraphQL.
func TestRealGraph(t *testing.T) {
	t.Run("wiki-vote", func(t *testing.T) {
		t.Parallel()
		realGraph(t, "wiki-vote")
	})
	t.Run("ego-twitter", func(t *testing.T) {
		testenv.Long(t)
		t.Parallel()
		realGraph(t, "ego-twitter")
	})
}

func realGraph(t *testing.T, name string) {
	path := testenv.Data(t, name+".txt.gz")
	graph := readGraph(t, path)
	pairs := expected[pair](t, name+".pairs.jsonl")
	suggestions := expected[suggestion](t, name+".suggest.jsonl")

	stores := map[string]func(testing.TB) []database{
		"sqlite":  func(t testing.TB) []database { return newSQLite(t, 1) },
		"mariadb": func(t testing.TB) []database { return newMariaDB(t, 4) },
	}
	for store, make := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			shards := make(t)
			importGraph(t, path, shards, len(graph), 0)
			holdsGraph(t, graph, shards...)

			g := kithtest.Start(t, kithtest.Args("--store", location(shards...)))
			began := time.Now()
			for _, p := range pairs {
				p.compare(t, g)
			}
			t.Logf("%d pairs compared in %s", len(pairs), time.Since(began).Round(time.Millisecond))
			began, pages := time.Now(), 0
			for _, s := range suggestions {
				pages += s.compare(t, g)
			}
			t.Logf("%d suggestions compared in %s, %d pages", len(suggestions), time.Since(began).Round(time.Millisecond), pages)

			importGraph(t, path, shards, 0, len(graph))
			holdsGraph(t, graph, shards...)
		})
	}
}

// importGraph imports a file and sees how many of its edges were new.
func importGraph(t *testing.T, path string, shards []database, edges, existed int) {
	t.Helper()
	end := kithtest.Run(t, kithtest.Args("import", "--store", location(shards...), path))
	want := fmt.Sprintf(`^imported %s edges and [\d,]+ users in [\d.]+ s \(([\d,]+) edges/s\)\n  duplicates +0\n  existed +%s( .*)?\n  self-follows +0\n  malformed +0\n$`,
		thousands(edges), thousands(existed))
	found := regexp.MustCompile(want).FindStringSubmatch(end.Stdout)
	if end.Code != 0 || found == nil {
		t.Fatalf("imported: %+v", end)
	}
	t.Logf("%s new edges, %s that existed: %s edges/s, the whole command in %s", thousands(edges), thousands(existed), found[1], end.Took.Round(time.Millisecond))
}

// expected reads a file of answers, a JSON object a line.
func expected[T any](t *testing.T, name string) []T {
	t.Helper()
	file, err := os.Open(testenv.Data(t, "expected/"+name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var list []T
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var answer T
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			t.Fatalf("%s:%d: %v", name, len(list)+1, err)
		}
		list = append(list, answer)
	}
	if err := lines.Err(); err != nil || len(list) == 0 {
		t.Fatalf("%s: %d answers, %v", name, len(list), err)
	}
	return list
}

// pair is what is expected of two users.
type pair struct {
	A, B             int64
	AFollowings      int     `json:"a_followings"`
	AFans            int     `json:"a_fans"`
	BFollowings      int     `json:"b_followings"`
	BFans            int     `json:"b_fans"`
	AFollowsB        bool    `json:"a_follows_b"`
	BFollowsA        bool    `json:"b_follows_a"`
	Mutual           bool    `json:"mutual"`
	CommonFollowings []int64 `json:"common_followings"`
	CommonFans       []int64 `json:"common_fans"`
	FollowingsCount  int     `json:"common_followings_count"`
	FansCount        int     `json:"common_fans_count"`
}

// connection is a page of a list of users.
type connection struct {
	TotalCount int
	Complete   bool
	Nodes      []struct {
		ID int64 `json:",string"`
	}
	PageInfo struct {
		HasNextPage bool
		EndCursor   string
	}
}

const pairQuery = `query($a: ID!, $b: ID!) {
	a: user(id: $a) {
		followingCount followerCount
		followings(first: 0) { totalCount complete } followers(first: 0) { totalCount complete }
		relationship(to: $b) { status following followedBy followedAt followedByAt }
	}
	b: user(id: $b) {
		followingCount followerCount
		followings(first: 0) { totalCount complete } followers(first: 0) { totalCount complete }
		relationship(to: $a) { status following followedBy followedAt followedByAt }
	}
	relationship(from: $a, to: $b) { status following followedBy }
}`

// relationship is how one user stands towards another.
type relationship struct {
	Status                   string
	Following, FollowedBy    bool
	FollowedAt, FollowedByAt *time.Time
}

// listed is a user with the sizes of the lists.
type listed struct {
	FollowingCount, FollowerCount int
	Followings, Followers         connection
	Relationship                  relationship
}

func (p pair) compare(t *testing.T, g *kithtest.Gateway) {
	t.Helper()
	var got struct {
		A, B         listed
		Relationship relationship
	}
	g.Query(t, pairQuery, map[string]any{"a": id(p.A), "b": id(p.B)}, &got)
	for _, c := range []struct {
		who               string
		user              listed
		followings, fans  int
		follows, followed bool
	}{
		{"a", got.A, p.AFollowings, p.AFans, p.AFollowsB, p.BFollowsA},
		{"b", got.B, p.BFollowings, p.BFans, p.BFollowsA, p.AFollowsB},
	} {
		u, r := c.user, c.user.Relationship
		if u.FollowingCount != c.followings || u.Followings.TotalCount != c.followings || !u.Followings.Complete ||
			u.FollowerCount != c.fans || u.Followers.TotalCount != c.fans || !u.Followers.Complete {
			t.Errorf("pair %d, %d: %s has %+v, want %d followings and %d fans", p.A, p.B, c.who, u, c.followings, c.fans)
		}
		if r.Status != status(c.follows, c.followed) || r.Following != c.follows || r.FollowedBy != c.followed ||
			(r.FollowedAt != nil) != c.follows || (r.FollowedByAt != nil) != c.followed {
			t.Errorf("pair %d, %d: %s stands towards the other as %+v, want %s", p.A, p.B, c.who, r, status(c.follows, c.followed))
		}
	}
	if got.Relationship.Status != status(p.AFollowsB, p.BFollowsA) || (got.Relationship.Status == "MUTUAL") != p.Mutual {
		t.Errorf("pair %d, %d: relationship %+v, want %s", p.A, p.B, got.Relationship, status(p.AFollowsB, p.BFollowsA))
	}
	for _, c := range []struct {
		field string
		want  []int64
		count int
	}{{"commonFollowings", p.CommonFollowings, p.FollowingsCount}, {"commonFollowers", p.CommonFans, p.FansCount}} {
		for _, ends := range [][2]int64{{p.A, p.B}, {p.B, p.A}} {
			if ids, count := common(t, g, c.field, ends[0], ends[1]); count != c.count || !slices.Equal(ids, c.want) {
				t.Errorf("%s of %d and %d: %d, %v, want %d, %v", c.field, ends[0], ends[1], count, ids, c.count, c.want)
			}
		}
	}
}

// common pages through what two users have in common, a hundred at a time.
func common(t *testing.T, g *kithtest.Gateway, field string, of, with int64) (ids []int64, count int) {
	t.Helper()
	query := `query($of: ID!, $with: ID!, $after: String) { user(id: $of) { list: ` + field + `(with: $with, first: 100, after: $after) {
		totalCount complete nodes { id } pageInfo { hasNextPage endCursor }
	} } }`
	variables := map[string]any{"of": id(of), "with": id(with)}
	for {
		var got struct{ User struct{ List connection } }
		g.Query(t, query, variables, &got)
		list := got.User.List
		for _, n := range list.Nodes {
			ids = append(ids, n.ID)
		}
		if !list.Complete || variables["after"] != nil && list.TotalCount != count {
			t.Errorf("%s of %d and %d after %d: complete: %t, total %d, before %d", field, of, with, len(ids), list.Complete, list.TotalCount, count)
		}
		count = list.TotalCount
		if !list.PageInfo.HasNextPage {
			return ids, count
		}
		if len(list.Nodes) != 100 {
			t.Errorf("%s of %d and %d: a page of %d is not the last", field, of, with, len(list.Nodes))
		}
		variables["after"] = list.PageInfo.EndCursor
	}
}

func status(following, followedBy bool) string {
	switch {
	case following && followedBy:
		return "MUTUAL"
	case following:
		return "FOLLOWING"
	case followedBy:
		return "FOLLOWED_BY"
	}
	return "NONE"
}

// suggestion is what is expected to be suggested to a user.
type suggestion struct {
	Viewer     int64
	Followings int
	Candidates int        // how many there are
	Top20      [][2]int64 // candidate and score
}

// compare reads all suggestions, and tells how many pages they took.
func (s suggestion) compare(t *testing.T, g *kithtest.Gateway) (pages int) {
	t.Helper()
	const query = `query($viewer: ID!, $first: Int!, $after: String) { user(id: $viewer) { followingCount followSuggestions(first: $first, after: $after) {
		complete edges { score mutualCount node { id } } pageInfo { hasNextPage endCursor }
	} } }`
	variables := map[string]any{"viewer": id(s.Viewer), "first": 20}
	seen, last := map[int64]bool{}, [2]int64{}
	for {
		var got struct {
			User struct {
				FollowingCount    int
				FollowSuggestions struct {
					Complete bool
					Edges    []struct {
						Score       float64
						MutualCount int64
						Node        struct {
							ID int64 `json:",string"`
						}
					}
					PageInfo struct {
						HasNextPage bool
						EndCursor   string
					}
				}
			}
		}
		g.Query(t, query, variables, &got)
		page := got.User.FollowSuggestions
		var list [][2]int64
		for _, e := range page.Edges {
			row := [2]int64{e.Node.ID, e.MutualCount}
			if e.Score != float64(e.MutualCount) {
				t.Errorf("viewer %d: %d has the score %v and the count %d", s.Viewer, e.Node.ID, e.Score, e.MutualCount)
			}
			if len(seen) > 0 && (row[1] > last[1] || row[1] == last[1] && row[0] <= last[0]) {
				t.Errorf("viewer %d: %v comes after %v", s.Viewer, row, last)
			}
			if seen[row[0]] {
				t.Errorf("viewer %d: %d is suggested twice", s.Viewer, row[0])
			}
			seen[row[0]], last = true, row
			list = append(list, row)
		}
		if !page.Complete {
			t.Fatalf("viewer %d: incomplete after %d", s.Viewer, len(seen))
		}
		if pages++; pages == 1 && (!slices.Equal(list, s.Top20) || got.User.FollowingCount != s.Followings) {
			t.Errorf("viewer %d with %d followings: %v, want %v, %d", s.Viewer, got.User.FollowingCount, list, s.Top20, s.Followings)
		}
		if !page.PageInfo.HasNextPage {
			break
		}
		variables["first"], variables["after"] = 100, page.PageInfo.EndCursor
	}
	if len(seen) != s.Candidates {
		t.Errorf("viewer %d: %d candidates, want %d", s.Viewer, len(seen), s.Candidates)
	}
	return pages
}

func id(n int64) string { return strconv.FormatInt(n, 10) }
