package ids

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// TestUnique makes a million ids with many generators at once, each of them used by several
// goroutines.
func TestUnique(t *testing.T) {
	t.Parallel()
	const generators, callers, each = 64, 4, 4000
	l := newLeases()
	made := make([][]storage.UserID, generators*callers)
	var running sync.WaitGroup
	for i := range generators {
		g := start(t, l, Config{})
		for j := range callers {
			running.Go(func() {
				ids := make([]storage.UserID, 0, each)
				for range each {
					id, err := g.Next(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					ids = append(ids, id)
				}
				made[i*callers+j] = ids
			})
		}
	}
	running.Wait()
	all := slices.Concat(made...)
	slices.Sort(all)
	n := len(slices.Compact(slices.Clone(all)))
	must.That(t, n == generators*callers*each && n == len(all), "%d different ids of %d", n, len(all))
	must.That(t, all[0] >= 1, "id %d is not positive", all[0])
	for i, ids := range made {
		must.That(t, slices.IsSorted(ids), "caller %d got ids out of order", i)
	}
}

// TestRestarts: generators that follow one another at once never make the same id.
func TestRestarts(t *testing.T) {
	t.Parallel()
	l := newLeases()
	seen := map[storage.UserID]bool{}
	for range 50 {
		g := start(t, l, Config{})
		for range 20 {
			id := next(t, g)
			must.That(t, !seen[id], "%d was made before", id)
			seen[id] = true
		}
		must.OK(t, g.Close(t.Context()))
	}
}

// TestMachineIDsDiffer: ids that are leased differ from one another.
func TestMachineIDsDiffer(t *testing.T) {
	t.Parallel()
	l := newLeases()
	seen := map[int]bool{}
	var mu sync.Mutex
	var running sync.WaitGroup
	for range 100 {
		running.Go(func() {
			g, err := New(t.Context(), l, Config{})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { g.Close(context.Background()) })
			machine := g.MachineID()
			id, err := g.Next(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			check.That(t, !seen[machine] && int(id&0xffff) == machine, "machine %d, known %t, in the id %d", machine, seen[machine], id&0xffff)
			seen[machine] = true
		})
	}
	running.Wait()
}

// TestSilentStore: the start ends although the store does not answer.
func TestSilentStore(t *testing.T) {
	t.Parallel()
	_, err := New(t.Context(), silent{}, Config{Wait: 50 * time.Millisecond})
	must.That(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
}

type silent struct{ storage.Leaser }

func (silent) Lease(ctx context.Context, _, _ string, _ int, _, _ storage.Micros) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func TestNoSlot(t *testing.T) {
	t.Parallel()
	l := newLeases()
	l.fail(storage.ErrNoLease)
	_, err := New(t.Context(), l, Config{})
	must.That(t, errors.Is(err, storage.ErrNoLease), "%v", err)
}
