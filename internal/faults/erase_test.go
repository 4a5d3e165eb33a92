package faults_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// TestDeletionSurvivesCrashes kills the program twice while it removes a user with 3,600 edges and
// requests: once while the client waits, and once while the rest of the deletion is taken up. In
// the end nothing of the user is left on either side, all other users' counts are exact, and the
// handle is nobody else's for 30 days.
func TestDeletionSurvivesCrashes(t *testing.T) {
	t.Parallel()
	mode := "binlog" // TestEraseContinuesAfterACrash of sqlstore is about the store alone, on each engine
	if !testenv.HasBinlog() {
		mode = "sync"
	}
	location := "mysql:" + strings.Join(testenv.SharedMariaDB(t, 2).FreshDatabases(t, 1), ";")
	e := newErasure(t, location)
	serve := func() *kithtest.Gateway {
		g := kithtest.Start(t, kithtest.Args("--store", location, "--redundancy", mode, "--jwt-secret", secret, "--log-level", "warn"))
		g.Token = e.token
		return g
	}
	first := serve()
	go first.Ask(`mutation { deleteAccount { complete } }`, nil) // no answer comes
	e.killHalfway(t, first)
	second := serve()
	e.killHalfway(t, second)
	last := serve()
	until(t, "the deletion ends", func() bool {
		r := storage.UserLookups.Read(t.Context(), e.store, victim)[0]
		return r.Err == nil && !r.Found
	})
	e.check(t)
	answer, err := last.Ask(`mutation { register(handle: "victim", name: "Somebody else", password: "correct horse") { viewer { user { handle } } } }`, nil)
	if err != nil || len(answer.Errors) != 1 || answer.Errors[0].Extensions["reason"] != "HANDLE_TAKEN" {
		t.Errorf("the handle is another's within 30 days: %+v, %v", answer, err)
	}
}

// victim is the user who is deleted; the others are 2 … 2001.
const (
	victim   storage.UserID = 1
	bystands storage.UserID = 2000
)

type erasure struct {
	store *sqlstore.Store
	token string
	begun int // rows of the victim
}

// newErasure makes a graph in which the victim has an edge or a request with most other users.
func newErasure(t *testing.T, location string) *erasure {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location, StatementTimeout: patience})
	must.OK(t, err)
	t.Cleanup(func() { _ = store.Close() })
	e := &erasure{store: store}
	users := []storage.User{{ID: victim, Handle: "victim", Name: "Victim", CreatedAt: 1, UpdatedAt: 1}}
	for id := victim + 1; id <= victim+bystands; id++ {
		users = append(users, storage.User{ID: id, Handle: "u" + id.String(), Name: "N", CreatedAt: 1, UpdatedAt: 1})
	}
	must.All(t, store.CreateUsers(t.Context(), users))
	var edges, requests []storage.Edge
	edge := func(list *[]storage.Edge, from, to storage.UserID, kind storage.EdgeType) {
		*list = append(*list, storage.Edge{From: from, To: to, Type: kind, UpdateTime: storage.Micros(1000 + len(*list))})
	}
	for id := victim + 1; id <= victim+bystands; id++ {
		switch {
		case id%10 == 0:
			edge(&edges, victim, id, storage.Blocking)
		case id%10 == 1:
			edge(&edges, id, victim, storage.Blocking)
		default:
			edge(&edges, victim, id, storage.Following)
			edge(&edges, id, victim, storage.Following)
		}
		if id%10 == 2 {
			edge(&requests, victim, id, storage.Accepted)
		}
		if id%10 == 3 {
			edge(&requests, id, victim, storage.Pending)
		}
		if id > victim+1 { // edges without the victim stay
			edge(&edges, id, id-1, storage.Following)
			edge(&edges, id-1, id, storage.Following)
		}
	}
	for _, side := range storage.Sides {
		list := edges
		if side.Truth() == storage.Requests {
			list = requests
		}
		must.All(t, store.Apply(t.Context(), side, list, storage.IfNewer))
	}
	var d deployment
	d.signs(t)
	e.token = d.token(t, int64(victim))
	e.begun = e.left(t)
	must.Least(t, "rows", e.begun, 3000)
	return e
}

// left is how many rows that have not ended the victim has on its own shard.
func (e *erasure) left(t *testing.T) (n int) {
	t.Helper()
	for _, side := range storage.Sides {
		rows := storage.RowLookups.Read(t.Context(), e.store, storage.RowsQuery{Side: side, Owner: victim, Limit: 10 * int(bystands)})[0]
		must.OK(t, rows.Err)
		n += len(rows.Value)
	}
	return n
}

// killHalfway kills a gateway after it has removed some more rows, but not all.
func (e *erasure) killHalfway(t *testing.T, g *kithtest.Gateway) {
	t.Helper()
	before := e.left(t)
	for deadline := time.Now().Add(patience); e.left(t) == before; {
		if time.Now().After(deadline) {
			t.Fatalf("nothing is removed; %s", g.Stderr())
		}
		time.Sleep(5 * time.Millisecond) // each look reads all rows
	}
	time.Sleep(rand.N(20 * time.Millisecond)) // at any point within a step
	g.Kill(t)
	left := e.left(t)
	must.Least(t, "rows that are left when it is killed", left, 1)
	t.Logf("killed with %d of %d rows left", left, e.begun)
}

// check checks what must be true at the end.
func (e *erasure) check(t *testing.T) {
	t.Helper()
	check.Most(t, "rows of the victim", e.left(t), 0)
	for _, side := range storage.Sides {
		var pairs []storage.Pair
		for id := victim + 1; id <= victim+bystands; id++ {
			pairs = append(pairs, side.Pair(id, victim))
		}
		for i, r := range storage.EdgeLookups[side].Read(t.Context(), e.store, pairs...) {
			must.That(t, r.Err == nil && r.Value.Type == storage.None, "%s of %v: %+v, %v", side, pairs[i], r.Value, r.Err)
		}
	}
	var others []storage.UserID
	for id := victim + 1; id <= victim+bystands; id++ {
		others = append(others, id)
	}
	for i, r := range storage.CountLookups.Read(t.Context(), e.store, others...) {
		want := int64(2) // both neighbours
		if others[i] == victim+1 || others[i] == victim+bystands {
			want = 1
		}
		if c := r.Value; r.Err != nil || c.Following != want || c.Follower != want || c.Friend != want {
			t.Fatalf("counts of user %s are %s, want %d of each: %v", others[i], fmt.Sprintf("%+v", c), want, r.Err)
		}
	}
	r := storage.CountLookups.Read(t.Context(), e.store, victim)[0]
	check.That(t, !r.Found && r.Err == nil, "the victim still has counts %+v: %v", r.Value, r.Err)
}
