package stream_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/replication"
	"kith/replication/stream"
	"kith/storage"
	"kith/storage/sqlstore"
)

// The settings of a consuming process.
const (
	envRedis = "KITH_TEST_STREAM_REDIS"
	envStore = "KITH_TEST_STREAM_STORE"
	envName  = "KITH_TEST_STREAM_NAME"
	envStuck = "KITH_TEST_STREAM_STUCK" // if set, the process stops when a follow ends on the inverse side
)

// consumeForEver is the process that is killed.
func consumeForEver() {
	ctx := context.Background()
	store, err := sqlstore.Open(ctx, sqlstore.Config{Location: os.Getenv(envStore), StatementTimeout: 30 * time.Second})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var to storage.EdgeWriter = store
	if os.Getenv(envStuck) != "" {
		to = stuck{store}
	}
	stream.NewConsumer(stream.ConsumerConfig{
		Redis:      redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{os.Getenv(envRedis)}, ContextTimeoutEnabled: true}),
		Propagator: replication.Propagator{Store: to},
		Name:       os.Getenv(envName),
		Batch:      50,
		ClaimAfter: time.Second,
		Tend:       100 * time.Millisecond,
		Logger:     slog.New(slog.DiscardHandler),
	}).Run(ctx)
}

// process is a consuming process that can be killed and started again.
type process struct {
	t    *testing.T
	env  []string
	name string
	cmd  *exec.Cmd
}

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(append(os.Environ(), p.env...), envName+"="+p.name)
	p.cmd.Stderr = os.Stderr
	must.OK(p.t, p.cmd.Start())
}

// kill kills the process by kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// truth is the state of the forward side, and hands out the versions.
type truth struct {
	made  atomic.Int64 // events so far
	mu    sync.Mutex
	edges map[storage.Pair]storage.Edge
}

const population = 500

// next changes a random edge.
func (f *truth) next(r *rand.Rand) storage.Edge {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := storage.Pair{From: storage.UserID(r.IntN(population) + 1), To: storage.UserID(r.IntN(20) + 1)}
	old := f.edges[p]
	e := storage.Edge{From: p.From, To: p.To, Type: storage.Following, UpdateTime: max(storage.MicrosOf(time.Now()), old.UpdateTime+1)}
	if old.Type == storage.Following {
		e.Type = storage.EdgeType(2 * r.IntN(2)) // a tombstone or a block
	}
	f.edges[p] = e
	f.made.Add(1)
	return e
}

// produce adds n events, and repeats each until it succeeds. Some events are added twice, some much later
// than newer ones.
func (f *truth) produce(t *testing.T, client redis.UniversalClient, seed uint64, n int) {
	p := stream.NewProducer(stream.ProducerConfig{Redis: client})
	add := func(edges ...storage.Edge) {
		for p.Add(t.Context(), rowsOf(edges...)) != nil {
			if t.Context().Err() != nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	r := rand.New(rand.NewPCG(seed, 7))
	var late []storage.Edge
	for made := 0; made < n; {
		edges := make([]storage.Edge, min(n-made, 1+r.IntN(3)/2*r.IntN(20)))
		for i := range edges {
			edges[i] = f.next(r)
		}
		made += len(edges)
		switch r.IntN(10) {
		case 0:
			late = append(late, edges...)
		case 1:
			add(edges...)
			late = append(late, edges...)
		default:
			add(edges...)
		}
		if len(late) > 200 {
			r.Shuffle(len(late), func(i, j int) { late[i], late[j] = late[j], late[i] })
			add(late...)
			late = nil
		}
	}
	add(late...)
}

// TestConsumersAndRedisAreKilled: whichever process dies at whatever time, at the end the inverse side
// equals the forward side.
func TestConsumersAndRedisAreKilled(t *testing.T) {
	const events, producers, kills = 20_000, 8, 15
	folder := t.TempDir()
	location := "sqlite:" + filepath.Join(folder, "a.db") + ";" + filepath.Join(folder, "b.db")
	store := opened.Store(t, sqlstore.Config{Location: location, StatementTimeout: 30 * time.Second})
	server := testenv.Redis(t, testenv.AppendOnly...)
	client := connect(t, server.Addr())

	var consumers []*process
	for i := range 3 {
		p := &process{t: t, env: []string{envRedis + "=" + server.Addr(), envStore + "=" + location}, name: fmt.Sprintf("consumer%d", i)}
		p.start()
		t.Cleanup(p.kill)
		consumers = append(consumers, p)
	}
	forward := &truth{edges: make(map[storage.Pair]storage.Edge)}
	var producing sync.WaitGroup
	for i := range producers {
		producing.Go(func() { forward.produce(t, client, uint64(i), events/producers) })
	}
	produced := make(chan struct{})
	go func() { producing.Wait(); close(produced) }()

	r := rand.New(rand.NewPCG(1, 2))
	for killed := 0; killed < kills; killed++ {
		// The kills are spread over the work, so that some work is always in progress.
		due := int64(killed+1) * events / (kills + 1)
		must.Soon(t, "the producers go on", func() bool { return forward.made.Load() >= due })
		time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
		p := consumers[r.IntN(len(consumers))]
		p.kill()
		if killed%5 == 2 {
			server.Kill(t)
			server.Restart(t)
		}
		if r.IntN(2) == 0 { // another consumer takes its place, and its entries have to be claimed
			p.name += "'"
		}
		p.start()
	}
	<-produced

	// One more consumer reports when everything is acknowledged. That says nothing about the store's content.
	watcher, _ := consume(t, stream.ConsumerConfig{Redis: client, Name: "watcher", Propagator: replication.Propagator{Store: store}, ClaimAfter: time.Second})
	must.Soon(t, "everything is acknowledged", idle(watcher, time.Now()))
	forward.compare(t, store)
}

// compare finds every wrong row and count.
func (f *truth) compare(t *testing.T, store storage.Answerer) {
	t.Helper()
	wrong := 0
	complain := func(format string, args ...any) {
		if wrong++; wrong <= 10 {
			t.Errorf(format, args...)
		}
	}
	followers := make(map[storage.UserID]int64)
	for p, want := range f.edges {
		got := storage.EdgeLookups[storage.Inverse].Read(t.Context(), store, p)[0]
		if got.Err != nil || got.Value != want {
			complain("the inverse side has %+v, the forward side %+v", got, want)
		}
		if want.Type == storage.Following {
			followers[p.To]++
		}
	}
	for id := storage.UserID(1); id <= population; id++ {
		if got := storage.CountLookups.Read(t.Context(), store, id)[0]; got.Err != nil || got.Value.Follower != followers[id] {
			complain("user %d has count %+v, %d followers", id, got, followers[id])
		}
	}
	t.Logf("%d edges compared, %d differences", len(f.edges), wrong)
}
