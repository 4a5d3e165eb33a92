package localcache

import (
	"sync"

	"kith/storage"
)

// reported are the rows that writers reported to the cache last: when the events of these rows come,
// nothing has to be forgotten again.
type reported struct {
	mu   sync.Mutex
	rows map[storage.Row]struct{}
	ring []storage.Row // the same rows, in order of arrival
	next int
}

// reportedKept is how many rows are remembered while their events are on the way.
const reportedKept = 4096

func (t *reported) add(r storage.Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, again := t.rows[r]; again {
		return
	}
	if t.rows == nil {
		t.rows, t.ring = make(map[storage.Row]struct{}, reportedKept), make([]storage.Row, reportedKept)
	}
	delete(t.rows, t.ring[t.next])
	t.ring[t.next] = r
	t.rows[r] = struct{}{}
	t.next = (t.next + 1) % reportedKept
}

func (t *reported) has(r storage.Row) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.rows[r]
	return ok
}
