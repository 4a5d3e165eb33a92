package storagetest

import (
	"runtime"
	"sync"
	"testing"

	"kith/internal/check"
)

// Answers of one moment. One goroutine writes, step by step, while others read. What they have
// read of each version is compared with what was written by then.

const (
	fewMoments = 25   // versions that readers have to see
	manySteps  = 3000 // after so many steps they need not
)

// whileWriting lets goroutines read all the time while one goroutine writes. It returns what they
// have read, each answer once, by version.
func whileWriting[V any](t *testing.T, write func(step int), read func() (version int64, value V, ok bool)) map[int64][]V {
	t.Helper()
	var mu sync.Mutex
	seen := map[int64][]V{}
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) >= fewMoments
	}
	done := make(chan struct{})
	atOnce(4, func(worker int) {
		if worker == 0 {
			defer close(done)
			for step := 0; step < manySteps && !enough() && !t.Failed(); step++ {
				write(step + 1)
				runtime.Gosched() // otherwise the readers would not run on one processor
			}
			return
		}
		for {
			select {
			case <-done:
				return
			default:
			}
			version, value, ok := read()
			if !ok {
				return
			}
			mu.Lock()
			if len(seen[version]) < 20 {
				seen[version] = append(seen[version], value)
			}
			mu.Unlock()
		}
	})
	check.That(t, len(seen) >= 2, "readers came across %d versions", len(seen))
	return seen
}
