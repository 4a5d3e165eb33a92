package cluster

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/sqlstore"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// survivor is a process that counts the others when the test says so, by the test's clock.
type survivor struct {
	*Caches
	heard *events.Subscription
	now   time.Time
}

func openSurvivor(t *testing.T, mode string) *survivor {
	t.Helper()
	store := opened.Store(t, sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db")})
	d := Config{Redis: testenv.Redis(t).URL(), RedisCache: true, Redundancy: mode}
	server, err := d.OpenRedis(t.Context())
	must.OK(t, err)
	t.Cleanup(func() { server.Close() })
	hub := events.NewHub(nil)
	s := &survivor{heard: hub.Subscribe(t.Context()), now: time.Now()}
	s.Caches = d.OpenCaches(CacheConfig{Store: store, Bus: EventsOf(store, server, hub, nil), Redis: server, Registerer: prometheus.NewRegistry()})
	t.Cleanup(s.Close)
	s.own.now = func() time.Time { return s.now }
	await(t, s.heard, func(e events.Event) bool { return e.Kind == events.Gap }) // connected
	return s
}

// pass counts the others for some seconds, and reports whether everything was forgotten meanwhile.
func (s *survivor) pass(t *testing.T, seconds int) (forgotten bool) {
	t.Helper()
	before := s.epoch(t)
	for range seconds {
		s.now = s.now.Add(time.Second)
		s.own.alone(t.Context())
	}
	for forgotten = s.epoch(t) != before; ; {
		select {
		case e := <-s.heard.Events():
			check.That(t, e.Kind == events.Gap && forgotten, "everything in Redis is forgotten: %t, and %v is heard", forgotten, e)
			return true
		default:
			check.That(t, !forgotten, "the other processes do not hear that everything in Redis is forgotten")
			return forgotten
		}
	}
}

func (s *survivor) epoch(t *testing.T) string {
	t.Helper()
	storage.ProfileLookups.Read(t.Context(), s.redis, 1) // there is an epoch
	name, err := s.clock.Redis.Get(t.Context(), "kith:"+s.store.UUID()+":epoch").Result()
	must.OK(t, err)
	return name
}

func (s *survivor) leases(t *testing.T) int {
	t.Helper()
	holders, err := s.store.Holders(t.Context(), presenceKind)
	must.OK(t, err)
	return len(holders)
}

// TestAllIsForgottenWhenAProcessVanishes, once a minute at most, and not if it was stopped.
func TestAllIsForgottenWhenAProcessVanishes(t *testing.T) {
	s := openSurvivor(t, Sync)
	begin := func() *presence {
		p := newPresence(s.store)
		p.now = s.own.now
		p.alone(t.Context())
		return p
	}
	stopped := begin()
	s.pass(t, 1)
	stopped.leave()
	check.That(t, !s.pass(t, 20), "everything is forgotten after a process that was stopped")
	begin()
	check.That(t, !s.pass(t, 9), "everything is forgotten before the lease of a process has ended")
	if !s.pass(t, 2) || s.leases(t) != 1 {
		t.Errorf("nothing is forgotten after a process that has vanished; %d leases", s.leases(t))
	}
	begin()
	if s.pass(t, 20) || s.leases(t) != 2 {
		t.Errorf("everything is forgotten twice a minute; %d leases", s.leases(t))
	}
	key := "kith:" + s.store.UUID() + ":forgot"
	left := s.clock.Redis.PTTL(t.Context(), key).Val()
	check.That(t, left > 0 && left <= forgetEvery, "the next time is in %v", left)
	s.clock.Redis.Del(t.Context(), key) // the minute is over
	if !s.pass(t, 1) || s.leases(t) != 1 {
		t.Errorf("the second process that has vanished is passed over; %d leases", s.leases(t))
	}

	s = openSurvivor(t, Binlog)
	begin()
	if s.pass(t, 20) || s.leases(t) != 1 {
		t.Errorf("in the mode binlog, the log reports; %d leases", s.leases(t))
	}
}

// TestAllIsForgottenBesideAFullRedis, which takes nothing that is written and still carries events.
func TestAllIsForgottenBesideAFullRedis(t *testing.T) {
	s := openSurvivor(t, Sync)
	vanishes := newPresence(s.store)
	vanishes.now = s.own.now
	vanishes.alone(t.Context())
	must.OK(t, s.clock.Redis.ConfigSet(t.Context(), "maxmemory", "100kb").Err())
	for range 12 {
		s.now = s.now.Add(time.Second)
		s.own.alone(t.Context())
	}
	check.Equal(t, "leases beside a process that has vanished", s.leases(t), 1)
	await(t, s.heard, func(e events.Event) bool { return e.Kind == events.Gap })
}

// TestNobodyVanishesWhileTheStoreIsAway: while it does not answer, nobody can renew a lease.
func TestNobodyVanishesWhileTheStoreIsAway(t *testing.T) {
	store, away := double.Of(oracle.New()), false
	store.Instead.Holders = func(ctx context.Context, kind string) (map[string]storage.Micros, error) {
		if away {
			return nil, errors.New("away")
		}
		return store.Store.Holders(ctx, kind)
	}
	now, vanished := time.Now(), 0
	first, second := newPresence(store), newPresence(store)
	first.vanished = func(context.Context) bool { vanished++; return true }
	for _, p := range []*presence{first, second} {
		p.now = func() time.Time { return now }
		p.alone(t.Context())
	}
	for second := range 40 {
		away = second > 0 && second < 20
		now = now.Add(time.Second)
		first.alone(t.Context())
		must.That(t, vanished == 0 || second >= 20+int(presenceLease/time.Second), "it has vanished after %d s", second)
	}
	check.That(t, vanished != 0, "it has not vanished after all")
}

var changedUser = storage.Change{Users: []storage.UserChange{{User: 1, What: storage.Whole}}}

// TestAProcessThatIsBehindKeepsItsLease: it gives its lease back at its end only if it has reported everything.
func TestAProcessThatIsBehindKeepsItsLease(t *testing.T) {
	for what, c := range map[string]struct {
		do   func(*survivor)
		left int
	}{
		"everything is reported": {func(s *survivor) { s.wrote(t.Context(), changedUser) }, 0},
		"a commit had no answer": {func(s *survivor) { s.doubt(changedUser) }, 1},
		"Redis is away": {func(s *survivor) {
			s.clock.Redis.Close()
			s.wrote(t.Context(), changedUser)
		}, 1},
	} {
		t.Run(what, func(t *testing.T) {
			s := openSurvivor(t, Sync)
			s.own.alone(t.Context())
			c.do(s)
			s.Close()
			check.Equal(t, "leases that are left", s.leases(t), c.left)
		})
	}
}

// TestCommandsHoldALease while they change what gateways may keep. So if a command is killed, gateways forget everything.
func TestCommandsHoldALease(t *testing.T) {
	s := openSurvivor(t, Sync)
	d := Config{Redis: "redis://" + s.clock.Redis.(interface{ Options() *redis.Options }).Options().Addr, RedisCache: true, Redundancy: Sync}
	end := d.ChangingAll(t.Context(), s.store)
	check.Equal(t, "leases of a command that changes more than it can report", s.leases(t), 1)
	end()
	check.Equal(t, "leases after a command that changes more than it can report", s.leases(t), 0)
	repairs, err := d.OpenRepairs(t.Context(), s.store)
	must.OK(t, err)
	edge := storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: 5}
	repairs.Repaired(t.Context(), []storage.Row{{Side: storage.Forward, Edge: edge}})
	check.Equal(t, "leases of repairs", s.leases(t), 1)
	repairs.Close()
	check.Equal(t, "leases after repairs", s.leases(t), 0)
}
