package sqlstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"kith/internal/testenv"
	"kith/storage"
)

// What a bundle answers is what its parts answer apart.
func TestBundlesAnswerLikeTheirParts(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { checkBundles(t, "sqlite:"+filepath.Join(t.TempDir(), "kith.db")) })
	t.Run("MariaDB", func(t *testing.T) {
		checkBundles(t, "mysql:"+testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0])
	})
}

func checkBundles(t *testing.T, location string) {
	seen := &recorder{}
	s, err := Open(t.Context(), Config{Location: location, StatementTimeout: time.Minute, OnStatement: seen.record})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := rand.New(rand.NewPCG(3, 4))
	fillForBundles(t, s, r)

	ctx := t.Context()
	pages, edges, people := 0, 0, 0
	for range 600 {
		b := drawBundle(r)
		seen.reset()
		got, ok := s.Bundle(ctx, b)
		if !ok {
			continue
		}
		statements := len(seen.all())
		switch {
		case len(b.Pages[0])+len(b.Pages[1]) > 0:
			pages++
		case len(b.Edges[0])+len(b.Edges[1]) > 0:
			edges++
		default:
			people++
			statements /= 2 // who is no user is asked for in counts
		}
		if statements > 1 {
			t.Fatalf("%d statements for %+v", len(seen.all()), b)
		}
		want := storage.BundleAnswers{Users: s.Users(ctx, b.Users), Counts: s.Counts(ctx, b.Counts)}
		for i := range b.Edges {
			want.Edges[i] = s.Edges(ctx, storage.Side(i), b.Edges[i])
			want.Pages[i] = s.Pages(ctx, storage.Side(i), b.Pages[i])
		}
		same(t, b, "users", got.Users, want.Users)
		same(t, b, "counts", got.Counts, want.Counts)
		for i := range b.Edges {
			same(t, b, fmt.Sprint("edges ", i), got.Edges[i], want.Edges[i])
			same(t, b, fmt.Sprint("pages ", i), got.Pages[i], want.Pages[i])
		}
	}
	if pages < 50 || edges < 50 || people < 50 {
		t.Errorf("%d bundles with a page, %d with edges and %d of people were answered: too few to tell", pages, edges, people)
	}
}

func same[V any](t *testing.T, b storage.Bundle, what string, got, want []storage.Result[V]) {
	t.Helper()
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v: %s are\n%+v, want\n%+v", b, what, got, want)
	}
}

// fillForBundles makes 30 users, of whom 10 have no edge and 5 no counts, and edges of every
// type, some of nobody.
func fillForBundles(t *testing.T, s *Store, r *rand.Rand) {
	t.Helper()
	var users []storage.User
	for id := storage.UserID(1); id <= 30; id++ {
		users = append(users, storage.User{
			ID: id, Handle: fmt.Sprint("u", id), Name: fmt.Sprint("N ", id), Bio: fmt.Sprint("b", id), AvatarURL: "https://a",
			CreatedAt: storage.Micros(id), UpdatedAt: storage.Micros(2 * id), Undiscoverable: id%3 == 0,
			FollowingsVisibility: storage.Visibility(id % 3), FollowersVisibility: storage.Visibility(id % 2),
		})
	}
	for _, c := range s.CreateUsers(t.Context(), users) {
		if c.Err != nil {
			t.Fatal(c.Err)
		}
	}
	var edges []storage.Edge
	for from := storage.UserID(1); from <= 20; from++ {
		for to := storage.UserID(1); to <= 45; to++ {
			if r.IntN(2) == 0 && from != to {
				edges = append(edges, storage.Edge{From: from, To: to, Type: storage.EdgeType(r.IntN(3)), UpdateTime: storage.Micros(r.IntN(50))})
			}
		}
	}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		for _, a := range s.Apply(t.Context(), side, edges, storage.IfNewer) {
			if a.Err != nil {
				t.Fatal(a.Err)
			}
		}
	}
	if _, err := s.db.Shards[0].Write.ExecContext(t.Context(), `DELETE FROM user_counts WHERE user_id BETWEEN 6 AND 10`); err != nil {
		t.Fatal(err)
	}
}

func drawBundle(r *rand.Rand) (b storage.Bundle) {
	owner := storage.UserID(1 + r.IntN(35))
	some := func(most int) (ids []storage.UserID) {
		for range r.IntN(most + 1) {
			ids = append(ids, storage.UserID(1+r.IntN(50)))
		}
		return ids
	}
	if r.IntN(2) == 0 {
		b.Users = []storage.UserID{owner}
		if r.IntN(2) == 0 {
			b.Counts = b.Users
		}
		q := storage.PageQuery{Owner: owner, Limit: 1 + r.IntN(20), Backward: r.IntN(2) == 0, Type: storage.EdgeType(r.IntN(3))}
		if r.IntN(3) == 0 {
			q.After = storage.Position{UpdateTime: storage.Micros(r.IntN(50)), Peer: 20}
		}
		if r.IntN(3) == 0 {
			q.Before = storage.Position{UpdateTime: storage.Micros(r.IntN(50)), Peer: 20}
		}
		if r.IntN(5) == 0 {
			q.Owner = storage.UserID(1 + r.IntN(20)) // another's
		}
		b.Pages[r.IntN(2)] = []storage.PageQuery{q}
		return b
	}
	b.Users, b.Counts = some(3), some(3)
	if r.IntN(3) == 0 {
		return b
	}
	for i := range b.Edges {
		for _, peer := range some(20) {
			owner := owner
			if r.IntN(10) == 0 {
				owner++
			}
			b.Edges[i] = append(b.Edges[i], storage.Side(i).Pair(owner, peer))
		}
	}
	return b
}

// What does not lie on one shard, or is much, is not read as one.
func TestBundlesThatAreNone(t *testing.T) {
	files := t.TempDir()
	s, err := Open(t.Context(), Config{Location: "sqlite:" + filepath.Join(files, "a.db") + ";" + filepath.Join(files, "b.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	home, away := storage.UserID(1), storage.UserID(2)
	for s.place.Of(away) == s.place.Of(home) {
		away++
	}
	pair := func(from, to storage.UserID) []storage.Pair { return []storage.Pair{{From: from, To: to}} }
	many := make([]storage.Pair, bundleKeys)
	for i := range many {
		many[i] = storage.Pair{From: home, To: storage.UserID(100 + i)}
	}
	for name, b := range map[string]storage.Bundle{
		"nothing":                {},
		"a user alone":           {Users: []storage.UserID{home}},
		"two shards":             {Users: []storage.UserID{home, away}, Edges: [2][]storage.Pair{pair(home, away)}},
		"edges on another shard": {Users: []storage.UserID{home}, Edges: [2][]storage.Pair{storage.Inverse: pair(home, away)}},
		"edges alone":            {Edges: [2][]storage.Pair{pair(home, away), pair(away, home)}},
		"many keys":              {Users: []storage.UserID{home}, Edges: [2][]storage.Pair{many}},
		"a page of many":         {Users: []storage.UserID{home}, Pages: [2][]storage.PageQuery{{{Owner: home, Limit: 5000}}}},
		"another's page":         {Users: []storage.UserID{home}, Pages: [2][]storage.PageQuery{{{Owner: home + 1000, Limit: 5}}}},
	} {
		if _, ok := s.Bundle(t.Context(), b); ok {
			t.Errorf("%s is read as one", name)
		}
	}
}

// A shard that does not answer fails all keys, and a context that has ended.
func TestBundlesFailAsAWhole(t *testing.T) {
	s, err := Open(t.Context(), Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fillForBundles(t, s, rand.New(rand.NewPCG(3, 4)))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	user := []storage.UserID{1}
	for name, b := range map[string]storage.Bundle{
		"a page": {Users: user, Counts: user, Pages: [2][]storage.PageQuery{{{Owner: 1, Limit: 5}}}},
		"edges":  {Users: user, Counts: user, Edges: [2][]storage.Pair{{{From: 1, To: 2}, {From: 1, To: 3}}, {{From: 2, To: 1}}}},
	} {
		got, ok := s.Bundle(ended, b)
		if !ok || len(got.Users) != 1 || len(got.Counts) != 1 {
			t.Fatalf("%s: %+v, %v", name, got, ok)
		}
		errs := []error{got.Users[0].Err, got.Counts[0].Err}
		for i := range got.Edges {
			for _, e := range got.Edges[i] {
				errs = append(errs, e.Err)
			}
			for _, p := range got.Pages[i] {
				errs = append(errs, p.Err)
			}
		}
		if n := 2 + len(b.Edges[0]) + len(b.Edges[1]) + len(b.Pages[0]); len(errs) != n {
			t.Errorf("%s: %d answers, want %d", name, len(errs), n)
		}
		for i, err := range errs {
			if err == nil {
				t.Errorf("%s: answer %d has no error", name, i)
			}
		}
	}
}
