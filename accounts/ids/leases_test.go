package ids

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"kith/internal/must"
	"kith/storage"
)

// leases is a [storage.Leaser] that can be made to fail.
type leases struct {
	mu     sync.Mutex
	slots  map[string]map[int]held // by kind
	down   error
	calls  int
	latest storage.Micros // the until of the last call
}

type held struct {
	owner string
	until storage.Micros
}

func newLeases() *leases { return &leases{slots: map[string]map[int]held{}} }

func (l *leases) Lease(_ context.Context, kind, owner string, slots int, now, until storage.Micros) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if l.down != nil {
		return 0, l.down
	}
	taken := l.slots[kind]
	if taken == nil {
		taken = map[int]held{}
		l.slots[kind] = taken
	}
	slot := -1
	for i := range slots {
		h, is := taken[i]
		if is && h.owner == owner {
			slot = i
			break
		}
		if slot < 0 && (!is || h.until <= now) {
			slot = i
		}
	}
	if slot < 0 {
		return 0, storage.ErrNoLease
	}
	taken[slot] = held{owner, until}
	l.latest = until
	return slot, nil
}

func (l *leases) Holders(context.Context, string) (map[string]storage.Micros, error) { return nil, nil }

func (l *leases) Release(_ context.Context, kind, owner string, _ storage.Micros) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for slot, h := range l.slots[kind] {
		if h.owner == owner {
			delete(l.slots[kind], slot)
		}
	}
	return l.down
}

func (l *leases) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = err
}

// steal gives all slots of a kind to another owner.
func (l *leases) steal(kind string, until storage.Micros) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for slot := range l.slots[kind] {
		l.slots[kind][slot] = held{"somebody else", until}
	}
}

func (l *leases) until(kind string, slot int) storage.Micros {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slots[kind][slot].until
}

func (l *leases) count(kind string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.slots[kind])
}

func start(t *testing.T, l storage.Leaser, cfg Config) *Generator {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	g, err := New(t.Context(), l, cfg)
	must.OK(t, err)
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g
}

func next(t *testing.T, g *Generator) storage.UserID {
	t.Helper()
	id, err := g.Next(t.Context())
	must.OK(t, err)
	return id
}
