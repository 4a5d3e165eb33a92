package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/cache/localcache"
)

// TestLongResidentMemory fills caches of several sizes, each in its own process, while as much garbage is made as by
// requests. It checks the largest resident memory, and what collections cost. For comparison it runs a process without
// the limit. KITH_TEST_MEMORY names other sizes, in MB.
func TestLongResidentMemory(t *testing.T) {
	if size := os.Getenv("KITH_TEST_MEMORY_OF"); size != "" {
		fillCaches(t, size)
		return
	}
	testenv.Long(t)
	sizes := os.Getenv("KITH_TEST_MEMORY")
	if sizes == "" {
		sizes = "256,1024,4096"
	}
	for _, size := range strings.Split(sizes, ",") {
		mb, err := strconv.Atoi(size)
		must.OK(t, err)
		for _, limited := range []bool{true, false} {
			if !limited && mb > 1024 {
				continue // it would take five times as much
			}
			bytes := uint64(mb) << 20
			child := exec.Command(os.Args[0], "-test.run=^TestLongResidentMemory$", "-test.v", "-test.timeout=20m")
			child.Env = append(os.Environ(), fmt.Sprint("KITH_TEST_MEMORY_OF=", bytes), fmt.Sprint("KITH_TEST_LIMITED=", limited))
			out, err := child.CombinedOutput()
			must.That(t, err == nil, "%v\n%s", err, out)
			most := footprint{}.with(&bytes).most
			line := regexp.MustCompile(`(?m)^ {4}\S+ (resident (\d+) MB.*)$`).FindSubmatch(out)
			must.That(t, line != nil, "%s", out)
			t.Logf("--cache-bytes %d MiB, limit %v, promised %d MB: %s", mb, limited, most/1e6, line[1])
			if resident, _ := strconv.ParseUint(string(line[2]), 10, 64); limited && resident*1e6 > most {
				t.Errorf("%d MB are resident, more than %d", resident, most/1e6)
			}
		}
	}
}

// fillCaches is one of these processes. Half of the bytes that it asks for are users, and half are lists of 48 follows.
func fillCaches(t *testing.T, size string) {
	bytes, err := strconv.ParseUint(size, 10, 64)
	must.OK(t, err)
	if os.Getenv("KITH_TEST_LIMITED") == "true" {
		footprint{}.with(&bytes).tuneGC()
	} else {
		footprint{limit: 1 << 62}.tuneGC()
	}
	const userBytes, listBytes, follows, garbage = 430, 1660, 48, 25_000
	source := endless{oracle.New(), follows}
	began := time.Now()
	cache := localcache.New(localcache.Config{Store: source, Bytes: bytes, Now: func() time.Time { return began }}) // nothing expires
	defer cache.Close()
	users, lists := int(bytes)*6/10/userBytes, int(bytes)*6/10/listBytes // a fifth more than fits
	ask := func(user, list int) {
		ids := make([]storage.UserID, 20)
		for i := range ids {
			ids[i] = storage.UserID(1 + (user+i)%users)
		}
		storage.UserLookups.Read(t.Context(), cache, ids...)
		storage.NeighbourLookups[storage.Forward].Read(t.Context(), cache, storage.UserID(1+list%lists))
	}
	each(func(part, of int) {
		for n := part * users / of / 20; n < (part+1)*users/of/20; n++ {
			ask(n*20, n*lists/(users/20))
		}
	})
	gc, all, requests := spent(t), testenv.ProcessorTime(), 0
	var mu sync.Mutex
	each(func(part, _ int) {
		random := rand.New(rand.NewPCG(1, uint64(part)))
		n := 0
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); n++ {
			ask(random.IntN(users), random.IntN(lists))
			runtime.KeepAlive(make([]byte, garbage-n%8))
		}
		mu.Lock()
		defer mu.Unlock()
		requests += n
	})
	status, err := os.ReadFile("/proc/self/status")
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if err != nil || found == nil {
		t.Skip("the system does not say what is resident")
	}
	kb, _ := strconv.Atoi(string(found[1]))
	took, collecting := testenv.ProcessorTime()-all, spent(t)-gc
	t.Logf("resident %d MB; %d requests, %.0f µs of processor each, %.0f µs of them collecting",
		kb<<10/1_000_000, requests, took.Seconds()*1e6/float64(requests), collecting*1e6/float64(requests))
}

// each runs a part of some work on each processor.
func each(work func(part, of int)) {
	var working sync.WaitGroup
	for part := range runtime.GOMAXPROCS(0) {
		working.Go(func() { work(part, runtime.GOMAXPROCS(0)) })
	}
	working.Wait()
}

// spent is how many seconds of processor time marking has taken, including time that would have been idle.
func spent(t *testing.T) float64 {
	t.Helper()
	samples := []metrics.Sample{{Name: "/cpu/classes/gc/mark/assist:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/dedicated:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	runtime.GC() // it updates the metrics
	metrics.Read(samples)
	sum := 0.0
	for _, s := range samples {
		sum += s.Value.Float64()
	}
	return sum
}

// endless has an answer for every user, without storing anything.
type endless struct {
	storage.Store
	follows int
}

func (e endless) profiles(_ context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	results := make([]storage.Result[storage.Profile], len(ids))
	for i, id := range ids {
		user := storage.User{ID: id, Handle: "user" + id.String(), Name: "User " + id.String(), Bio: strings.Repeat("b", 40)}
		results[i] = storage.Result[storage.Profile]{Found: true, Value: storage.Profile{User: user, Exists: true, Counted: true}}
	}
	return results
}

func (e endless) lists(_ context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	const users = 1_000_000
	results := make([]storage.Result[storage.List], len(queries))
	for i, q := range queries {
		edges := make([]storage.Edge, e.follows)
		for k := range edges {
			p := side.Pair(q.Owner, storage.UserID(1+(int(q.Owner)*7919+k*20011)%users))
			edges[k] = storage.Edge{From: p.From, To: p.To, Type: storage.Following, UpdateTime: storage.Micros(1_700_000_000_000_000 - k*3_600_000_000)}
		}
		results[i] = storage.Result[storage.List]{Found: true, Value: storage.List{Version: 1, Edges: edges}}
	}
	return results
}

func (e endless) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ProfileLookups.Instead(ctx, b, e.profiles)
	storage.SnapshotLookups.Instead(ctx, b, e.lists)
	e.Store.Bundle(ctx, b)
}
