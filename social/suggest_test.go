package social

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/finding"
)

// drawPeople creates the users of a random graph, and draws who may see their lists, and whether they
// want to be suggested.
func drawPeople(t *rapid.T, store *oracle.Store) map[storage.UserID]storage.User {
	rows := map[storage.UserID]storage.User{}
	for id := storage.UserID(1); id <= people; id++ {
		row := storage.User{
			ID: id, Handle: "u" + id.String(), Name: id.String(), CreatedAt: 1, UpdatedAt: 1,
			FollowingsVisibility: rapid.SampledFrom([]storage.Visibility{storage.ToEveryone, storage.ToEveryone, storage.ToFollowers, storage.ToNobody}).Draw(t, "visibility"),
			Undiscoverable:       rapid.IntRange(0, 5).Draw(t, "undiscoverable") == 0,
		}
		rows[id] = row
		must.OK(t, store.CreateUsers(context.Background(), []storage.User{row})[0].Err)
	}
	return rows
}

// wantedSuggestions is everybody who may be suggested, with the recommenders, by brute force.
type wantedSuggestions struct {
	via      map[storage.UserID][]storage.UserID
	excluded Exclusions
}

func wantSuggestions(store *oracle.Store, rows map[storage.UserID]storage.User, a *Audience, q SuggestionQuery) wantedSuggestions {
	followings := listOf(store, List{storage.Forward, q.User})
	viewers := listOf(store, List{storage.Forward, a.Viewer})
	w := wantedSuggestions{via: map[storage.UserID][]storage.UserID{}}
	out := map[storage.UserID]bool{}
	for _, f := range followings {
		list := listOf(store, List{storage.Forward, f})
		if a.Hides(f) || !a.Opens(List{storage.Forward, f}, rows[f], slices.Contains(viewers, f)) {
			continue
		}
		for _, c := range list {
			switch {
			case c == q.User:
			case slices.Contains(followings, c):
				if !out[c] {
					w.excluded.Followed++
				}
				out[c] = true
			case a.InBlock(c):
				if !out[c] {
					w.excluded.Blocked++
				}
				out[c] = true
			case slices.Contains(q.Dismissed, c):
				if !out[c] {
					w.excluded.Dismissed++
				}
				out[c] = true
			case a.Hides(c), rows[c].Undiscoverable:
			default:
				w.via[c] = append(w.via[c], f)
			}
		}
	}
	return w
}

// With enough budget, suggestions are the exact ranking. With less, every suggestion is correct for
// the followings asked so far, and in the end all followings have been asked.
func TestSuggestionsAreTheRanking(t *testing.T) {
	properties.Check(t, 100, func(t *rapid.T) {
		store := drawGraph(t)
		rows := drawPeople(t, store)
		g := drawPlanner(t, store)
		q := SuggestionQuery{
			User: storage.UserID(rapid.IntRange(1, people).Draw(t, "user")),
			Via:  people,
		}
		for id := storage.UserID(1); id <= people; id++ {
			if rapid.IntRange(0, 6).Draw(t, "dismissed") == 0 {
				q.Dismissed = append(q.Dismissed, id)
			}
		}
		want := wantSuggestions(store, rows, g.audience, q)
		var got []Suggestion
		pools := 0
		for page := 0; ; page++ {
			q.First = rapid.IntRange(1, 5).Draw(t, "first")
			s, err := g.Suggest(t.Context(), q)
			must.OK(t, err)
			for _, one := range s.Suggestions {
				full, ok := want.via[one.ID]
				must.That(t, ok && one.Shared <= len(full) && one.Shared == len(one.Via), "%+v is suggested, want one of %v", one, want.via)
				for _, via := range one.Via {
					must.That(t, slices.Contains(full, via), "%d does not recommend %d", via, one.ID)
				}
			}
			must.That(t, !s.Complete || pools > 0 || s.Excluded == want.excluded, "excluded are %+v, want %+v", s.Excluded, want.excluded)
			if s.Next.Pool != q.From.Pool {
				pools++
			}
			got = append(got, s.Suggestions...)
			must.That(t, !s.Complete || pools > 0 || s.More == (len(got) < len(want.via)), "after %d of %d: more %t", len(got), len(want.via), s.More)
			if !s.More {
				must.That(t, s.Complete, "the last page is not complete")
				break
			}
			must.Most(t, "pages", page, 5000)
			q.From = s.Next
		}
		score := map[storage.UserID]int64{}
		for _, one := range got {
			score[one.ID] += one.Score
		}
		for id := range want.via {
			must.Equal(t, fmt.Sprint("the score of ", id), score[id], int64(len(want.via[id])))
		}
		must.That(t, pools > 0 || slices.IsSortedFunc(got, better) && len(got) == len(want.via), "not the ranking of %v: %v", want.via, got)
	})
}

// popular always answers with the same users, the most followed first.
type popular struct {
	users []finding.PopularUser
	asked int
	since storage.Day // from the last call
	err   error
}

func (p *popular) Bundle(ctx context.Context, b *storage.Bundle) {
	finding.PopularLookups.Instead(ctx, b, storage.OneByOne(func(_ context.Context, q finding.PopularQuery) ([]finding.PopularUser, error) {
		p.asked++
		p.since = q.Since
		return p.users, p.err
	}))
	storage.UserLookups.Instead(ctx, b, func(_ context.Context, ids []storage.UserID) []storage.Result[storage.User] {
		return storage.Each(ids, func(id storage.UserID) storage.Result[storage.User] {
			return storage.Result[storage.User]{Found: id < 100}
		})
	})
}

func TestWhoFollowsNobodyGetsThePopular(t *testing.T) {
	store := oracle.New()
	rows := []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}, {ID: 3, Handle: "c", Undiscoverable: true}, {ID: 4, Handle: "d"},
		{ID: 5, Handle: "e"}, {ID: 6, Handle: "f"}, {ID: 7, Handle: "g"}}
	store.CreateUsers(t.Context(), rows)
	source := &popular{users: []finding.PopularUser{{User: 5, Followers: 9}, {User: 3, Followers: 8}, {User: 1, Followers: 7}, {User: 6, Followers: 6}, {User: 2, Followers: 5}, {User: 4, Followers: 5}, {User: 7, Followers: 0}}}
	g := New(store, 0, NewAudience(1, nil, []storage.UserID{6}))
	q := SuggestionQuery{User: 1, First: 2, Dismissed: []storage.UserID{4}, Popular: NewPopular(source, time.Now, nil).Users}
	var got []storage.UserID
	for {
		s, err := g.Suggest(t.Context(), q)
		must.That(t, err == nil && s.Popular && s.Complete, "%+v, %v", s, err)
		check.Equal(t, "excluded", s.Excluded, (Exclusions{Blocked: 1, Dismissed: 1}))
		for _, one := range s.Suggestions {
			got = append(got, one.ID)
		}
		if !s.More {
			break
		}
		q.From = s.Next
		// If a user follows a suggested user between two pages, that user does not come again, and
		// the pages do not end.
		follow := storage.EdgeChange{To: 2, Type: storage.Following, At: 1}
		store.ChangeEdges(t.Context(), storage.Forward, 1, []storage.EdgeChange{follow}, storage.ChangeOptions{Inverse: true})
	}
	check.Equal(t, "suggested", got, []storage.UserID{5, 2, 7})
}

func TestPopularIsAskedOnceAMinute(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	source := &popular{err: errors.New("shard unavailable")}
	p := NewPopular(source, func() time.Time { return now }, nil)
	_, err := p.Users(t.Context())
	check.Is(t, "of a shard that is away", err, source.err)
	source.err = nil
	for range 3 {
		_, err := p.Users(t.Context())
		must.OK(t, err)
	}
	check.Equal(t, "times that it was asked, once after the failure", source.asked, 2)
	now = now.Add(popularFor)
	_, err = p.Users(t.Context())
	check.That(t, err == nil && source.asked == 3, "a minute later asked %d times in all, %v", source.asked, err)
	check.Equal(t, "the day since which it asks who was active", source.since, storage.MicrosOf(now).Day()-popularDays)
}

// unheard answers once it is let: until then, all wait.
type unheard struct {
	popular
	let chan struct{}
}

func (s *unheard) Bundle(ctx context.Context, b *storage.Bundle) {
	select {
	case <-s.let:
	case <-ctx.Done():
	}
	s.popular.Bundle(ctx, b)
}

// A read is shared. If a shard is silent, whoever waits leaves when the own context ends, and the read goes on for the others.
func TestWhoWaitsForThePopularLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &unheard{popular{users: []finding.PopularUser{{User: 5, Followers: 9}}}, make(chan struct{})}
		p := NewPopular(source, time.Now, nil)
		leaver, leave := context.WithCancel(t.Context())
		left, got := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := p.Users(leaver)
			left <- err
		}()
		synctest.Wait() // the read has begun
		go func() {
			users, err := p.Users(t.Context())
			if err == nil && len(users) != 1 {
				err = fmt.Errorf("got %v", users)
			}
			got <- err
		}()
		synctest.Wait()
		began := time.Now()
		leave()
		check.Is(t, "who has left", <-left, context.Canceled)
		check.Most(t, "the time until it left", time.Since(began), 0)
		_, err := p.Users(leaver)
		check.Is(t, "who has left and asks again", err, context.Canceled)
		close(source.let)
		check.Is(t, "who has waited", <-got, nil)
		check.Equal(t, "how often it was asked", source.asked, 1)
	})
}

// Pinned users come first, in their order. Pinned users who do not exist are passed over. A pinned
// user is left out for the same reasons as any other user.
func TestThePinnedComeFirst(t *testing.T) {
	store := oracle.New()
	store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}, {ID: 3, Handle: "c", Undiscoverable: true}, {ID: 4, Handle: "d"},
		{ID: 5, Handle: "e"}, {ID: 6, Handle: "f"}, {ID: 7, Handle: "g"}, {ID: 8, Handle: "h"}})
	source := &popular{users: []finding.PopularUser{{User: 5, Followers: 9}, {User: 2, Followers: 8}, {User: 8, Followers: 7}}}
	from := NewPopular(source, time.Now, func() []storage.UserID { return []storage.UserID{7, 3, 999, 1, 6, 4, 2} })
	g := New(store, 0, NewAudience(1, nil, []storage.UserID{6}))
	q := SuggestionQuery{User: 1, First: 2, Dismissed: []storage.UserID{4}, Popular: from.Users}
	var got []storage.UserID
	var pins []bool
	for {
		s, err := g.Suggest(t.Context(), q)
		must.OK(t, err)
		for _, one := range s.Suggestions {
			got, pins = append(got, one.ID), append(pins, one.Pinned())
		}
		if !s.More {
			break
		}
		q.From = s.Next
	}
	check.Equal(t, "suggested", got, []storage.UserID{7, 2, 5, 8})
	check.Equal(t, "pinned", pins, []bool{true, true, false, false})
}

// If a user follows more than a pool takes, one row more than the pool is read.
func TestPoolsAreReadInTwoSteps(t *testing.T) {
	store := oracle.New()
	var edges []storage.Edge
	for id := storage.UserID(2); id < 500; id++ {
		edges = append(edges, storage.Edge{From: 1, To: id, Type: storage.Following, UpdateTime: storage.Micros(id)})
	}
	store.Apply(t.Context(), storage.Forward, edges, storage.IfNewer)
	reader := &limitedReader{Answerer: store}
	g := New(reader, 0, nil)
	g.sizes.maxPool = 300
	edges, err := g.newest(t.Context(), 1, storage.Position{})
	check.That(t, err == nil && len(edges) == 301 && slices.Equal(reader.limits, []int{firstPool, 301 - firstPool}), "%d followings from pages of %v rows: %v", len(edges), reader.limits, err)
	reader.limits = nil
	edges, err = g.newest(t.Context(), 1, storage.Position{UpdateTime: 10, Peer: 10})
	check.That(t, err == nil && len(edges) == 8 && slices.Equal(reader.limits, []int{firstPool}), "%d followings, the last, from pages of %v rows: %v", len(edges), reader.limits, err)
}

// As many candidates are read as the page shows, and then as many as drop out.
func TestCandidatesAreReadForThePage(t *testing.T) {
	store := oracle.New()
	edges := []storage.Edge{{From: 1, To: 2, Type: storage.Following, UpdateTime: 1}}
	rows := []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}}
	for id := storage.UserID(100); id < 200; id++ {
		edges = append(edges, storage.Edge{From: 2, To: id, Type: storage.Following, UpdateTime: 1})
		rows = append(rows, storage.User{ID: id, Handle: "u" + id.String(), Undiscoverable: id < 110})
	}
	store.CreateUsers(t.Context(), rows)
	store.Apply(t.Context(), storage.Forward, edges, storage.IfNewer)
	var reads []int // of how many users
	reader := double.Of(store)
	double.Before(reader, func(_ context.Context, ids []storage.UserID) error {
		reads = append(reads, len(ids))
		return nil
	}, storage.UserLookups)
	s, err := New(reader, 0, nil).Suggest(t.Context(), SuggestionQuery{User: 1, First: 19})
	must.That(t, err == nil && len(s.Suggestions) == 19 && s.Suggestions[0].ID == 110 && s.More, "%+v, %v", s, err)
	// Ten of the best 20 drop out, and so do 10 of the best 80. So 10 more of them are read.
	check.Equal(t, "users that were read at a time", reads, []int{20, 20, 10})
}
