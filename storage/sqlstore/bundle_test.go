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

// A bundle gives the same answers as its parts one by one.
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
	pages, edges := 0, 0
	for range 600 {
		b := drawBundle(r)
		seen.reset()
		if !s.oneStatement(ctx, &b) {
			continue
		}
		statements := len(seen.all())
		switch {
		case asked(b.Pages[0])+asked(b.Pages[1]) > 0:
			pages++
			if all, keys := seen.all(), asked(b.Users)+asked(b.Counts)+1; all[0].Keys != keys {
				t.Fatalf("a statement for %d keys counts %d", keys, all[0].Keys)
			}
		case asked(b.Edges[0])+asked(b.Edges[1]) > 0:
			edges++
		}
		if statements > 1 {
			t.Fatalf("%d statements for %+v", len(seen.all()), b)
		}
		same(t, "users", b.Users, func(ids []storage.UserID) []storage.Result[storage.User] { return s.Users(ctx, ids) })
		same(t, "counts", b.Counts, func(ids []storage.UserID) []storage.Result[storage.Counts] { return s.Counts(ctx, ids) })
		for _, side := range storage.Sides {
			same(t, fmt.Sprint("edges ", side), b.Edges[side], func(pairs []storage.Pair) []storage.Result[storage.Edge] { return s.Edges(ctx, side, pairs) })
			same(t, fmt.Sprint("pages ", side), b.Pages[side], func(queries []storage.PageQuery) []storage.Result[[]storage.Edge] { return s.Pages(ctx, side, queries) })
		}
	}
	if s.sql.LimitsBehindJoins && pages == 0 { // no page is part of one statement on this engine
		pages = 50
	}
	if pages < 50 || edges < 50 {
		t.Errorf("%d bundles with a page and %d with edges were answered: too few to show anything", pages, edges)
	}
}

func same[K, V any](t *testing.T, what string, got *storage.Lookup[K, V], read func([]K) []storage.Result[V]) {
	t.Helper()
	if got == nil {
		return
	}
	if want := read(got.Keys); !reflect.DeepEqual(got.Results, want) {
		t.Fatalf("%s %+v are\n%+v, want\n%+v", what, got.Keys, got.Results, want)
	}
}

// look is a look-up of keys, nil if there are none.
func look[V, K any](keys ...K) *storage.Lookup[K, V] {
	if len(keys) == 0 {
		return nil
	}
	return &storage.Lookup[K, V]{Keys: keys}
}

// fillForBundles makes 30 users, of whom 10 have no edge and 5 no counts, and edges of every type,
// some between ids without a user.
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
	if _, err := s.db.Shard(0).Write.ExecContext(t.Context(), `DELETE FROM user_counts WHERE user_id BETWEEN 6 AND 10`); err != nil {
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
		b.Users = look[storage.User](owner)
		if r.IntN(2) == 0 {
			b.Counts = look[storage.Counts](owner)
		}
		q := storage.PageQuery{Owner: owner, Limit: 1 + r.IntN(20), Backward: r.IntN(2) == 0, Type: storage.EdgeType(r.IntN(3))}
		if r.IntN(3) == 0 {
			q.After = storage.Position{UpdateTime: storage.Micros(r.IntN(50)), Peer: 20}
		}
		if r.IntN(3) == 0 {
			q.Before = storage.Position{UpdateTime: storage.Micros(r.IntN(50)), Peer: 20}
		}
		if r.IntN(5) == 0 {
			q.Owner = storage.UserID(1 + r.IntN(20)) // of another owner
		}
		b.Pages[r.IntN(2)] = look[[]storage.Edge](q)
		return b
	}
	b.Users, b.Counts = look[storage.User](some(3)...), look[storage.Counts](some(3)...)
	if r.IntN(3) == 0 {
		return b
	}
	for _, side := range [...]storage.Side{storage.Forward, storage.Inverse} {
		var pairs []storage.Pair
		for _, peer := range some(20) {
			owner := owner
			if r.IntN(10) == 0 {
				owner++
			}
			pairs = append(pairs, side.Pair(owner, peer))
		}
		b.Edges[side] = look[storage.Edge](pairs...)
	}
	return b
}

// Look-ups that are on several shards, or that are many, are not read as one statement.
func TestBundlesThatAreNone(t *testing.T) {
	files := t.TempDir()
	s, err := Open(t.Context(), Config{Location: "sqlite:" + filepath.Join(files, "a.db") + ";" + filepath.Join(files, "b.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	home, away := storage.UserID(1), storage.UserID(2)
	for s.shards.Of(away) == s.shards.Of(home) {
		away++
	}
	edge := func(from, to storage.UserID) *storage.Lookup[storage.Pair, storage.Edge] {
		return look[storage.Edge](storage.Pair{From: from, To: to})
	}
	page := func(q storage.PageQuery) [4]*storage.Lookup[storage.PageQuery, []storage.Edge] {
		return [4]*storage.Lookup[storage.PageQuery, []storage.Edge]{look[[]storage.Edge](q)}
	}
	type edges = [len(storage.AllSides)]*storage.Lookup[storage.Pair, storage.Edge]
	many := make([]storage.Pair, bundleKeys)
	for i := range many {
		many[i] = storage.Pair{From: home, To: storage.UserID(100 + i)}
	}
	for name, b := range map[string]storage.Bundle{
		"nothing":                {},
		"a user alone":           {Users: look[storage.User](home)},
		"two shards":             {Users: look[storage.User](home, away), Edges: edges{edge(home, away)}},
		"edges on another shard": {Users: look[storage.User](home), Edges: edges{storage.Inverse: edge(home, away)}},
		"edges alone":            {Edges: edges{edge(home, away), edge(away, home)}},
		"many keys":              {Users: look[storage.User](home), Edges: edges{look[storage.Edge](many...)}},
		"a page of many":         {Users: look[storage.User](home), Pages: page(storage.PageQuery{Owner: home, Limit: 5000})},
		"another's page":         {Users: look[storage.User](home), Pages: page(storage.PageQuery{Owner: home + 1000, Limit: 5})},
	} {
		if s.oneStatement(t.Context(), &b) {
			t.Errorf("%s is read as one", name)
		}
	}
}

// Bundles up to the bounds are one statement, larger ones are not.
func TestBundlesAreBounded(t *testing.T) {
	s := openSmall(t, "sqlite:"+filepath.Join(t.TempDir(), "kith.db"), nil)
	if err := errorOf(s.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a", Name: "A"}})); err != nil {
		t.Fatal(err)
	}
	follow := storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: 1}
	if err := errorOf(s.Apply(t.Context(), storage.Forward, []storage.Edge{follow}, storage.IfNewer)); err != nil {
		t.Fatal(err)
	}
	// of is a bundle with the edges of some owners to user 1, for a number of keys in a number of SELECTs.
	of := func(owners, pairs int) storage.Bundle {
		b := storage.Bundle{Users: look[storage.User](storage.UserID(1)), Edges: [len(storage.AllSides)]*storage.Lookup[storage.Pair, storage.Edge]{{}}}
		for i := range pairs {
			b.Edges[0].Keys = append(b.Edges[0].Keys, storage.Pair{From: storage.UserID(1 + i%owners), To: storage.UserID(100 + i)})
		}
		return b
	}
	page := func(limit int) storage.Bundle {
		q := look[[]storage.Edge](storage.PageQuery{Owner: 1, Limit: limit})
		return storage.Bundle{Users: look[storage.User](storage.UserID(1)), Pages: [4]*storage.Lookup[storage.PageQuery, []storage.Edge]{q}}
	}
	both := of(1, 1)
	both.Pages = page(5).Pages
	for _, c := range []struct {
		name   string
		bundle storage.Bundle
		one    bool
	}{
		{"as many keys as may be", of(1, bundleKeys-1), true},
		{"a key more", of(1, bundleKeys), false},
		{"as many owners as may be", of(bundleOwners-1, bundleOwners-1), true},
		{"an owner more", of(bundleOwners, bundleOwners), false},
		{"as long a page as may be", page(maxUserPage), true},
		{"a row more", page(maxUserPage + 1), false},
		{"a page and an edge", both, false},
	} {
		if one := s.oneStatement(t.Context(), &c.bundle); one != c.one {
			t.Errorf("%s: read as one: %t", c.name, one)
		}
	}
}

// If a shard does not answer, or the context has ended, all keys fail.
func TestBundlesFailAsAWhole(t *testing.T) {
	s, err := Open(t.Context(), Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fillForBundles(t, s, rand.New(rand.NewPCG(3, 4)))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, b := range map[string]storage.Bundle{
		"a page": {
			Users: look[storage.User](storage.UserID(1)), Counts: look[storage.Counts](storage.UserID(1)),
			Pages: [4]*storage.Lookup[storage.PageQuery, []storage.Edge]{look[[]storage.Edge](storage.PageQuery{Owner: 1, Limit: 5})},
		},
		"edges": {
			Users: look[storage.User](storage.UserID(1)), Counts: look[storage.Counts](storage.UserID(1)),
			Edges: [len(storage.AllSides)]*storage.Lookup[storage.Pair, storage.Edge]{
				look[storage.Edge](storage.Pair{From: 1, To: 2}, storage.Pair{From: 1, To: 3}), look[storage.Edge](storage.Pair{From: 2, To: 1}),
			},
		},
	} {
		if !s.oneStatement(ended, &b) {
			t.Fatalf("%s: nothing is answered", name)
		}
		failed(t, name, b.Users)
		failed(t, name, b.Counts)
		for _, side := range storage.Sides {
			failed(t, name, b.Edges[side])
			failed(t, name, b.Pages[side])
		}
	}
}

func failed[K, V any](t *testing.T, name string, l *storage.Lookup[K, V]) {
	t.Helper()
	if l == nil {
		return
	}
	if len(l.Results) != len(l.Keys) {
		t.Errorf("%s: %d answers to %v", name, len(l.Results), l.Keys)
	}
	for i, r := range l.Results {
		if r.Err == nil {
			t.Errorf("%s: %v has no error", name, l.Keys[i])
		}
	}
}
