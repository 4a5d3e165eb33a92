package rediscache

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/epoch"
)

func TestMain(m *testing.M) {
	redis.SetLogger(unheard{}) // Redis is stopped here on purpose
	testenv.Main(m)
}

type unheard struct{}

func (unheard) Printf(context.Context, string, ...any) {}

// source is a store that tests can observe and stop.
type source struct {
	*oracle.Store
	profiles, lists atomic.Int64 // calls

	mu      sync.Mutex
	after   func()               // called when an answer has been read
	pretend func() *oracle.Store // answers in place of the source
	fail    error
	time    storage.Micros
}

func newSource(t testing.TB, users ...storage.UserID) *source {
	t.Helper()
	s := &source{Store: oracle.New()}
	for _, id := range users {
		s.create(t, id)
	}
	return s
}

func (s *source) create(t testing.TB, id storage.UserID) {
	t.Helper()
	u := storage.User{ID: id, Handle: "u" + id.String(), Name: "User " + id.String(), CreatedAt: 7, UpdatedAt: 8}
	must.All(t, s.CreateUsers(t.Context(), []storage.User{u}))
}

// write writes both sides of an edge, as replication does.
func (s *source) write(t testing.TB, from, to storage.UserID, kind storage.EdgeType) {
	s.mu.Lock()
	s.time++
	edge := storage.Edge{From: from, To: to, Type: kind, UpdateTime: s.time}
	s.mu.Unlock()
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		for _, r := range s.Apply(context.Background(), side, []storage.Edge{edge}, storage.IfNewer) {
			check.That(t, r.Err == nil, "%v", r.Err)
		}
	}
}

// both are the changes of an edge, as a writer has them after the write.
func (s *source) both(from, to storage.UserID) []storage.UserChange {
	list := []storage.UserChange{{User: from, What: storage.Leaving}, {User: to, What: storage.Entering}}
	for i, r := range storage.ProfileLookups.Read(context.Background(), s.Store, from, to) {
		list[i].Counts, list[i].Before = r.Value.Counts, r.Value.Counts.Version-1
	}
	return list
}

func (s *source) store() (*oracle.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pretend != nil {
		return s.pretend(), s.fail
	}
	return s.Store, s.fail
}

func (s *source) answered() {
	s.mu.Lock()
	after := s.after
	s.mu.Unlock()
	if after != nil {
		after()
	}
}

// set changes how the source behaves.
func (s *source) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *source) readProfiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	s.profiles.Add(1)
	store, err := s.store()
	answer := storage.ProfileLookups.Read(ctx, store, ids...)
	failed(answer, err)
	s.answered()
	failed(answer, ctx.Err())
	return answer
}

func (s *source) readLists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	s.lists.Add(1)
	store, err := s.store()
	answer := storage.SnapshotLookups[side].Read(ctx, store, queries...)
	failed(answer, err)
	s.answered()
	failed(answer, ctx.Err())
	return answer
}

func (s *source) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ProfileLookups.Instead(ctx, b, s.readProfiles)
	storage.SnapshotLookups.Instead(ctx, b, s.readLists)
	s.Store.Bundle(ctx, b)
}

func failed[V any](answer []storage.Result[V], err error) {
	for i := range answer {
		if err != nil {
			answer[i] = storage.Result[V]{Err: err}
		}
	}
}

// calls returns the number of all look-ups so far.
func (s *source) calls() int64 { return s.profiles.Load() + s.lists.Load() }

// generous is a time limit that a busy machine does not reach.
const generous = 30 * time.Second

// connect makes a cache on some servers, which acts as a gateway of its own.
func connect(t testing.TB, s storage.Bundler, servers []*testenv.RedisServer, changes ...func(*Cache)) *Cache {
	t.Helper()
	runs := new(epoch.Runs)
	options := &redis.UniversalOptions{ContextTimeoutEnabled: true, DialerRetries: 1, OnConnect: runs.OnConnect, IsClusterMode: len(servers) > 1}
	for _, server := range servers {
		options.Addrs = append(options.Addrs, server.Addr())
	}
	client := redis.NewUniversalClient(options)
	t.Cleanup(func() { client.Close() })
	c := New(epoch.NewClock(client, runs, "kith:test"), s, func([]storage.UserID) {}, nil)
	c.timeout = generous
	for _, change := range changes {
		change(c)
	}
	t.Cleanup(c.Close)
	return c
}

// pair is a Redis with two gateways.
func pair(t testing.TB, s storage.Bundler, changes ...func(*Cache)) (server *testenv.RedisServer, a, b *Cache) {
	t.Helper()
	server = testenv.Redis(t)
	servers := []*testenv.RedisServer{server}
	return server, connect(t, s, servers, changes...), connect(t, s, servers, changes...)
}

// whole asks for a whole list.
func whole(owner storage.UserID) storage.ListQuery {
	return storage.ListQuery{Owner: owner, Longest: 1 << 40}
}

func (c *Cache) profile(t testing.TB, id storage.UserID) storage.Profile {
	t.Helper()
	r := storage.ProfileLookups.Read(context.Background(), c, id)[0]
	must.OK(t, r.Err)
	return r.Value
}

func (c *Cache) list(t testing.TB, side storage.Side, q storage.ListQuery) storage.List {
	t.Helper()
	r := storage.SnapshotLookups[side].Read(context.Background(), c, q)[0]
	must.That(t, r.Err == nil && r.Found, "%v", r)
	return r.Value
}

// agrees compares a cache with what the store has now.
func (c *Cache) agrees(t testing.TB, s *source, ids ...storage.UserID) {
	t.Helper()
	must.Equal(t, "what differs", c.disagreement(s, ids...), "")
}

func (c *Cache) disagreement(s *source, ids ...storage.UserID) string {
	ctx := context.Background()
	if got, want := storage.ProfileLookups.Read(ctx, c, ids...), storage.ProfileLookups.Read(ctx, s.Store, ids...); !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("profiles are\n%+v\nwant\n%+v", got, want)
	}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		queries := storage.Each(ids, whole)
		got, want := storage.SnapshotLookups[side].Read(ctx, c, queries...), storage.SnapshotLookups[side].Read(ctx, s.Store, queries...)
		for i := range got {
			if !sameList(got[i], want[i]) {
				return fmt.Sprintf("%s of %d is\n%+v\nwant\n%+v", side, ids[i], got[i], want[i])
			}
		}
	}
	return ""
}

// sameList compares lists. The version of a kept list may be less than the owner's, because the owner's
// version also rises with other changes.
func sameList(got, want storage.Result[storage.List]) bool {
	if got.Value.Version > want.Value.Version || len(got.Value.Edges) != len(want.Value.Edges) {
		return false
	}
	for i, e := range got.Value.Edges {
		if e != want.Value.Edges[i] {
			return false
		}
	}
	return got.Err == nil && want.Err == nil && got.Found == want.Found && got.Value.Long == want.Value.Long
}

// looked is how many look-ups of a kind have ended so.
func (c *Cache) looked(kind, outcome string) float64 {
	return testutil.ToFloat64(c.lookups.WithLabelValues(kind, outcome))
}

// idle waits until every value that look-ups have missed so far has been stored, so that the next look-up
// finds it.
func (c *Cache) idle(t testing.TB) {
	t.Helper()
	must.Soon(t, "all that was missing has been stored", func() bool { return c.filling.Load() == 0 })
}

// epoch is that of a gateway. On a busy machine the gateway may have given up on Redis for a moment.
func (c *Cache) epoch(t testing.TB) (e *epoch.Epoch) {
	t.Helper()
	must.Soon(t, "an epoch", func() (ok bool) {
		var err error
		e, err = c.clock.Known(t.Context())
		return err == nil
	})
	return e
}

// stores reports whether Redis has a value of a user in the form of a gateway.
func (c *Cache) stores(t testing.TB, kind string, id storage.UserID) bool {
	t.Helper()
	has, err := c.clock.Redis.HExists(t.Context(), key(c.epoch(t), kind, id), "d"+c.form).Result()
	must.OK(t, err)
	return has
}

// admin is a client with which tests change a Redis directly.
func admin(t testing.TB, server *testenv.RedisServer) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { client.Close() })
	return client
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	must.OK(t, err)
}
