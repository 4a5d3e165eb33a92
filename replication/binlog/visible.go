package binlog

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"kith/storage"
	"kith/storage/sleep"
)

// A server logs a transaction before others can read what it has written: it still waits for the disk or, with semi-synchronous replication
// (AFTER_SYNC), for a replica. A listener that hears of it by then would read the rows before it, and not hear of it again. So nothing is
// passed on before it can be read. Transactions become visible in the order of the log, so it is enough to wait for the last of those that
// have come together.

const (
	// AllVisible is after how long at most, normally, what is in a log can be read by others.
	AllVisible = time.Second

	// BecomesVisible is how long that is waited for if nothing shows it.
	BecomesVisible = 100 * time.Millisecond

	// mostHeld is how long a transaction is waited for that can surely not be read yet: longer than servers wait for a replica by default.
	mostHeld = 15 * time.Second

	// mostWaiting is how many transactions wait together, and mostRows how many rows they have, unless one alone has more.
	mostWaiting = 64
	mostRows    = 100_000
)

// left is a row that a transaction has written and that shows, by its version, when the transaction can be read: the counts of a post, or
// those of a user if Number is 0. A transaction may leave none.
type left struct {
	storage.PostID
	version int64
	isNew   bool // it may not have been there before
}

// await waits until what a transaction has left can be read. It returns false if that does not show in time: it may have been removed since.
func (l left) await(ctx context.Context, from storage.Answerer) bool {
	for began := time.Now(); ; {
		is, found, err := l.read(ctx, from)
		if err == nil && (found && is >= l.version || !found && !l.isNew) { // a row that was there and is gone was removed later
			return true
		}
		wait := AllVisible
		if err == nil && found {
			wait = mostHeld
		}
		if time.Since(began) > wait || sleep.For(ctx, time.Millisecond) != nil {
			return false
		}
	}
}

// read reads the version of the row.
func (l left) read(ctx context.Context, from storage.Answerer) (version int64, found bool, err error) {
	if l.Number == 0 {
		r := storage.CountLookups.Read(ctx, from, l.Author)[0]
		return r.Value.Version, r.Found, r.Err
	}
	r := storage.PostLookups.Read(ctx, from, l.PostID)[0]
	return r.Value.Counts.Version, r.Found, r.Err
}

// onceVisible passes the transactions that read adds to take, in their order, once others can read them, and returns the error of read after
// the last of them.
func onceVisible(ctx context.Context, from storage.Answerer, take func(*transaction), read func(add func(*transaction) error) error) error {
	queue, passed, room := make(chan *transaction, mostWaiting), make(chan struct{}), semaphore.NewWeighted(mostRows)
	defer func() { close(queue); <-passed }()
	go func() {
		defer close(passed)
		for first := range queue {
			together := []*transaction{first}
			for range len(queue) {
				together = append(together, <-queue)
			}
			awaitLast(ctx, from, together)
			for _, done := range together {
				if ctx.Err() == nil {
					take(done)
				}
				room.Release(done.size())
			}
		}
	}()
	return read(func(done *transaction) error {
		if err := room.Acquire(ctx, done.size()); err != nil {
			return err
		}
		select {
		case queue <- done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// awaitLast waits for the last of some transactions that anybody reads.
func awaitLast(ctx context.Context, from storage.Answerer, list []*transaction) {
	for _, last := range slices.Backward(list) {
		switch {
		case !last.ours() || last.moves: // rows that move can be read where they were
		case last.left.Author != 0:
			last.left.await(ctx, from)
			return
		default:
			_ = sleep.For(ctx, BecomesVisible)
			return
		}
	}
}
