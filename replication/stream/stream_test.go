package stream_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/metered"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/replication"
	"kith/replication/stream"
	"kith/storage"
)

func connect(t testing.TB, addr string) redis.UniversalClient {
	t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{addr}, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	return client
}

// propagatorFunc makes a function a propagator.
type propagatorFunc func(context.Context, []storage.Written) []replication.Left

func (f propagatorFunc) Propagate(ctx context.Context, rows []storage.Written) []replication.Left {
	return f(ctx, rows)
}

// consume runs a consumer until stop is called, which waits for its end.
func consume(t testing.TB, cfg stream.ConsumerConfig) (c *stream.Consumer, stop func()) {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "one"
	}
	if cfg.Tend == 0 {
		cfg.Tend = 20 * time.Millisecond
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	c = stream.NewConsumer(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); c.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return c, stop
}

// idle reports whether everything has been acknowledged.
func idle(c *stream.Consumer, since time.Time) func() bool {
	return func() bool {
		s := c.State()
		return s.At.After(since) && s.Backlog == 0 && s.Pending == 0 && s.Age == 0
	}
}

func edge(from, to storage.UserID, at storage.Micros) storage.Edge {
	return storage.Edge{From: from, To: to, Type: storage.Following, UpdateTime: at}
}

// rowsOf returns the rows of edges in following.
func rowsOf(edges ...storage.Edge) []storage.Row {
	return storage.Each(edges, func(e storage.Edge) storage.Row { return storage.Row{Side: storage.Forward, Edge: e} })
}

func add(t testing.TB, client redis.UniversalClient, edges ...storage.Edge) {
	t.Helper()
	must.OK(t, stream.NewProducer(stream.ProducerConfig{Redis: client}).Add(t.Context(), rowsOf(edges...)))
}

func TestEdgesAreAppliedAndTrimmed(t *testing.T) {
	client, store := connect(t, testenv.Redis(t).Addr()), oracle.New()
	for i := range storage.UserID(1000) {
		add(t, client, edge(i+1, 7, 1), edge(i+1, 8, 1)) // before a group exists
	}
	registry := prometheus.NewRegistry()
	since := time.Now()
	c, _ := consume(t, stream.ConsumerConfig{Redis: client, Propagator: replication.Propagator{Store: store}, Metrics: stream.NewMetrics(registry)})
	must.Soon(t, "idle", idle(c, since))
	for _, id := range []storage.UserID{7, 8} {
		check.Equal(t, "followers", storage.CountLookups.Read(t.Context(), store, id)[0].Value.Follower, 1000)
	}
	s := c.State()
	check.That(t, !s.At.IsZero(), "state %+v", s)
	families, err := registry.Gather()
	must.OK(t, err)
	for _, f := range families {
		n := f.GetMetric()[0].GetHistogram().GetSampleCount()
		check.That(t, f.GetName() != "kith_stream_delay_seconds" || n != 0, "no delay was reported")
	}
	// Only whole nodes of 100 entries are removed.
	must.Soon(t, "trimmed", func() bool { return client.XLen(t.Context(), stream.DefaultKey).Val() < 200 })
}

// TestNothingUnreadIsTrimmed: neither entries that another group still needs, nor entries that are
// pending.
func TestNothingUnreadIsTrimmed(t *testing.T) {
	ctx := t.Context()
	client, store := connect(t, testenv.Redis(t).Addr()), oracle.New()
	must.OK(t, client.XGroupCreateMkStream(ctx, stream.DefaultKey, "others", "0").Err())
	for i := range storage.UserID(1000) {
		add(t, client, edge(i+1, 7, 1))
	}
	c, _ := consume(t, stream.ConsumerConfig{Redis: client, Propagator: replication.Propagator{Store: store}, Batch: 100})
	trimmedTo := func(want int64) {
		t.Helper()
		since := time.Now()
		must.Soon(t, "idle", idle(c, since))
		for range 3 { // rounds of trimming
			since = c.State().At
			must.Soon(t, "a round", func() bool { return c.State().At.After(since) })
		}
		got := client.XLen(ctx, stream.DefaultKey).Val()
		check.That(t, got <= want && got >= want-100, "%d entries are left, want about %d", got, want)
	}
	length := func() int64 { return client.XLen(ctx, stream.DefaultKey).Val() }
	trimmedTo(1000)
	check.Equal(t, "entries, the other group needs 1000", length(), 1000)
	read, err := client.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "others", Consumer: "x", Streams: []string{stream.DefaultKey, ">"}, Count: 600}).Result()
	must.OK(t, err)
	trimmedTo(1000)
	check.Equal(t, "entries, the other group has 600 pending", length(), 1000)
	for _, m := range read[0].Messages[:500] {
		client.XAck(ctx, stream.DefaultKey, "others", m.ID)
	}
	trimmedTo(600)
	if length() < 500 {
		t.Errorf("%d entries, the other group needs 500", length())
	}
}

// TestConsumersShareTheWork: each entry is applied by one of the consumers.
func TestConsumersShareTheWork(t *testing.T) {
	client := connect(t, testenv.Redis(t).Addr())
	var mu sync.Mutex
	by := map[string]int{}
	times := map[storage.Row]int{}
	var consumers []*stream.Consumer
	for _, name := range []string{"a", "b", "c"} {
		c, _ := consume(t, stream.ConsumerConfig{Redis: client, Name: name, Batch: 10, Propagator: propagatorFunc(func(_ context.Context, rows []storage.Written) []replication.Left {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range rows {
				by[name]++
				times[r.Row]++
			}
			return nil
		})})
		consumers = append(consumers, c)
	}
	for i := range storage.UserID(3000) {
		add(t, client, edge(i+1, 7, 1))
	}
	must.Soon(t, "idle", idle(consumers[0], time.Now()))
	mu.Lock()
	defer mu.Unlock()
	check.That(t, len(times) == 3000 && len(by) == 3, "%d edges by %v", len(times), by)
	for e, n := range times {
		check.That(t, n == 1, "%v was applied %d times", e, n)
	}
}

// TestDeadConsumersAreClaimedOver: entries that a consumer had and did not acknowledge are applied by
// another consumer, or at once by the same one when it comes back under its name.
func TestDeadConsumersAreClaimedOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		successor string
		after     time.Duration
	}{
		"by another":      {"two", 300 * time.Millisecond},
		"by its new self": {"one", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, store := connect(t, testenv.Redis(t).Addr()), oracle.New()
			for i := range storage.UserID(1500) {
				add(t, client, edge(i+1, 7, 1))
			}
			died := make(chan struct{})
			once := sync.OnceFunc(func() { close(died) })
			_, stop := consume(t, stream.ConsumerConfig{Redis: client, Name: "one", ClaimAfter: time.Hour, Propagator: propagatorFunc(func(_ context.Context, rows []storage.Written) (left []replication.Left) {
				once()
				for i, r := range rows {
					left = append(left, replication.Left{Root: i, Row: r.Row, Err: errors.New("killed before it could write")})
				}
				return left
			})})
			<-died
			stop()
			successor, _ := consume(t, stream.ConsumerConfig{Redis: client, Name: c.successor, ClaimAfter: c.after, Propagator: replication.Propagator{Store: store}})
			must.Soon(t, "idle", idle(successor, time.Now()))
			check.Equal(t, "followers", storage.CountLookups.Read(t.Context(), store, 7)[0].Value.Follower, 1500)
		})
	}
}

// TestWhatCannotBeAppliedHoldsUpNobody: a shard that is away holds up only its own edges, which are
// applied when it is back.
func TestWhatCannotBeAppliedHoldsUpNobody(t *testing.T) {
	t.Parallel()
	client, store := connect(t, testenv.Redis(t).Addr()), oracle.New()
	var mu sync.Mutex
	away := true
	propagator := propagatorFunc(func(ctx context.Context, rows []storage.Written) (left []replication.Left) {
		mu.Lock()
		defer mu.Unlock()
		var good []storage.Written
		for i, r := range rows {
			if away && r.Edge.To == 13 {
				left = append(left, replication.Left{Root: i, Row: r.Row, Err: storage.ErrUnavailable})
			} else {
				good = append(good, r)
			}
		}
		return append(left, replication.Propagator{Store: store}.Propagate(ctx, good)...)
	})
	for i := range storage.UserID(400) {
		add(t, client, edge(i+1, 7, 1))
		if i == 200 {
			add(t, client, edge(1, 13, 1))
			add(t, client, edge(1, 8, 1), edge(2, 13, 1))
		}
	}
	c, _ := consume(t, stream.ConsumerConfig{Redis: client, ClaimAfter: 100 * time.Millisecond, Propagator: propagator})
	followers := func(id storage.UserID) int64 {
		return storage.CountLookups.Read(t.Context(), store, id)[0].Value.Follower
	}
	must.Soon(t, "the others are applied", func() bool { return followers(7) == 400 })
	must.Soon(t, "only the two are pending", func() bool { return c.State().Pending == 2 })
	add(t, client, edge(1000, 7, 1))
	must.Soon(t, "a new one is applied", func() bool { return followers(7) == 401 })
	must.That(t, followers(13) == 0, "the test is wrong")
	mu.Lock()
	away = false
	mu.Unlock()
	must.Soon(t, "idle", idle(c, time.Now()))
	if followers(13) != 2 || followers(8) != 1 {
		t.Errorf("%d and %d followers, want 2 and 1", followers(13), followers(8))
	}
}

// TestAHealthyShardDoesNotWaitForOneThatIsAway: more entries of a shard that is away are pending than are claimed at once, and
// entries of another one, which have failed once, are behind them.
func TestAHealthyShardDoesNotWaitForOneThatIsAway(t *testing.T) {
	t.Parallel()
	const away, healthy, batch = 200, 20, 50
	client := connect(t, testenv.Redis(t).Addr())
	var mu sync.Mutex
	tried, applied := map[storage.Row]bool{}, map[storage.Row]bool{}
	count := func(of map[storage.Row]bool) int { mu.Lock(); defer mu.Unlock(); return len(of) }
	propagator := propagatorFunc(func(_ context.Context, rows []storage.Written) (left []replication.Left) {
		mu.Lock()
		defer mu.Unlock()
		for i, r := range rows {
			if r.Edge.To == 13 || !tried[r.Row] {
				left = append(left, replication.Left{Root: i, Row: r.Row, Err: storage.ErrUnavailable})
			} else {
				applied[r.Row] = true
			}
			tried[r.Row] = true
		}
		return left
	})
	consume(t, stream.ConsumerConfig{Redis: client, Batch: batch, ClaimAfter: 100 * time.Millisecond, Propagator: propagator})
	for i := range storage.UserID(away) {
		add(t, client, edge(i+20, 13, 1))
	}
	must.Soon(t, "all have failed", func() bool { return count(tried) == away })
	for i := range storage.UserID(healthy) {
		add(t, client, edge(i+20, 7, 1))
	}
	must.Soon(t, "those of the healthy shard are applied", func() bool { return count(applied) == healthy })
}

func TestPoisonGoesToTheDeadLetters(t *testing.T) {
	ctx := t.Context()
	client, store := connect(t, testenv.Redis(t).Addr()), oracle.New()
	registry := prometheus.NewRegistry()
	for _, values := range []map[string]any{
		{"e": ""}, {"e": "\x02"}, {"e": "\x02\x00\x05"}, {"e": "\x03\x01\x01\x01\x02"}, {"other": "x"}, {"e": "\x02\x00\x01\x00\x01\x02"},
		{"e": "\x02\x01\x01\x07\x01\x02"}, {"e": "\x02\x04\x01\x07\x01\x02"}, // of follower; of no table
	} {
		add(t, client, edge(1, 7, 1))
		must.OK(t, client.XAdd(ctx, &redis.XAddArgs{Stream: stream.DefaultKey, Values: values}).Err())
	}
	add(t, client, edge(2, 7, 1))
	c, _ := consume(t, stream.ConsumerConfig{Redis: client, Propagator: replication.Propagator{Store: store}, Metrics: stream.NewMetrics(registry)})
	must.Soon(t, "idle", idle(c, time.Now()))
	check.Equal(t, "followers", storage.CountLookups.Read(ctx, store, 7)[0].Value.Follower, 2)
	dead, err := client.XRange(ctx, stream.DefaultKey+":dead", "-", "+").Result()
	must.That(t, err == nil && len(dead) == 8, "dead letters: %v %v", dead, err)
	if dead[3].Values["field:e"] != "\x03\x01\x01\x01\x02" || !strings.Contains(dead[3].Values["reason"].(string), "version 3") || dead[3].Values["id"] == "" {
		t.Errorf("dead letter %v", dead[3].Values)
	}
	check.Equal(t, "dead letters counted", metered.Value(t, registry, "kith_stream_dead_letters_total"), 8)
}

// TestPoisonInAFullRedisHoldsUpNobody: where there is no room for a dead letter, the entry waits, and what is behind it makes room.
func TestPoisonInAFullRedisHoldsUpNobody(t *testing.T) {
	client, store := connect(t, testenv.Redis(t).Addr()), oracle.New()
	must.OK(t, client.XAdd(t.Context(), &redis.XAddArgs{Stream: stream.DefaultKey, Values: []any{"other", "x"}}).Err())
	add(t, client, edge(1, 7, 1))
	must.OK(t, client.XGroupCreate(t.Context(), stream.DefaultKey, stream.Group, "0").Err())
	must.OK(t, client.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())
	must.OK(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	consume(t, stream.ConsumerConfig{Redis: client, Propagator: replication.Propagator{Store: store}, ClaimAfter: 100 * time.Millisecond})
	must.Soon(t, "what is behind it is applied", func() bool { return storage.CountLookups.Read(t.Context(), store, 7)[0].Value.Follower == 1 })
	must.Equal(t, "dead letters in a full Redis", client.XLen(t.Context(), stream.DefaultKey+":dead").Val(), 0)
	must.OK(t, client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	must.Soon(t, "it is a dead letter", func() bool { return client.XLen(t.Context(), stream.DefaultKey+":dead").Val() == 1 })
}

// TestLostGroupsAreMadeAgain: the group, or the whole stream, may vanish while a consumer runs.
func TestLostGroupsAreMadeAgain(t *testing.T) {
	ctx := t.Context()
	client, store := connect(t, testenv.Redis(t).Addr()), oracle.New()
	c, _ := consume(t, stream.ConsumerConfig{Redis: client, Propagator: replication.Propagator{Store: store}})
	followers := func() int64 { return storage.CountLookups.Read(ctx, store, 7)[0].Value.Follower }
	add(t, client, edge(1, 7, 1))
	must.Soon(t, "the first", func() bool { return followers() == 1 })
	must.OK(t, client.XGroupDestroy(ctx, stream.DefaultKey, stream.Group).Err())
	add(t, client, edge(2, 7, 1))
	must.Soon(t, "the second", func() bool { return followers() == 2 })
	must.OK(t, client.FlushAll(ctx).Err())
	add(t, client, edge(3, 7, 1))
	must.Soon(t, "the third", func() bool { return followers() == 3 })
	must.Soon(t, "idle", idle(c, time.Now()))
}

// TestStoppingAppliesWhatWasRead: these entries need not be claimed by another consumer.
// A Redis that is full, because nobody has consumed for long, has room again once somebody does.
func TestAFullRedisIsEmptied(t *testing.T) {
	client, store := connect(t, testenv.Redis(t).Addr()), oracle.New()
	cfg := stream.ConsumerConfig{Redis: client, Propagator: replication.Propagator{Store: store}}
	add(t, client, edge(1, 7, 1))
	began := time.Now()
	c, stop := consume(t, cfg)
	must.Soon(t, "idle", idle(c, began))
	stop()
	must.OK(t, client.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())
	must.OK(t, client.ConfigSet(t.Context(), "maxmemory", "4mb").Err())
	producer, rows := stream.NewProducer(stream.ProducerConfig{Redis: client}), make([]storage.Edge, 1000)
	for i := range rows {
		rows[i] = edge(storage.UserID(i+1), 7, 2)
	}
	for producer.Add(t.Context(), rowsOf(rows...)) == nil {
	}
	must.OK(t, client.ConfigSet(t.Context(), "maxmemory", "3mb").Err()) // connections take some of it
	consume(t, cfg)
	must.Soon(t, "there is room", func() bool { return producer.Add(t.Context(), rowsOf(rows...)) == nil })
	must.Soon(t, "all are applied", func() bool { return storage.CountLookups.Read(t.Context(), store, 7)[0].Value.Follower == 1000 })
}

func TestStoppingAppliesWhatWasRead(t *testing.T) {
	client, store := connect(t, testenv.Redis(t).Addr()), oracle.New()
	reading, write := make(chan struct{}), make(chan struct{})
	_, stop := consume(t, stream.ConsumerConfig{Redis: client, Propagator: propagatorFunc(func(ctx context.Context, rows []storage.Written) []replication.Left {
		close(reading)
		<-write
		return replication.Propagator{Store: store}.Propagate(ctx, rows)
	})})
	add(t, client, edge(1, 7, 1))
	<-reading
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	time.Sleep(20 * time.Millisecond) // the context has ended by now, which should change nothing
	close(write)
	<-stopped
	check.Equal(t, "followers", storage.CountLookups.Read(t.Context(), store, 7)[0].Value.Follower, 1)
	pending, err := client.XPending(t.Context(), stream.DefaultKey, stream.Group).Result()
	check.That(t, err == nil && pending.Count == 0, "pending: %+v %v", pending, err)
}

// TestAddGivesUp: a follow does not wait for a Redis that hangs.
func TestAddGivesUp(t *testing.T) {
	server := testenv.Redis(t)
	p := stream.NewProducer(stream.ProducerConfig{Redis: connect(t, server.Addr()), Timeout: 100 * time.Millisecond})
	must.OK(t, p.Add(t.Context(), rowsOf(edge(1, 2, 3))))
	server.Freeze(t)
	start := time.Now()
	err := p.Add(t.Context(), rowsOf(edge(1, 2, 4)))
	check.That(t, err != nil && time.Since(start) <= 20*time.Second, "%v after %s", err, time.Since(start))
	server.Kill(t)
	check.That(t, p.Add(t.Context(), rowsOf(edge(1, 2, 5))) != nil, "added to a Redis that is down")
}
