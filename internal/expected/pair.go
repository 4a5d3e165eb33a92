package expected

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kith/internal/kithtest"
)

// Pair is the answers that are expected about two users.
type Pair struct {
	A, B             int64
	AFollowings      int     `json:"a_followings"`
	AFollowers       int     `json:"a_fans"`
	BFollowings      int     `json:"b_followings"`
	BFollowers       int     `json:"b_fans"`
	AFollowsB        bool    `json:"a_follows_b"`
	BFollowsA        bool    `json:"b_follows_a"`
	Mutual           bool    `json:"mutual"`
	CommonFollowings []int64 `json:"common_followings"`
	CommonFollowers  []int64 `json:"common_fans"`
	FollowingsCount  int     `json:"common_followings_count"`
	FollowersCount   int     `json:"common_fans_count"`
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
	a: user(by: {id: $a}) {
		followingCount followerCount
		followings(first: 0) { totalCount complete } followers(first: 0) { totalCount complete }
		relationship(to: $b) { status following followedBy followedAt followedByAt }
	}
	b: user(by: {id: $b}) {
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

// Wrong asks a gateway for both users, their relationship and all that they have in
// common, and reports what is not as expected.
func (p Pair) Wrong(t testing.TB, g *kithtest.Gateway) (wrong []string) {
	t.Helper()
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	var got struct {
		A, B         listed
		Relationship relationship
	}
	g.Query(t, pairQuery, map[string]any{"a": id(p.A), "b": id(p.B)}, &got)
	for _, c := range []struct {
		who                   string
		user                  listed
		followings, followers int
		follows, followed     bool
	}{
		{"a", got.A, p.AFollowings, p.AFollowers, p.AFollowsB, p.BFollowsA},
		{"b", got.B, p.BFollowings, p.BFollowers, p.BFollowsA, p.AFollowsB},
	} {
		u, r := c.user, c.user.Relationship
		if u.FollowingCount != c.followings || u.Followings.TotalCount != c.followings || !u.Followings.Complete ||
			u.FollowerCount != c.followers || u.Followers.TotalCount != c.followers || !u.Followers.Complete {
			report("pair %d, %d: %s has %+v, want %d followings and %d followers", p.A, p.B, c.who, u, c.followings, c.followers)
		}
		if r.Status != status(c.follows, c.followed) || r.Following != c.follows || r.FollowedBy != c.followed ||
			(r.FollowedAt != nil) != c.follows || (r.FollowedByAt != nil) != c.followed {
			report("pair %d, %d: %s stands towards the other as %+v, want %s", p.A, p.B, c.who, r, status(c.follows, c.followed))
		}
	}
	if got.Relationship.Status != status(p.AFollowsB, p.BFollowsA) || (got.Relationship.Status == "MUTUAL") != p.Mutual {
		report("pair %d, %d: relationship %+v, want %s", p.A, p.B, got.Relationship, status(p.AFollowsB, p.BFollowsA))
	}
	for _, c := range []struct {
		field string
		want  []int64
		count int
	}{{"commonFollowings", p.CommonFollowings, p.FollowingsCount}, {"commonFollowers", p.CommonFollowers, p.FollowersCount}} {
		for _, ends := range [][2]int64{{p.A, p.B}, {p.B, p.A}} {
			ids, count, torn := common(t, g, c.field, ends[0], ends[1])
			wrong = append(wrong, torn...)
			if count != c.count || !slices.Equal(ids, c.want) {
				report("%s of %d and %d: %d, %v, want %d, %v", c.field, ends[0], ends[1], count, ids, c.count, c.want)
			}
		}
	}
	return wrong
}

// common pages through what two users have in common, a hundred at a time, and reports
// where the pages do not go together.
func common(t testing.TB, g *kithtest.Gateway, field string, of, with int64) (ids []int64, count int, torn []string) {
	t.Helper()
	query := `query($of: ID!, $with: ID!, $after: String) { user(by: {id: $of}) { list: ` + field + `(with: $with, first: 100, after: $after) {
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
			torn = append(torn, fmt.Sprintf("%s of %d and %d after %d: complete: %t, total %d, before %d", field, of, with, len(ids), list.Complete, list.TotalCount, count))
		}
		count = list.TotalCount
		if !list.PageInfo.HasNextPage {
			return ids, count, torn
		}
		if len(list.Nodes) != 100 {
			torn = append(torn, fmt.Sprintf("%s of %d and %d: a page of %d is not the last", field, of, with, len(list.Nodes)))
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
