package social

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"

	"kith/storage"
)

const (
	// allowance is how many entries of indexes the feeds of one request read together, in some 50 ms: those of the last posts of 10,000
	// authors, and half as many again.
	allowance = 15_000
	// entriesOfPost is how many entries are read in the time of a post, or of one more SELECT.
	entriesOfPost = 3
	// entryForCost is for how much cost of the whole request its feeds read an entry less. They read a tenth of the entries in any case.
	entryForCost = 7
)

// Allowance is what the feeds of a request may read, other pages of posts to replace what they leave out, and set answers: without it, each alias
// would multiply the work. They are worked out one at a time, and one that has begun is not broken off. The zero value is whole.
type Allowance struct {
	mu    sync.Mutex // held while one of them reads
	taken atomic.Int64
	rows  atomic.Int64 // that set answers have examined, see [Graph.Within]
}

// Beside leaves less to a request of a high cost, so that feeds come instead of other work and not on top of it. nil is without a bound.
func (a *Allowance) Beside(cost uint64) {
	if a != nil {
		a.taken.Store(max(a.taken.Load(), int64(min(cost/entryForCost, allowance*9/10))))
	}
}

// take counts entries that are read. nil is without a bound.
func (a *Allowance) take(entries int) {
	if a != nil {
		a.taken.Add(int64(entries))
	}
}

// Latest is a page of the newest posts, as [Show] makes it. If others have read all that a request may read, it is empty, and goes on
// where it begins.
func (a *Allowance) Latest(after storage.Place, size int, shown func(storage.Post) bool, read func(after storage.Place, limit int) ([]storage.Post, error)) (Page[storage.Post], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.spent() {
		return Page[storage.Post]{More: true, End: cmp.Or(after, storage.Place{CreatedAt: math.MaxInt64})}, nil
	}
	rows, err := read(after, size+1)
	if err != nil {
		return Page[storage.Post]{}, err
	}
	a.take(entriesOfPost * len(rows))
	return Show(a, rows, size+1, size, shown, storage.Post.Place, read)
}

func (a *Allowance) spent() bool { return a.entries() <= 0 }

// entries is how many are left.
func (a *Allowance) entries() int {
	if a == nil {
		return math.MaxInt
	}
	return allowance - int(a.taken.Load())
}
