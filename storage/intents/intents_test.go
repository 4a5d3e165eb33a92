package intents_test

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/intents"
)

const key = "kith:test:intents"

// process is a log with the users that it was asked to sweep.
type process struct {
	*intents.Log
	mu    sync.Mutex
	swept [][]storage.UserID
	fails bool // its sweeps do not reach every gateway
}

func open(t testing.TB, client redis.UniversalClient) *process {
	t.Helper()
	p := &process{}
	p.Log = intents.Open(intents.Config{Redis: client, Key: key, Sweep: func(_ context.Context, users []storage.UserID, done func()) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.swept = append(p.swept, users)
		if !p.fails {
			done()
		}
	}})
	t.Cleanup(p.Close)
	return p
}

// begin is what a writer does before its commit.
func (p *process) begin(users ...storage.UserID) *intents.Intent {
	in := p.Begin(users)
	in.Wait()
	return in
}

// times returns how often a user was swept; 0 stands for everybody.
func (p *process) times(user storage.UserID) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, users := range p.swept {
		if slices.Contains(users, user) || user == 0 && len(users) == 0 {
			n++
		}
	}
	return n
}

func connect(t testing.TB, server *testenv.RedisServer) redis.UniversalClient {
	t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{server.Addr()}, ContextTimeoutEnabled: true, DialerRetries: 1})
	t.Cleanup(func() { client.Close() })
	return client
}

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	const patience = time.Minute // longer than the time in which users are swept one by one
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// count returns the number of intents, or −1 while Redis does not answer. For up to a second after an outage
// the client still returns the error of its last attempt to connect.
func count(t testing.TB, client redis.UniversalClient) int64 {
	t.Helper()
	n, err := client.ZCard(context.WithoutCancel(t.Context()), key).Result()
	if err != nil {
		t.Log(err)
		return -1
	}
	return n
}

// TestIntentsOfDeadProcessesAreSwept: they are swept again and again, because the write may still be
// committed. An intent of a living process is not swept, however long it takes.
func TestIntentsOfDeadProcessesAreSwept(t *testing.T) {
	t.Parallel()
	client := connect(t, testenv.Redis(t))
	dead, living := open(t, client), open(t, client)
	living.begin(3)
	dead.begin(1, 2)
	dead.Close()
	began := time.Now()
	eventually(t, "the dead process's users are swept", func() bool { return living.times(1) == 1 && living.times(2) == 1 })
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	eventually(t, "they are swept again", func() bool { return living.times(1) == 3 })
	if n := living.times(3) + dead.times(3); n > 0 {
		t.Errorf("a write under way was swept %d times", n)
	}
	if n := living.times(0); n > 0 {
		t.Errorf("everybody was swept %d times", n)
	}
}

// TestIntentsThatAreDoneAreNotSwept: writes that have notified the caches leave nothing behind, even
// if others write at the same time.
func TestIntentsThatAreDoneAreNotSwept(t *testing.T) {
	t.Parallel()
	client := connect(t, testenv.Redis(t))
	p := open(t, client)
	var writers sync.WaitGroup
	for w := range storage.UserID(16) {
		writers.Go(func() {
			for n := range storage.UserID(100) {
				intent := p.begin(w, n)
				if n%20 == 0 && count(t, client) == 0 {
					t.Error("a write goes on before it is noted")
				}
				intent.Done()
			}
		})
	}
	writers.Wait()
	eventually(t, "nothing is left", func() bool { return count(t, client) == 0 })
	if len(p.swept) > 0 {
		t.Errorf("swept: %v", p.swept)
	}
}

// TestIntentsThatAreLeftAreSwept by their own process, too.
func TestIntentsThatAreLeftAreSwept(t *testing.T) {
	t.Parallel()
	p := open(t, connect(t, testenv.Redis(t)))
	p.begin(7).Leave()
	eventually(t, "it is swept", func() bool { return p.times(7) > 0 })
}

// TestOldIntentsEnd when all caches have been notified, and not before.
func TestOldIntentsEnd(t *testing.T) {
	t.Parallel()
	client := connect(t, testenv.Redis(t))
	p := open(t, client)
	p.fails = true
	old := string(make([]byte, 23)) + "\x01" + "\x00\x00\x00\x00\x00\x00\x00\x05" // of 1970, user 5
	for _, member := range []string{old, "not an intent"} {
		if err := client.ZAdd(t.Context(), key, redis.Z{Member: member}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "it is swept twice", func() bool { return p.times(5) == 2 })
	if count(t, client) != 2 {
		t.Error("it is gone though nobody has been notified")
	}
	p.mu.Lock()
	p.fails = false
	p.mu.Unlock()
	eventually(t, "it is gone", func() bool { return count(t, client) == 0 })
}

// TestTooManyIntentsAreForEverybody: the set is then emptied, so it cannot grow. The intents are written in
// one exchange: if a sweep came between two exchanges, the intents of the second one could be swept one by
// one until they are old.
func TestTooManyIntentsAreForEverybody(t *testing.T) {
	t.Parallel()
	client := connect(t, testenv.Redis(t))
	living := open(t, client)
	living.begin(9999)
	ofTheDead := make([]redis.Z, 5000)
	for i := range ofTheDead {
		member := make([]byte, 32) // a writer, a number, the time, a user
		binary.BigEndian.PutUint64(member[8:], uint64(i))
		binary.BigEndian.PutUint64(member[16:], uint64(time.Now().Unix()))
		binary.BigEndian.PutUint64(member[24:], uint64(i+1))
		ofTheDead[i].Member = string(member)
	}
	if err := client.ZAdd(t.Context(), key, ofTheDead...).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "everybody is swept", func() bool { return living.times(0) > 0 })
	eventually(t, "only what is under way is left", func() bool { return count(t, client) == 1 })
	if n := living.times(1); n > 0 {
		t.Errorf("of too many, one was swept %d times", n)
	}
}

// TestRedisAway: a write does not wait for Redis. Writes that are still running are noted when Redis is back.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := connect(t, server)
	p := open(t, client)
	p.begin(1).Done()
	server.Freeze(t)
	began := time.Now()
	for range 50 {
		p.begin(2).Done()
	}
	open := p.begin(3)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("51 writes waited for %v", took)
	}
	server.Thaw(t)
	server.Kill(t)
	server.Restart(t)
	eventually(t, "the write under way is noted", func() bool { return count(t, client) == 1 })
	open.Done()
	eventually(t, "and removed", func() bool { return count(t, client) == 0 })
}

// TestInCluster: everything is stored under one key.
func TestInCluster(t *testing.T) {
	t.Parallel()
	var addrs []string
	for _, server := range testenv.RedisCluster(t, 3) {
		addrs = append(addrs, server.Addr())
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	p := open(t, client)
	done, left := p.begin(1), p.begin(2)
	done.Done()
	left.Leave()
	eventually(t, "what was left is swept", func() bool { return p.times(2) > 0 })
	if p.times(1) > 0 {
		t.Error("what was done is swept")
	}
}

func TestNoLog(t *testing.T) {
	var none *intents.Log
	intent := none.Begin([]storage.UserID{1})
	intent.Wait()
	intent.Done()
	intent.Leave()
	none.Close()
}

func BenchmarkBegin(b *testing.B) {
	client := connect(b, testenv.Redis(b))
	p := open(b, client)
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p.begin(1, 2).Done()
		}
	})
}
