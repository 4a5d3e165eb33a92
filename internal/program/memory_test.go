package program_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
)

// TestResidentMemoryIsBounded asks for all users and their lists, far more than the cache may keep, and checks the
// largest resident memory. Garbage may be up to 20 times the live memory, so only the limit bounds it.
func TestResidentMemoryIsBounded(t *testing.T) {
	t.Parallel()
	const users, cache, requests, askers = 300, 4 << 20, 320, 4
	store, graph := location(newMariaDB(t, 2)...), filepath.Join(t.TempDir(), "graph.gz")
	kithtest.BenchBinary(t)
	for _, args := range [][]string{{"bench", "generate", "--users", strconv.Itoa(users), graph}, {"import", "--store", store, graph}} {
		kithtest.Ends(t, 0, kithtest.Args(args...))
	}
	g := kithtest.Start(t, kithtest.Args("--store", store, "--cache-bytes", strconv.Itoa(cache), "--max-cost", "1000000"), kithtest.Env("GOGC=2000"))
	const query = `query($ids: [ID!]!) { users(by: {ids: $ids}) { id handle name bio followings(first: 50) { edges { followedAt node { id handle name bio followerCount } } } followers(first: 50) { edges { node { id name } } } } }`
	var asking sync.WaitGroup
	for asker := range askers {
		asking.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(asker)))
			for range requests / askers {
				ids := make([]string, 10)
				for i := range ids {
					ids[i] = strconv.Itoa(1 + random.IntN(users))
				}
				for busy := true; busy; { // the machine may be busy
					r, err := g.Ask(query, map[string]any{"ids": ids})
					busy = r.Busy()
					if err != nil || len(r.Errors) > 0 && !busy {
						t.Errorf("%v %+v", err, r.Errors)
						return
					}
				}
			}
		})
	}
	asking.Wait()
	const most = 13 * (cache + 150_000_000) / 10
	resident := mostResident(t, g.PID())
	check.Most(t, "resident bytes", resident, most)
	t.Logf("%d of %d MB were resident", resident/1e6, most/1_000_000)
}

var peak = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// mostResident is the largest resident memory that a process has had.
func mostResident(t testing.TB, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	found := peak.FindSubmatch(status)
	if err != nil || found == nil {
		t.Skip("the system does not say what is resident") // this is not Linux
	}
	kb, _ := strconv.Atoi(string(found[1]))
	return kb << 10
}
