package accounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"kith/storage"
	"kith/storage/events"
	"kith/storage/metrics"
	"kith/storage/sleep"
)

// HiddenUsers are the users who are hidden from all others, because they have deactivated their
// accounts, are suspended or are being deleted. Every gateway keeps all of them in memory, eight bytes each, so
// that leaving them out of an answer needs no look-up.
//
// A gateway knows its own changes at once and those of others as soon as an event arrives. Without an event it learns them within [refreshEvery], by
// reading the changes from the stores. Its clock tells it within the same time that a suspension has ended. HiddenUsers implements
// [kith/social.HiddenUsers].
//
// The same reads bring changes of passwords.
type HiddenUsers struct {
	Passwords *PasswordTimes

	store   hiddenStore
	metrics *Metrics
	now     func() time.Time

	// Ascending, and never changed once they are stored. A deletion copies the users deleted last, and seldom all others, who may be millions.
	hidden, deleted, deletedLast atomic.Pointer[[]storage.UserID]

	mu       sync.Mutex
	shards   []watched
	noted    map[storage.UserID]bool                // since the refresh under way began
	leaving  map[storage.UserID]storage.Micros      // users who are being deleted, and since when
	gone     map[storage.UserID]departure           // deleted recently; they are also in hidden
	ending   map[storage.UserID]storage.StateChange // of those who are suspended
	reading  sync.Mutex                             // one refresh at a time
	far      time.Time                              // when a refresh last began at farOverlap
	restored bool                                   // a shard has been, since the refresh under way began
	unread   map[storage.UserID]bool                // known users of whom no change has been read since a shard was restored; nil: none was
	whole    bool                                   // all changes are to be read
	epochs   []int64                                // of the shards, when that was begun
	waking   sleep.Waker                            // when a refresh is asked for
}

// hiddenStore is where changes are read from.
type hiddenStore interface {
	storage.ShardAnswerer

	Served(ctx context.Context, shard int) (storage.Served, error)
}

// departure is a deletion that has ended.
type departure struct {
	at    storage.Micros
	swept bool
}

// watched is how far the changes of one shard have been read.
type watched struct {
	last storage.StateChange
	at   time.Time // when it last succeeded
	err  error     // of the last time
	life int64     // of the shard, see [storage.Served]; -1: not known yet
}

const (
	refreshEvery = time.Second
	// overlap is how far before the last change reading begins again: how much clocks of gateways
	// may differ, and how late a gateway may write with a time that it read earlier.
	overlap storage.Micros = 60_000_000
	// farOverlap is overlap once in farEvery: the clock that wrote the last change, this gateway's own perhaps, may be ahead by more.
	farOverlap = 10 * overlap
	farEvery   = 4 * refreshEvery
	// staleAfter is how long reading may fail before the gateway says so.
	staleAfter = 10 * refreshEvery
	// recently is how long a deleted user counts as hidden: lists may still have the user if
	// replication lags behind, or, for an hour, if a cache has not heard of the deletion.
	recently storage.Micros = 3_600_000_000

	changesAtOnce = 10_000

	// rests is how many times as long as a refresh the pause after it is, up to refreshEvery, however many users change: each one reads all
	// changes of the last minute again.
	rests = 9
)

// Metrics report how many users are hidden and how up to date that is.
type Metrics struct {
	hidden   prometheus.Gauge
	failures prometheus.Counter
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := metrics.In(registerer)
	return &Metrics{
		hidden: made.Gauge("kith_hidden_users",
			"Users who are hidden, since they have deactivated their accounts, are suspended or are being deleted."),
		failures: made.Counter("kith_hidden_users_refresh_failures_total", "Failed attempts to refresh from a shard which users are hidden."),
	}
}

// NewHiddenUsers makes a set that is empty until [HiddenUsers.Refresh].
func NewHiddenUsers(store hiddenStore, metrics *Metrics, now func() time.Time) *HiddenUsers {
	a := &HiddenUsers{
		Passwords: &PasswordTimes{at: map[storage.UserID]storage.Micros{}, watches: map[storage.UserID]map[*watch]struct{}{}},

		store: store, metrics: metrics, now: now,
		shards:  make([]watched, store.Shards()),
		noted:   map[storage.UserID]bool{},
		leaving: map[storage.UserID]storage.Micros{},
		gone:    map[storage.UserID]departure{},
		ending:  map[storage.UserID]storage.StateChange{},
		whole:   true,
		waking:  make(sleep.Waker, 1),
	}
	for _, list := range []*atomic.Pointer[[]storage.UserID]{&a.hidden, &a.deleted, &a.deletedLast} {
		list.Store(&[]storage.UserID{})
	}
	return a
}

// Has reports whether a user is hidden, or has been deleted: late rows of a deleted user
// must not be shown.
func (a *HiddenUsers) Has(id storage.UserID) bool {
	return holds(*a.hidden.Load(), id) || holds(*a.deletedLast.Load(), id) || holds(*a.deleted.Load(), id)
}

func holds(ids []storage.UserID, id storage.UserID) bool {
	_, found := slices.BinarySearch(ids, id)
	return found
}

// IDs lists the hidden users, ascending; of those who have been deleted, only the recent ones.
// The slice is shared: it must not be changed.
func (a *HiddenUsers) IDs() []storage.UserID { return *a.hidden.Load() }

// Note records the state of a user that was just written or read, and until when the user is suspended; a time that is over, such as 0, for not.
func (a *HiddenUsers) Note(id storage.UserID, state storage.UserState, suspendedUntil storage.Micros) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noted[id] = true
	change := storage.StateChange{At: storage.MicrosOf(a.now()), User: id, State: state, SuspendedUntil: suspendedUntil}
	a.apply([]storage.StateChange{change})
}

// Refresh reads the changes since the last time, from all shards at once. It
// returns the first error; the changes of the other shards are kept.
func (a *HiddenUsers) Refresh(ctx context.Context) error {
	a.reading.Lock()
	defer a.reading.Unlock()
	a.mu.Lock()
	clear(a.noted)
	a.apply(nil) // what the clock says
	shards := a.store.Shards()
	for len(a.shards) < shards { // the store has grown
		a.shards = append(a.shards, watched{life: -1})
	}
	if a.restored { // changes since the backup are undone, and no row says so: everything is read again
		a.restored, a.unread = false, map[storage.UserID]bool{}
		a.whole, a.epochs = true, nil
		for _, id := range slices.Concat(*a.hidden.Load(), *a.deletedLast.Load(), *a.deleted.Load()) {
			a.unread[id] = true
		}
		a.Passwords.readAgain()
	}
	a.mu.Unlock()
	back := overlap
	if now := time.Now(); now.Sub(a.far) >= farEvery {
		a.far, back = now, farOverlap
	}
	err := a.read(ctx, shards, back)
	if err == nil && !a.whole && a.unread != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		var back []storage.StateChange // to where no state is stored
		for id := range a.unread {
			if !a.noted[id] {
				back = append(back, storage.StateChange{User: id})
			}
		}
		a.apply(back)
		a.unread = nil
		a.Passwords.wasRead()
	}
	return err
}

// read reads the changes of all shards at once. If all changes are to be read, and buckets have moved meanwhile, they are read again: of a user
// who has moved to a shard that had been read already, no change would be known.
func (a *HiddenUsers) read(ctx context.Context, shards int, back storage.Micros) error {
	for range 3 { // the next refresh goes on: a start must not wait for all moves
		var failed error
		if a.whole && a.epochs == nil {
			if a.epochs, failed = a.epochsNow(ctx, shards); failed == nil {
				a.beginAnew()
			}
		}
		var all errgroup.Group
		for i := range shards {
			if back == farOverlap {
				all.Go(func() error { a.lookBack(ctx, i); return nil })
			}
			all.Go(func() error { return a.refresh(ctx, i, back) })
		}
		if err := cmp.Or(all.Wait(), failed); err != nil || !a.whole {
			return err
		}
		ended, err := a.epochsNow(ctx, shards)
		if err != nil {
			return err
		}
		if a.whole = !slices.Equal(ended, a.epochs); !a.whole {
			return nil
		}
		a.epochs = nil
	}
	return nil
}

// beginAnew has all changes read.
func (a *HiddenUsers) beginAnew() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.shards {
		a.shards[i].last = storage.StateChange{}
	}
}

func (a *HiddenUsers) epochsNow(ctx context.Context, shards int) (epochs []int64, err error) {
	for i := range shards {
		served, err := a.store.Served(ctx, i)
		if err != nil {
			return nil, fmt.Errorf("read which users shard %d has: %w", i, err)
		}
		epochs = append(epochs, served.Epoch)
	}
	return epochs, nil
}

// lookBack has everything read again at once if a shard has been restored.
func (a *HiddenUsers) lookBack(ctx context.Context, shard int) {
	served, err := a.store.Served(ctx, shard)
	a.mu.Lock()
	defer a.mu.Unlock()
	w := &a.shards[shard]
	if err != nil || served.Life == w.life {
		return
	}
	a.restored, w.life = a.restored || w.life >= 0, served.Life
	if a.restored {
		a.waking.Wake()
	}
}

func (a *HiddenUsers) refresh(ctx context.Context, shard int, back storage.Micros) error {
	a.mu.Lock()
	last := a.shards[shard].last
	a.mu.Unlock()
	// A clock that was ahead may have written the last change. That change is read again until its time has
	// come: it must not hide those of others.
	after := storage.StateChange{At: max(0, min(last.At, storage.MicrosOf(a.now()))-back)}
	var read []storage.StateChange // each time that some are applied, the hidden users are copied
	apply := func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, c := range read {
			delete(a.unread, c.User)
		}
		a.apply(slices.DeleteFunc(read, func(c storage.StateChange) bool { return a.noted[c.User] }))
		read = nil
	}
	for {
		changes, err := storage.StateChangeLookups.Get(ctx, a.store, storage.ShardQuery[storage.StateChange]{Shard: shard, After: after, Limit: changesAtOnce})
		read = append(read, changes...)
		if ended := len(changes) < changesAtOnce; len(read) > 0 && (ended || len(read) > len(*a.hidden.Load())/(4*a.store.Shards())) {
			apply()
		}
		if err != nil {
			a.note(shard, last, fmt.Errorf("read who is hidden on shard %d: %w", shard, err))
			return err
		}
		if n := len(changes); n > 0 {
			after = changes[n-1]
			if after.At > last.At {
				last = after
			}
			for _, c := range changes {
				a.Passwords.Note(c.User, c.PasswordAt)
			}
		}
		if len(changes) < changesAtOnce {
			a.note(shard, last, nil)
			return nil
		}
	}
}

// note keeps how far a shard has been read.
func (a *HiddenUsers) note(shard int, last storage.StateChange, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := &a.shards[shard]
	w.last, w.err = last, err
	if err == nil {
		w.at = a.now()
	} else {
		a.metrics.failures.Inc()
	}
}

// apply applies changes. The lock is held.
func (a *HiddenUsers) apply(changes []storage.StateChange) {
	now := storage.MicrosOf(a.now())
	hide, bury := map[storage.UserID]bool{}, map[storage.UserID]bool{}
	for id, d := range a.gone {
		if now-d.at >= recently {
			delete(a.gone, id)
			hide[id] = false
		}
	}
	for id, c := range a.ending {
		if c.SuspendedUntil <= now {
			delete(a.ending, id)
			hide[id] = c.State == storage.Deactivated
		}
	}
	for _, c := range changes {
		bury[c.User] = c.State == storage.Deleted
		isRecent := bury[c.User] && now-c.At < recently
		isSuspended := c.State < storage.Deleting && c.SuspendedUntil > now
		hide[c.User] = c.State == storage.Deactivated || c.State == storage.Deleting || isRecent || isSuspended
		if delete(a.ending, c.User); isSuspended {
			a.ending[c.User] = c
		}
		if since, known := a.leaving[c.User]; c.State != storage.Deleting {
			delete(a.leaving, c.User)
		} else if at := min(c.At, now); !known || at < since {
			a.leaving[c.User] = at
		}
		if !bury[c.User] {
			delete(a.gone, c.User)
		} else if _, known := a.gone[c.User]; !known && isRecent {
			a.gone[c.User] = departure{at: min(c.At, now)}
		}
	}
	a.bury(bury) // first, so that no user is visible in between
	change(&a.hidden, hide)
	a.metrics.hidden.Set(float64(len(*a.hidden.Load()) - len(a.gone)))
}

// bury notes who has been deleted, and who is there again, as after a restore.
func (a *HiddenUsers) bury(is map[storage.UserID]bool) {
	all, again := *a.deleted.Load(), map[storage.UserID]bool{}
	for id, deleted := range is {
		if holds(all, id) {
			again[id] = deleted
			delete(is, id)
		}
	}
	change(&a.deleted, again)
	change(&a.deletedLast, is)
	last := *a.deletedLast.Load()
	if len(last) <= changesAtOnce+len(all)/16 {
		return
	}
	clear(is)
	for _, id := range last {
		is[id] = true
	}
	change(&a.deleted, is)
	a.deletedLast.Store(&[]storage.UserID{})
}

// change puts users into a list and takes others out.
func change(list *atomic.Pointer[[]storage.UserID], member map[storage.UserID]bool) {
	old, differs := *list.Load(), false
	for id, is := range member {
		differs = differs || holds(old, id) != is
	}
	if !differs {
		return
	}
	next := make([]storage.UserID, 0, len(old)+len(member))
	for _, id := range slices.Sorted(maps.Keys(member)) {
		at, was := slices.BinarySearch(old, id)
		next = append(next, old[:at]...)
		if old = old[at:]; was {
			old = old[1:]
		}
		if member[id] {
			next = append(next, id)
		}
	}
	next = append(next, old...)
	list.Store(&next)
}

// Run refreshes until the context is done, and also when the hub reports a change.
func (a *HiddenUsers) Run(ctx context.Context, hub *events.Hub) {
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() { a.listen(ctx, hub) })
	ticks := time.NewTicker(refreshEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		case <-a.waking:
		}
		began := time.Now()
		_ = a.Refresh(ctx) // a failure is in the shard's state, and in a metric
		_ = sleep.For(ctx, min(rests*time.Since(began), refreshEvery))
	}
}

// listen asks for a refresh when a user's state has changed, or when events may be
// missing. If its subscription was too slow, it subscribes again.
func (a *HiddenUsers) listen(ctx context.Context, hub *events.Hub) {
	for {
		changes := hub.SubscribeTo(ctx, events.UserChanged, storage.Standing)
		for range changes.Events() {
			a.waking.Wake()
		}
		if !errors.Is(changes.Err(), events.ErrSlow) {
			return
		}
	}
}

// Ready returns an error if a shard has not answered for long: then a user who wants to be hidden
// may be shown.
func (a *HiddenUsers) Ready(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, w := range a.shards {
		if a.now().Sub(w.at) > staleAfter {
			return fmt.Errorf("who is hidden on shard %d is not known since %s: %w", i, w.at.UTC().Format(time.RFC3339), w.err)
		}
	}
	return nil
}

// unfinished lists the users whose deletion began before a time and has not ended.
func (a *HiddenUsers) unfinished(before storage.Micros) []storage.UserID {
	return listed(a, a.leaving, func(since storage.Micros) bool { return since < before })
}

// finished lists the users whose deletion ended not long ago, but before a time, and
// that have not been [HiddenUsers.swept] since.
func (a *HiddenUsers) finished(before storage.Micros) []storage.UserID {
	return listed(a, a.gone, func(d departure) bool { return !d.swept && d.at < before })
}

func listed[V any](a *HiddenUsers, users map[storage.UserID]V, is func(V) bool) (ids []storage.UserID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, v := range users {
		if is(v) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// swept notes that a deletion need not be checked again.
func (a *HiddenUsers) swept(id storage.UserID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d, ok := a.gone[id]; ok {
		a.gone[id] = departure{d.at, true}
	}
}
