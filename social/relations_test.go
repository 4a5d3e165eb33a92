package social_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/social"
	"kith/storage"
	"kith/storage/sqlstore"
)

// post is a redundancy mode that holds rows back and delivers them later, in any order and more
// than once, together with the changes that follow from them.
type post struct {
	store  storage.Store
	inline bool

	mu   sync.Mutex
	held []storage.Row
	seen map[storage.Row]bool
}

func (p *post) Inline() bool { return p.inline }

func (p *post) Propagate(_ context.Context, written []storage.Written) error {
	p.count(written)
	return nil
}

// count keeps each row that is new. It may still be delivered many times.
func (p *post) count(written []storage.Written) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range written {
		if !p.seen[w.Row] {
			p.seen[w.Row] = true
			p.held = append(p.held, w.Row)
		}
	}
}

// deliver applies a row that is held. If again is set, it keeps the row for another delivery.
func (p *post) deliver(t fataler, i int, again bool) {
	p.mu.Lock()
	row := p.held[i]
	if !again {
		p.held = slices.Delete(p.held, i, i+1)
	}
	p.mu.Unlock()
	r := p.store.Apply(context.Background(), row.Side.Replica(), []storage.Edge{row.Edge}, storage.IfNewer)[0]
	check.That(t, r.Err == nil, "deliver %+v: %v", row, r.Err)
	p.count(r.Value.Also)
}

func (p *post) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held)
}

type fataler interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// torn is a store that does not write all rows to the other shards at once.
type torn struct {
	storage.Store
	breaks func() bool
}

func (s torn) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	if s.breaks() {
		results := make([]storage.Result[storage.Changed], len(edges))
		for i := range results {
			results[i].Err = fmt.Errorf("%w: torn off", storage.ErrUnavailable)
		}
		return results
	}
	return s.Store.Apply(ctx, side, edges, rule)
}

// EndEdges writes each row separately, the row of the other end first.
func (s torn) EndEdges(ctx context.Context, _ storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
	results := make([]storage.Result[storage.Edge], len(rows))
	for i, row := range rows {
		end := row.Edge.Pair().Edge(storage.None, max(at, row.Edge.UpdateTime+1))
		if there := storage.EdgeLookups[row.Side.Other()].Read(ctx, s.Store, end.Pair())[0]; there.Found {
			end.UpdateTime = max(end.UpdateTime, there.Value.UpdateTime+1)
		}
		for _, side := range []storage.Side{row.Side.Other(), row.Side} {
			r := s.Apply(ctx, side, []storage.Edge{end}, storage.IfNewer)[0]
			results[i].Err, results[i].Found = r.Err, r.Err == nil && r.Value.Row.Type == storage.None
			if r.Err != nil {
				break
			}
			results[i].Value = end
		}
	}
	return results
}

// acts are the things that users do to each other.
var acts = []struct {
	name string
	do   func(*social.Relations, context.Context, storage.Answerer, storage.UserID, storage.UserID) error
}{
	{"block", func(t *social.Relations, ctx context.Context, people storage.Answerer, a, b storage.UserID) error {
		_, err := t.Block(ctx, people, a, b)
		return err
	}},
	{"unblock", func(t *social.Relations, ctx context.Context, _ storage.Answerer, a, b storage.UserID) error {
		_, err := t.Unblock(ctx, a, b)
		return err
	}},
	{"follow", func(t *social.Relations, ctx context.Context, people storage.Answerer, a, b storage.UserID) error {
		relations, _, err := t.Follow(ctx, people, a, []storage.UserID{b})
		return errors.Join(err, relations[0].Err)
	}},
	{"unfollow", func(t *social.Relations, ctx context.Context, _ storage.Answerer, a, b storage.UserID) error {
		_, _, err := t.Unfollow(ctx, a, []storage.UserID{b})
		return err
	}},
	{"ask", func(t *social.Relations, ctx context.Context, people storage.Answerer, a, b storage.UserID) error {
		_, err := t.Ask(ctx, people, a, b, "")
		return err
	}},
	{"accept", func(t *social.Relations, ctx context.Context, _ storage.Answerer, a, b storage.UserID) error {
		return t.Accept(ctx, storage.Requests, a, b)[0].Err
	}},
	{"decline", func(t *social.Relations, ctx context.Context, _ storage.Answerer, a, b storage.UserID) error {
		_, err := t.Decline(ctx, a, b)
		return err
	}},
	{"cancel", func(t *social.Relations, ctx context.Context, _ storage.Answerer, a, b storage.UserID) error {
		_, err := t.Cancel(ctx, a, b)
		return err
	}},
	{"remove", func(t *social.Relations, ctx context.Context, _ storage.Answerer, a, b storage.UserID) error {
		_, err := t.Remove(ctx, a, b)
		return err
	}},
}

// world is some users of a store and two gateways, whose clocks differ.
type world struct {
	store    storage.Store
	users    []storage.UserID
	post     *post
	gateways [2]*social.Relations
	clock    time.Duration
}

const usersOfWorld = 3

func newWorld(t fataler, store storage.Store, first storage.UserID, inline bool, breaks func() bool, skew time.Duration) *world {
	t.Helper()
	w := &world{store: store, post: &post{store: store, inline: inline, seen: map[storage.Row]bool{}}}
	var users []storage.User
	for i := range storage.UserID(usersOfWorld) {
		id := first + i
		w.users = append(w.users, id)
		users = append(users, storage.User{ID: id, Handle: "u" + id.String(), Name: "N", CreatedAt: 1, UpdatedAt: 1})
	}
	for _, r := range store.CreateUsers(context.Background(), users) {
		must.That(t, r.Err == nil && r.Value, "create users: %v", r.Err)
	}
	begin := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	for i := range w.gateways {
		w.gateways[i] = social.NewRelations(social.Relations{
			Store: torn{store, breaks}, Redundancy: w.post, Rules: social.NewRules(social.Rules{RequestPause: time.Nanosecond}),
			Now: func() time.Time { return begin.Add(w.clock + time.Duration(i)*skew) },
		})
	}
	return w
}

// refused reports whether an act ended with an error that is allowed.
func refused(err error) bool {
	return errors.Is(err, storage.ErrForbidden) || errors.Is(err, storage.ErrNoEdge)
}

func (w *world) act(t fataler, gateway, act int, from, to storage.UserID) {
	t.Helper()
	err := acts[act].do(w.gateways[gateway], context.Background(), w.store, from, to)
	check.That(t, err == nil || refused(err), "user %s does %s towards %s: %v", from, acts[act].name, to, err)
}

// quiet delivers everything that is held, in the order that pick draws.
func (w *world) quiet(t fataler, pick func(n int) int) {
	for len(w.post.held) > 0 {
		w.post.deliver(t, pick(len(w.post.held)), false)
	}
}

// check checks what must be true once everything has arrived.
func (w *world) check(t fataler) {
	t.Helper()
	ctx := context.Background()
	row := func(side storage.Side, pair storage.Pair) storage.Edge {
		r := storage.EdgeLookups[side].Read(ctx, w.store, pair)[0]
		must.That(t, r.Err == nil, "read %s: %v", side, r.Err)
		if !r.Found {
			return storage.Edge{From: pair.From, To: pair.To}
		}
		return r.Value
	}
	want := map[storage.UserID]storage.Counts{}
	add := func(id storage.UserID, c storage.Counts) {
		sum := want[id]
		sum.Following, sum.Follower, sum.Friend = sum.Following+c.Following, sum.Follower+c.Follower, sum.Friend+c.Friend
		want[id] = sum
	}
	for _, a := range w.users {
		for _, b := range w.users {
			if a == b {
				continue
			}
			pair, back := storage.Pair{From: a, To: b}, storage.Pair{From: b, To: a}
			for _, side := range [...]storage.Side{storage.Forward, storage.Requests} {
				must.Equal(t, fmt.Sprintf("%s beside %s", side, side.Replica()), row(side, pair), row(side.Replica(), pair))
			}
			if row(storage.Forward, pair).Type == storage.Blocking {
				e := row(storage.Forward, back)
				must.That(t, e.Type != storage.Following, "%s blocks %s, who follows: %+v against %+v", a, b, row(storage.Forward, pair), e)
				for _, p := range []storage.Pair{pair, back} {
					e := row(storage.Requests, p)
					must.That(t, e.Type != storage.Pending, "%s blocks %s, and a request is pending: %+v", a, b, e)
				}
			}
			if row(storage.Forward, pair).Type == storage.Following {
				add(a, storage.Counts{Following: 1})
				add(b, storage.Counts{Follower: 1})
				if row(storage.Forward, back).Type == storage.Following {
					add(a, storage.Counts{Friend: 1})
				}
			}
		}
	}
	for i, r := range storage.CountLookups.Read(ctx, w.store, w.users...) {
		got := r.Value
		got.Version = 0
		must.That(t, r.Err == nil && got == want[w.users[i]], "counts of %s are %+v, want %+v: %v", w.users[i], got, want[w.users[i]], r.Err)
	}
}

// schedule is one interleaving, drawn from a seed. A shorter schedule of the same seed is the
// beginning of a longer one.
type schedule struct {
	seed     uint64
	steps    int
	breaking int           // percent of the writes to other shards that fail in the call
	skew     time.Duration // of the second gateway's clock
	inline   bool
}

// interleave is the property. Two gateways do anything in any order, and their rows arrive on other
// shards late, repeatedly and in any order. Once everything has arrived, nobody follows or asks if
// one of the two blocks the other, both sides are equal, and all counts are exact.
func (s schedule) interleave(t fataler, store storage.Store, first storage.UserID) {
	t.Helper()
	random := rand.New(rand.NewPCG(s.seed, 0))
	w := newWorld(t, store, first, s.inline, func() bool { return random.IntN(100) < s.breaking }, s.skew)
	for range s.steps {
		w.clock += time.Duration(random.IntN(3)) * time.Millisecond
		if n := len(w.post.held); n > 0 && random.IntN(3) == 0 {
			w.post.deliver(t, random.IntN(n), random.IntN(3) == 0)
			continue
		}
		from := random.IntN(usersOfWorld)
		to := (from + 1 + random.IntN(usersOfWorld-1)) % usersOfWorld
		w.act(t, random.IntN(2), random.IntN(len(acts)), w.users[from], w.users[to])
	}
	w.quiet(t, random.IntN)
	w.check(t)
}

func TestNoFollowLivesBetweenBlockedUsers(t *testing.T) {
	apart := func(a, b storage.UserID) bool { return a == b }
	oneApart := func(a, b storage.UserID) bool { return a == b || a != 1 && b != 1 }
	for name, c := range map[string]struct {
		inline bool
		make   func() storage.Store
	}{
		"one shard, in one transaction": {true, func() storage.Store { return oracle.New() }},
		"one shard, by replication":     {false, func() storage.Store { return oracle.New() }},
		"a shard each, in the call":     {true, func() storage.Store { return oracle.New(oracle.Together(apart)) }},
		"a shard each, by replication":  {false, func() storage.Store { return oracle.New(oracle.Together(apart)) }},
		"two of three on one shard":     {true, func() storage.Store { return oracle.New(oracle.Together(oneApart)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			properties.Check(t, 100, func(t *rapid.T) {
				s := schedule{
					steps:    rapid.IntRange(1, 60).Draw(t, "steps"),
					breaking: rapid.SampledFrom([]int{0, 30, 100}).Draw(t, "percent that fail"),
					skew:     time.Duration(rapid.IntRange(-5, 5).Draw(t, "skew")) * time.Millisecond,
					seed:     rapid.Uint64().Draw(t, "seed"),
					inline:   c.inline,
				}
				for range 30 {
					s.seed++
					s.interleave(t, c.make(), 1)
				}
			})
		})
	}
}

// onServers runs a test on databases, two shards each.
func onServers(t *testing.T, test func(t *testing.T, store storage.Store)) {
	run := func(name string, locate func(t *testing.T) string) {
		t.Run(name, func(t *testing.T) {
			store := opened.Store(t, sqlstore.Config{Location: locate(t), StatementTimeout: time.Minute})
			test(t, store)
		})
	}
	run("SQLite", func(t *testing.T) string {
		dir := t.TempDir()
		return "sqlite:" + filepath.Join(dir, "0.db") + ";" + filepath.Join(dir, "1.db")
	})
	run("MariaDB", func(t *testing.T) string {
		return "mysql:" + strings.Join(testenv.SharedMariaDB(t, 2).FreshDatabases(t, 1), ";")
	})
}

func TestNoFollowLivesBetweenBlockedUsersInDatabases(t *testing.T) {
	onServers(t, func(t *testing.T, store storage.Store) {
		for n := range 60 {
			s := schedule{
				seed: uint64(n), steps: 25, breaking: []int{0, 30, 100}[n%3],
				skew: time.Duration(n%7-3) * time.Millisecond, inline: n%2 == 0,
			}
			s.interleave(t, store, storage.UserID(1+n*usersOfWorld))
			must.That(t, !t.Failed(), "schedule %+v", s)
		}
	})
}

// The same property, with both gateways and the delivery of rows running at the same time.
func TestNoFollowLivesBetweenBlockedUsersAtOnce(t *testing.T) {
	onServers(t, func(t *testing.T, store storage.Store) {
		for n := range 6 {
			var breaking atomic.Int64
			w := newWorld(t, store, storage.UserID(1+n*usersOfWorld), n%2 == 0,
				func() bool { return breaking.Add(1)%3 == 0 }, time.Millisecond)
			w.clock = time.Duration(n) * time.Hour // many goroutines read it, so it stands still; versions still rise
			var acting, delivering sync.WaitGroup
			for g := range 4 {
				acting.Go(func() {
					random := rand.New(rand.NewPCG(uint64(n), uint64(g)))
					for range 20 {
						from := random.IntN(usersOfWorld)
						to := (from + 1 + random.IntN(usersOfWorld-1)) % usersOfWorld
						w.act(t, g%2, random.IntN(len(acts)), w.users[from], w.users[to])
					}
				})
			}
			done := make(chan struct{})
			delivering.Go(func() {
				random := rand.New(rand.NewPCG(uint64(n), 99))
				for {
					select {
					case <-done:
						return
					default:
					}
					if held := w.post.waiting(); held > 0 {
						w.post.deliver(t, random.IntN(held), random.IntN(3) == 0)
					}
				}
			})
			acting.Wait()
			close(done)
			delivering.Wait()
			w.quiet(t, rand.New(rand.NewPCG(uint64(n), 7)).IntN)
			w.check(t)
		}
	})
}
