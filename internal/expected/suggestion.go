package expected

import (
	"fmt"
	"slices"
	"testing"

	"kith/internal/kithtest"
	"kith/internal/must"
)

// Suggestion is what is expected to be suggested to a user.
type Suggestion struct {
	Viewer     int64
	Followings int
	Candidates int        // how many there are
	Top20      [][2]int64 // candidate and score
}

// Wrong reads all suggestions of a gateway, and reports what is not as expected, and how
// many pages they took.
func (s Suggestion) Wrong(t testing.TB, g *kithtest.Gateway) (wrong []string, pages int) {
	t.Helper()
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if s.Followings == 0 { // who is suggested the most followed: no answer was computed for that
		return nil, 0
	}
	const query = `query($viewer: ID!, $first: Int!, $after: String) { user(by: {id: $viewer}) { followingCount followSuggestions(first: $first, after: $after) {
		complete edges { score sharedCount node { id } } pageInfo { hasNextPage endCursor }
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
						SharedCount int64
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
			row := [2]int64{e.Node.ID, e.SharedCount}
			if e.Score != float64(e.SharedCount) {
				report("viewer %d: %d has the score %v and the count %d", s.Viewer, e.Node.ID, e.Score, e.SharedCount)
			}
			if len(seen) > 0 && (row[1] > last[1] || row[1] == last[1] && row[0] <= last[0]) {
				report("viewer %d: %v comes after %v", s.Viewer, row, last)
			}
			if seen[row[0]] {
				report("viewer %d: %d is suggested twice", s.Viewer, row[0])
			}
			seen[row[0]], last = true, row
			list = append(list, row)
		}
		must.That(t, page.Complete, "viewer %d: incomplete after %d", s.Viewer, len(seen))
		if pages++; pages == 1 && (!slices.Equal(list, s.Top20) || got.User.FollowingCount != s.Followings) {
			report("viewer %d with %d followings: %v, want %v, %d", s.Viewer, got.User.FollowingCount, list, s.Top20, s.Followings)
		}
		if !page.PageInfo.HasNextPage {
			break
		}
		variables["first"], variables["after"] = 100, page.PageInfo.EndCursor
	}
	if len(seen) != s.Candidates {
		report("viewer %d: %d candidates, want %d", s.Viewer, len(seen), s.Candidates)
	}
	return wrong, pages
}
