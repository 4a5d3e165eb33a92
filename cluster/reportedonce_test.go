package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/replication/binlog"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/sqlstore"
)

// TestRedisIsNotifiedOfEachRow: in each mode a follow changes the rows of two users. Each row costs one
// command to Redis, in the mode binlog one more when the log shows it, and no read of the store until somebody asks.
func TestRedisIsNotifiedOfEachRow(t *testing.T) {
	for mode, most := range map[string]int{Sync: 1, Stream: 1, Binlog: 2} {
		t.Run(mode, func(t *testing.T) {
			s := openReported(t, mode)
			s.change(t, s.caches.store, storage.Following)
			s.fill(t)
			s.redis.Client().AddHook(s.look)
			s.look.begin(s.from, s.to)
			s.change(t, s.caches.store, storage.None)
			commands := s.look.commands()
			for _, id := range []storage.UserID{s.from, s.to} {
				n := 0
				for _, c := range commands {
					if strings.Contains(c, "{"+id.String()+"}") {
						n++
					}
				}
				check.That(t, n >= 1 && n <= most, "%d commands notify Redis of user %d, want 1 to %d:\n%s", n, id, most, strings.Join(commands, "\n"))
			}
			check.Equal(t, "profiles that were read to notify it", s.look.profilesRead(), 0)
			from, to := s.profiles(t)
			now := storage.ProfileLookups.Read(t.Context(), s.store, s.from, s.to)
			check.That(t, from == now[0].Value && to == now[1].Value, "Redis has %+v and %+v, the store %+v", from, to, now)
		})
	}
}

// TestTheLogReportsForTheDead: if a writer could not report a change to Redis, the log has reported it
// when the others get the event of the row.
func TestTheLogReportsForTheDead(t *testing.T) {
	s := openReported(t, Binlog)
	s.change(t, s.caches.store, storage.Following)
	whole := []storage.ListQuery{{Owner: s.from, Longest: 100}}
	s.fill(t)
	storage.SnapshotLookups[storage.Forward].Read(t.Context(), s.caches.redis, whole...)
	s.look.begin()
	change := storage.EdgeChange{To: s.to, Type: storage.None, At: storage.MicrosOf(time.Now())}
	must.OK(t, s.dead(t).ChangeEdges(t.Context(), storage.Forward, s.from, []storage.EdgeChange{change}, storage.ChangeOptions{})[0].Err)
	await(t, s.heard, func(e events.Event) bool { return e.Side == storage.Inverse && e.Edge.Type == storage.None })
	from, _ := s.profiles(t)
	check.That(t, from.Counts.Following == 0, "Redis has %+v", from)
	list := storage.SnapshotLookups[storage.Forward].Read(t.Context(), s.caches.redis, whole...)[0].Value
	check.That(t, len(list.Edges) == 1 && list.Edges[0].Type == storage.None, "Redis has the list %+v", list)
}

// TestARequiredRowPassesARedisThatIsBehind: the event of a row tells of a change that its writer could not report to Redis. An answer
// that must show the row does not take the old value from there.
func TestARequiredRowPassesARedisThatIsBehind(t *testing.T) {
	s := openReported(t, Stream)
	s.change(t, s.caches.store, storage.Following)
	s.caches.local.Switch(true)
	running, stop := context.WithCancel(t.Context())
	follow := s.caches.local.Follow(running, s.hub)
	done := make(chan struct{})
	go func() { follow(); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	s.fill(t)
	dead := s.dead(t)
	ended := storage.EdgeChange{To: s.to, Type: storage.None, At: storage.MicrosOf(time.Now())}
	changed := dead.ChangeEdges(t.Context(), storage.Forward, s.from, []storage.EdgeChange{ended}, storage.ChangeOptions{})[0]
	rows := []storage.Row{{Side: storage.Inverse, Edge: changed.Value.Row}}
	r := dead.Apply(t.Context(), storage.Inverse, []storage.Edge{changed.Value.Row}, storage.IfNewer)[0]
	must.That(t, changed.Err == nil && r.Err == nil, "%v %v", changed.Err, r.Err)
	s.caches.bus.Send(t.Context(), storage.Change{Rows: rows})
	must.Soon(t, "the event has come", func() bool { return len(s.caches.local.Unreported(false, rows)) == 0 })
	_, to := s.profiles(t)
	must.That(t, to.Counts.Follower == 1, "Redis knows of it already: %+v", to)
	s.caches.Required(t.Context(), storage.Change{Rows: rows})
	_, to = s.profiles(t)
	check.That(t, to.Counts.Follower == 0, "after it was required, Redis has %+v", to)
}

// reportSetup is a gateway that propagates its rows itself, and two users on different shards.
type reportSetup struct {
	location   string
	store      *sqlstore.Store
	redis      *Redis
	hub        *events.Hub
	caches     *Caches
	redundancy *Redundancy
	heard      *events.Subscription
	look       *looker
	from, to   storage.UserID
	binlog     bool
}

func openReported(t *testing.T, mode string) *reportSetup {
	t.Helper()
	dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 2)
	s := &reportSetup{look: &looker{}, binlog: mode == Binlog, location: "mysql:" + strings.Join(dsns, ";")}
	var err error
	s.store, err = sqlstore.Open(t.Context(), sqlstore.Config{Location: s.location, OnStatement: s.look.statement})
	must.OK(t, err)
	t.Cleanup(func() { s.store.Close() })
	s.from, s.to = onTwoShards(t, s.store)
	d := Config{Redis: testenv.Redis(t).URL(), RedisCache: true, Redundancy: mode}
	s.redis, err = d.OpenRedis(t.Context())
	must.OK(t, err)
	t.Cleanup(func() { s.redis.Close() })
	s.hub = events.NewHub(nil)
	s.heard = s.hub.Subscribe(t.Context(), s.from, s.to)
	bus := EventsOf(s.store, s.redis, s.hub, nil)
	registry := prometheus.NewRegistry()
	s.caches = d.OpenCaches(CacheConfig{Store: s.store, Bus: bus, Redis: s.redis, Bytes: 1 << 20, Replicates: true, Registerer: registry, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.caches.Close)
	s.redundancy = s.caches.OpenRedundancy()
	t.Cleanup(s.redundancy.Close)
	gap := func(e events.Event) bool { return e.Kind == events.Gap }
	await(t, s.heard, gap) // the bus receives events
	if s.binlog {
		await(t, s.heard, gap) // the log is followed
		for !tailing(s.redundancy.Replication.Report().(ReplicationReport)) {
			time.Sleep(10 * time.Millisecond)
		}
	}
	return s
}

// dead is a writer that reports nothing.
func (s *reportSetup) dead(t *testing.T) *sqlstore.Store {
	t.Helper()
	return opened.Store(t, sqlstore.Config{Location: s.location})
}

// change changes the edge, and waits for the last effects: that the edge is on both sides, and that the
// log has shown the rows of both users.
func (s *reportSetup) change(t *testing.T, writer storage.Store, kind storage.EdgeType) {
	t.Helper()
	change := storage.EdgeChange{To: s.to, Type: kind, At: storage.MicrosOf(time.Now())}
	changed := writer.ChangeEdges(t.Context(), storage.Forward, s.from, []storage.EdgeChange{change}, storage.ChangeOptions{Inverse: s.redundancy.Inline()})[0]
	must.OK(t, changed.Err)
	must.OK(t, s.redundancy.Propagate(t.Context(), changed.Value.Written()))
	propagated, counts := false, map[storage.UserID]bool{}
	await(t, s.heard, func(e events.Event) bool {
		propagated = propagated || e.Side == storage.Inverse
		if e.Has(storage.Beside) { // only the log says so
			counts[e.User.User] = true
		}
		return propagated && (!s.binlog || counts[s.from] && counts[s.to])
	})
}

// fill makes Redis keep both users.
func (s *reportSetup) fill(t *testing.T) {
	t.Helper()
	for s.profiles(t); s.look.profilesRead() > 0; s.profiles(t) {
		s.look.begin()
	}
}

// profiles reads both users through Redis.
func (s *reportSetup) profiles(t *testing.T) (from, to storage.Profile) {
	t.Helper()
	r := storage.ProfileLookups.Read(t.Context(), s.caches.redis, s.from, s.to)
	must.That(t, r[0].Err == nil && r[1].Err == nil, "%v", r)
	return r[0].Value, r[1].Value
}

func tailing(r ReplicationReport) bool {
	return len(r.Servers) > 0 && !slices.ContainsFunc(r.Servers, func(s binlog.Status) bool { return s.State != binlog.Tailing })
}

// onTwoShards makes two users who are on different shards.
func onTwoShards(t *testing.T, store Store) (from, to storage.UserID) {
	var users []storage.User
	for id := range storage.UserID(20) {
		users = append(users, storage.User{ID: id + 1, Handle: fmt.Sprint("u", id+1)})
	}
	must.All(t, store.CreateUsers(t.Context(), users))
	shards := storage.NewShardMap(store.Shards())
	for to = 2; shards.Of(to) == shards.Of(1); to++ {
	}
	return 1, to
}

// await reads events until a condition holds.
func await(t *testing.T, heard *events.Subscription, done func(events.Event) bool) {
	t.Helper()
	for end := time.After(30 * time.Second); ; {
		select {
		case e := <-heard.Events():
			if done(e) {
				return
			}
		case <-end:
			t.Fatal("not within 30 s")
		}
	}
}

// looker counts the commands that name some users, and the look-ups of profiles in the store.
type looker struct {
	mu       sync.Mutex
	users    []storage.UserID
	seen     []string
	profiles int
}

func (l *looker) begin(users ...storage.UserID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users, l.seen, l.profiles = users, nil, 0
}

func (l *looker) commands() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

func (l *looker) profilesRead() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.profiles
}

func (l *looker) statement(_ context.Context, s sqlstore.Statement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.Lookup == "profiles" {
		l.profiles++
	}
}

func (l *looker) note(commands ...redis.Cmder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range commands {
		text := fmt.Sprint(c.Args()...)
		if slices.ContainsFunc(l.users, func(id storage.UserID) bool { return strings.Contains(text, "{"+id.String()+"}:user") }) {
			l.seen = append(l.seen, fmt.Sprintf("%.300q", text))
		}
	}
}

func (l *looker) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (l *looker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		l.note(c)
		return next(ctx, c)
	}
}

func (l *looker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		l.note(commands...)
		return next(ctx, commands)
	}
}
