package replication_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/replication"
	"kith/storage"
	"kith/storage/sqlstore"
)

// engines are the stores on which all relations between users are propagated to the other side. They have
// two shards each, if the engine has shards.
var engines = map[string]func(*testing.T) storage.Store{
	"memory": func(*testing.T) storage.Store { return oracle.New() },
	"sqlite": func(t *testing.T) storage.Store {
		folder := t.TempDir()
		return openAt(t, "sqlite:"+filepath.Join(folder, "a.db")+";"+filepath.Join(folder, "b.db"))
	},
	"mariadb": func(t *testing.T) storage.Store {
		return openAt(t, "mysql:"+strings.Join(testenv.SharedMariaDB(t, 2).FreshDatabases(t, 1), ";"))
	},
}

func openAt(t *testing.T, location string) storage.Store {
	t.Helper()
	return opened.Store(t, sqlstore.Config{Location: location, StatementTimeout: 30 * time.Second})
}

// ways are the two ways in which rows are written to their other sides: through the lanes, and in a
// call.
var ways = map[string]func(*testing.T, storage.Store) func(rows []storage.Row){
	"lanes": func(t *testing.T, store storage.Store) func([]storage.Row) {
		a := replication.New(replication.Config{Store: store, Shards: 2, MaxPending: 50, BatchRows: 20, Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); a.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-ended })
		return func(rows []storage.Row) {
			f := a.Feed("test")
			defer f.Close()
			err := applyAll(context.Background(), f, rows)
			check.That(t, err == nil, "%v", err)
		}
	},
	"calls": func(t *testing.T, store storage.Store) func([]storage.Row) {
		c := replication.Propagator{Store: store, Logger: slog.New(slog.DiscardHandler)}
		return func(rows []storage.Row) {
			written := storage.Each(rows, func(r storage.Row) storage.Written { return storage.Written{Row: r} })
			for _, left := range c.Propagate(context.Background(), written) {
				t.Errorf("%+v is left", left)
			}
		}
	},
}

// everywhere runs a test on all engines, with both ways of propagating rows.
func everywhere(t *testing.T, test func(*testing.T, *relations)) {
	for engine, open := range engines {
		for way, propagate := range ways {
			t.Run(engine+" "+way, func(t *testing.T) {
				r := &relations{store: open(t)}
				users := make([]storage.User, people)
				for i := range users {
					id := storage.UserID(i + 1)
					users[i] = storage.User{ID: id, Handle: "u" + id.String(), Name: "U", CreatedAt: 1, UpdatedAt: 1}
				}
				must.All(t, r.store.CreateUsers(t.Context(), users))
				r.propagate = propagate(t, r.store)
				test(t, r)
			})
		}
	}
}

// people is the number of users: few, so that they meet. They are on both shards.
const people = 7

// relations is what users have done to each other, and the rows that have to be propagated.
type relations struct {
	store     storage.Store
	propagate func([]storage.Row)

	mu   sync.Mutex
	rows []storage.Row // written by users, not delivered yet
}

// edge makes a change of an edge. It is no error if a rule forbids the change.
func (r *relations) edge(t testing.TB, change storage.EdgeChange, from storage.UserID) storage.Changed {
	t.Helper()
	result := r.store.ChangeEdges(context.Background(), storage.Forward, from, []storage.EdgeChange{change}, storage.ChangeOptions{})[0]
	check.That(t, result.Err == nil || errors.Is(result.Err, storage.ErrForbidden), "%d: %+v: %v", from, change, result.Err)
	r.wrote(result.Value.Written())
	return result.Value
}

// request changes a request by one act.
func (r *relations) request(t testing.TB, from, to storage.UserID, act storage.EdgeType, at storage.Micros) storage.Changed {
	t.Helper()
	result, err := storagetest.Request(context.Background(), r.store, storage.Pair{From: from, To: to},
		storage.EdgeChange{Type: act, At: at}, storage.ChangeOptions{TTL: storage.DefaultRequestTTL})
	check.That(t, err == nil || errors.Is(err, storage.ErrForbidden) || errors.Is(err, storage.ErrNoEdge), "request %d→%d, act %d: %v", from, to, act, err)
	r.wrote(result.Written())
	return result
}

func (r *relations) wrote(rows []storage.Written) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range rows {
		r.rows = append(r.rows, w.Row)
	}
}

// take returns the rows that have to be delivered, and removes them.
func (r *relations) take() []storage.Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := r.rows
	r.rows = nil
	return rows
}

// deliver propagates the rows that have been written, in their order.
func (r *relations) deliver() { r.propagate(r.take()) }

// row reads one row.
func (r *relations) row(t testing.TB, side storage.Side, from, to storage.UserID) storage.Edge {
	t.Helper()
	found := storage.EdgeLookups[side].Read(context.Background(), r.store, storage.Pair{From: from, To: to})[0]
	must.OK(t, found.Err)
	return found.Value
}

// agree checks that both sides of both pairs of tables are the same, that no follow exists beside a
// block, and that all counts are exact.
func (r *relations) agree(t *testing.T) {
	t.Helper()
	var ids []storage.UserID
	counts := map[storage.UserID]storage.Counts{}
	for from := storage.UserID(1); from <= people; from++ {
		ids = append(ids, from)
		for to := storage.UserID(1); to <= people; to++ {
			if from == to {
				continue
			}
			for _, side := range []storage.Side{storage.Forward, storage.Requests} {
				if truth, replica := r.row(t, side, from, to), r.row(t, side.Replica(), from, to); truth != replica {
					t.Errorf("%d→%d is %+v in %s and %+v in %s", from, to, truth, side, replica, side.Replica())
				}
			}
			there, back := r.row(t, storage.Forward, from, to), r.row(t, storage.Forward, to, from)
			if there.Type == storage.Blocking && (back.Type == storage.Following || r.row(t, storage.Requests, to, from).Type == storage.Pending) {
				t.Errorf("%d blocks %d and is followed, or asked, by it", from, to)
			}
			if there.Type == storage.Following {
				c, d := counts[from], counts[to]
				c.Following++
				if back.Type == storage.Following {
					c.Friend++
				}
				counts[from] = c
				d = counts[to]
				d.Follower++
				counts[to] = d
			}
		}
	}
	for i, found := range storage.CountLookups.Read(context.Background(), r.store, ids...) {
		found.Value.Version = 0
		check.That(t, found.Err == nil && found.Value == counts[ids[i]], "user %d has counts %+v (%v), its rows are %+v", ids[i], found.Value, found.Err, counts[ids[i]])
	}
}

// Two gateways do at the same time whatever users may do, and the rows that they have written are
// delivered late, twice, and in any order, by several goroutines. Once all rows have arrived, both sides
// of everything agree, there is no follow between two users if one blocks the other, and the counts are
// exact.
func TestDelayedDoubledAndReordered(t *testing.T) {
	operations := 300
	if os.Getenv("KITH_TEST_LONG") == "1" {
		operations = 6000
	}
	everywhere(t, func(t *testing.T, r *relations) {
		seed := rand.Uint64() % 1_000_000
		if text := os.Getenv("KITH_TEST_SEED"); text != "" {
			var err error
			seed, err = strconv.ParseUint(text, 10, 64)
			must.OK(t, err)
		}
		defer func() {
			if t.Failed() {
				t.Logf("KITH_TEST_SEED=%d", seed)
			}
		}()
		var gateways, propagators sync.WaitGroup
		written := make(chan struct{})
		for i := range uint64(2) {
			random := rand.New(rand.NewPCG(seed, i))
			skew := storage.Micros(random.Int64N(2000)) // clocks differ between gateways
			gateways.Go(func() {
				for range operations {
					r.doSomething(t, random, storage.MicrosOf(time.Now())+skew)
				}
			})
		}
		for i := range uint64(3) {
			random := rand.New(rand.NewPCG(seed, 10+i))
			propagators.Go(func() {
				var late []storage.Row
				for more := true; more || len(late) > 0; {
					select {
					case <-written:
						more = false
					default:
					}
					late = append(late, r.take()...)
					random.Shuffle(len(late), func(i, k int) { late[i], late[k] = late[k], late[i] })
					n := len(late)
					if more {
						n = random.IntN(n + 1)
					}
					r.propagate(late[:n:n])
					again := late[:random.IntN(n/4+1)] // these are delivered once more, later
					late = late[n:]
					if more {
						late = append(late, again...)
					}
				}
			})
		}
		gateways.Wait()
		close(written)
		propagators.Wait()
		r.deliver()
		r.agree(t)
	})
}

// doSomething does one thing that a user might do.
func (r *relations) doSomething(t testing.TB, random *rand.Rand, now storage.Micros) {
	from := storage.UserID(1 + random.IntN(people))
	to := storage.UserID(1 + random.IntN(people))
	if from == to {
		return
	}
	switch n := random.IntN(24); {
	case n >= 22: // accepts or declines
		r.edge(t, storage.EdgeChange{To: to, Type: storage.EdgeType(n - 22), Ends: storage.Requested, At: now}, from)
	case n >= 20:
		r.edge(t, storage.EdgeChange{To: to, Type: storage.Requested, At: now}, from)
	case n < 7:
		r.edge(t, storage.EdgeChange{To: to, Type: storage.Following, At: now}, from)
	case n < 9:
		r.edge(t, storage.EdgeChange{To: to, Type: storage.None, At: now}, from)
	case n < 11:
		r.edge(t, storage.EdgeChange{To: to, Type: storage.Blocking, At: now}, from)
	case n < 14:
		r.edge(t, storage.EdgeChange{To: to, Type: storage.None, Ends: storage.Blocking, At: now}, from)
	case n < 16:
		r.request(t, from, to, storage.Pending, now)
	default:
		r.request(t, from, to, storage.EdgeType(1+random.IntN(4)), now)
	}
}
