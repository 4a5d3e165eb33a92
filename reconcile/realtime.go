package reconcile

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kith/internal/sleep"
)

// Realtime watches both sides while they are being written.
//
// It follows the logs and pairs the two halves of each edge. If the halves of an edge are not the
// same within the window, it looks the edge up in the tables, and repairs it if it differs there.
// It keeps at most MaxPending edges in memory: edges beyond that are not checked, but counted, and
// left to [Incremental].
//
// Its checkpoints move only past edges that are settled, so after a restart it continues where it
// ended.
type Realtime struct {
	common

	mu      sync.Mutex
	logs    []*logFollowed
	pending map[Key]*unpaired
	queue   *list.List // of *unpaired, roughly ordered by due
	epochs  []*epoch   // the last one is open
}

// NewRealtime makes a Realtime. It does nothing before [Realtime.Run].
func NewRealtime(cfg ChangesConfig) *Realtime {
	return &Realtime{
		common:  newCommon(cfg, ModeRealtime),
		pending: map[Key]*unpaired{},
		queue:   list.New(),
		epochs:  []*epoch{{}},
	}
}

// logFollowed is a log, with how far it has been read.
type logFollowed struct {
	Log
	at    LogPosition // no row before it is unknown to the epochs
	noted time.Time   // when at was noted
	kept  LogPosition
}

// unpaired is an edge whose halves are not the same yet.
type unpaired struct {
	halves
	element  *list.Element // in the queue; nil while it is looked up
	since    time.Time     // when its first half was read
	last     time.Time     // when its last half was read
	due      time.Time     // when to look it up
	epoch    *epoch
	reported bool // whether the disagreement has been
	done     bool
}

// An epoch is a period of time. Once all edges of an epoch and of those before it are settled, so
// is everything in the logs up to the epoch's ends.
type epoch struct {
	unpaired int
	ends     map[*logFollowed]LogPosition // nil while it is open
}

const (
	// keepEvery is how often an epoch ends.
	keepEvery = time.Second

	// mostEpochs bounds the epochs while edges cannot be settled: the last one then stays open.
	mostEpochs = 100

	// notedEvery is how often the position in a log is noted, which costs more than a row.
	notedEvery = 200 * time.Millisecond
)

// Run watches until the context ends, and then returns nil. It returns an error if it cannot begin.
// It may be called once.
func (r *Realtime) Run(ctx context.Context) error {
	logs := r.Changes.Logs()
	positions, err := loadPositions(ctx, r.Checkpoints, r.mode, logs)
	if err != nil && ctx.Err() == nil {
		return err
	}
	for i, l := range logs {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it is ended, and whatever failed did so by that
		}
		at := positions[i]
		if at == "" {
			at, err = r.anew(ctx, l)
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", l.Title(), err)
		}
		r.logs = append(r.logs, &logFollowed{Log: l, at: at, kept: at})
	}
	var wg sync.WaitGroup
	for _, l := range r.logs {
		wg.Go(func() { r.follow(ctx, l) })
	}
	wg.Go(func() { r.lookUpAll(ctx) })
	wg.Go(func() { r.keepAll(ctx) })
	wg.Wait()
	return nil
}

// anew makes the present end of a log its checkpoint.
func (r *Realtime) anew(ctx context.Context, l Log) (LogPosition, error) {
	at, err := l.End(ctx)
	if err == nil {
		err = r.Checkpoints.SaveCheckpoint(ctx, checkpointOf(r.mode, l), []byte(at))
	}
	return at, err
}

// follow keeps reading a log, and continues after interruptions.
func (r *Realtime) follow(ctx context.Context, l *logFollowed) {
	const longest = 5 * time.Second
	for pause := longPause; ctx.Err() == nil; pause = min(2*pause, longest) {
		began := time.Now()
		r.mu.Lock()
		at := l.at
		r.mu.Unlock()
		err := l.Read(ctx, at, "", func(rows []Row, at func() (LogPosition, error)) error { return r.take(l, rows, at) })
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, ErrLost) {
			r.Metrics.Lost(r.mode)
			r.Logger.ErrorContext(ctx, "reconcile: changes are lost; run kith reconcile full; going on from now", "log", l.Title(), "error", err)
			at, err = r.anew(ctx, l)
			if err == nil {
				r.jump(l, at)
			}
		}
		if err != nil {
			r.Logger.WarnContext(ctx, "reconcile: a log is interrupted; trying again", "log", l.Title(), "error", err)
		}
		if time.Since(began) > time.Minute {
			pause = longPause
		}
		if sleep.For(ctx, pause) != nil {
			return
		}
	}
}

// jump continues from a position that does not follow what was read before.
func (r *Realtime) jump(l *logFollowed, to LogPosition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.at, l.kept = to, to
	for _, e := range r.epochs {
		if e.ends != nil {
			e.ends[l] = to // or the old position would be stored again
		}
	}
}

// take notes the rows of a log.
func (r *Realtime) take(l *logFollowed, rows []Row, at func() (LogPosition, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, row := range rows {
		r.note(row, now)
	}
	if now.Sub(l.noted) < notedEvery {
		return nil
	}
	position, err := at()
	if err != nil {
		return err
	}
	l.at, l.noted = position, now
	return nil
}

// note adds a row to its edge.
func (r *Realtime) note(row Row, now time.Time) {
	k := keyOf(row)
	u := r.pending[k]
	if u == nil {
		if len(r.pending) >= r.MaxPending {
			r.Metrics.Dropped(1)
			return
		}
		u = &unpaired{halves: halves{key: k}, since: now, due: now.Add(r.Window), epoch: r.epochs[len(r.epochs)-1]}
		u.epoch.unpaired++
		u.element = r.queue.PushBack(u)
		r.pending[k] = u
	}
	u.last = now
	if u.note(row); u.paired() {
		r.resolve(u)
	}
}

// resolve forgets a settled edge.
func (r *Realtime) resolve(u *unpaired) {
	if u.done {
		return
	}
	u.done = true
	u.epoch.unpaired--
	delete(r.pending, u.key)
	if u.element != nil {
		r.queue.Remove(u.element)
		u.element = nil
	}
}

// again schedules another look-up of an edge.
func (r *Realtime) again(u *unpaired, due time.Time) {
	if u.done {
		return
	}
	u.due = due
	u.element = r.queue.PushBack(u)
}

// lookUpAll looks up edges when they are due, until the context ends.
func (r *Realtime) lookUpAll(ctx context.Context) {
	pause := min(50*time.Millisecond, r.Window/10)
	for {
		batch := r.due(time.Now())
		if len(batch) > 0 {
			r.lookUp(ctx, batch)
		}
		if len(batch) < readAtOnce {
			if sleep.For(ctx, pause) != nil {
				return
			}
		}
	}
}

// due takes edges from the queue that have waited long enough. An edge that was written lately gets
// another window, a few times.
func (r *Realtime) due(now time.Time) []*unpaired {
	const windows = 4
	r.mu.Lock()
	defer r.mu.Unlock()
	var batch []*unpaired
	for range r.queue.Len() {
		u := r.queue.Front().Value.(*unpaired)
		if u.due.After(now) || len(batch) == readAtOnce {
			break
		}
		r.queue.Remove(u.element)
		u.element = nil
		if now.Sub(u.last) < r.Window && now.Sub(u.since) < windows*r.Window {
			r.again(u, u.last.Add(r.Window))
			continue
		}
		batch = append(batch, u)
	}
	return batch
}

// lookUp looks edges up in the tables and settles those that differ.
func (r *Realtime) lookUp(ctx context.Context, batch []*unpaired) {
	r.mu.Lock()
	known := make([]*halves, len(batch))
	for i, u := range batch {
		h := u.halves // a copy of the present halves: more may be read meanwhile
		known[i] = &h
	}
	r.mu.Unlock()

	results := readBoth(ctx, r.Store, keysOfHalves(known))
	var findings []Finding
	var of []*unpaired
	var failed error
	r.mu.Lock()
	for i, u := range batch {
		rows := results[i].Value
		f, differ := compare(u.key.Side, rows)
		switch {
		case results[i].Err != nil:
			failed = results[i].Err
			r.again(u, time.Now().Add(r.Window))
		case u.done: // the other half has come
		case differ:
			findings, of = append(findings, f), append(of, u)
		case u.halves == *known[i] && (u.settled(rows) || time.Since(u.last) >= r.Window):
			r.resolve(u)
		default:
			r.again(u, u.last.Add(r.Window))
		}
	}
	r.mu.Unlock()
	if len(findings) > 0 {
		if err := r.dealWith(ctx, findings, of); err != nil {
			failed = err
		}
	}
	if failed != nil && ctx.Err() == nil {
		r.Logger.WarnContext(ctx, "reconcile: edges cannot be dealt with; trying again", "error", failed)
	}
}

// dealWith reports findings, and repairs them if repairs are wanted; otherwise they are left to
// others.
func (r *Realtime) dealWith(ctx context.Context, findings []Finding, of []*unpaired) error {
	for i, u := range of {
		if !u.reported { // otherwise its last repair failed
			u.reported = true
			r.reportFindings(findings[i])
		}
	}
	_, left, err := r.repair(ctx, findings)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range of {
		if r.Repair && slices.Contains(left, u.key) {
			r.again(u, time.Now().Add(r.Window))
			continue
		}
		r.resolve(u)
	}
	return err
}

// keepAll stores the positions before which everything is settled, until the context ends.
func (r *Realtime) keepAll(ctx context.Context) {
	for sleep.For(ctx, keepEvery) == nil {
		if err := r.keep(ctx); err != nil && ctx.Err() == nil {
			r.Logger.WarnContext(ctx, "reconcile: the checkpoint cannot be saved; trying again", "error", err)
		}
	}
}

func (r *Realtime) keep(ctx context.Context) error {
	ends := r.endEpoch(time.Now())
	for l, at := range ends {
		r.mu.Lock()
		known := l.kept == at
		r.mu.Unlock()
		if known {
			continue
		}
		if err := r.Checkpoints.SaveCheckpoint(ctx, checkpointOf(r.mode, l), []byte(at)); err != nil {
			return err
		}
		r.mu.Lock()
		l.kept = at
		r.mu.Unlock()
	}
	return nil
}

// endEpoch ends the open epoch. It returns the ends of the last epoch that is settled, or nil if
// there is none.
func (r *Realtime) endEpoch(now time.Time) map[*logFollowed]LogPosition {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.epochs) < mostEpochs {
		open := r.epochs[len(r.epochs)-1]
		open.ends = make(map[*logFollowed]LogPosition, len(r.logs))
		for _, l := range r.logs {
			open.ends[l] = l.at
		}
		r.epochs = append(r.epochs, &epoch{})
	}
	var ends map[*logFollowed]LogPosition
	for len(r.epochs) > 1 && r.epochs[0].unpaired == 0 {
		ends = r.epochs[0].ends
		r.epochs = slices.Delete(r.epochs, 0, 1)
	}
	oldest := now
	for _, u := range r.pending {
		if u.since.Before(oldest) {
			oldest = u.since
		}
	}
	r.Metrics.OldestUnpaired(r.mode, now.Sub(oldest))
	return ends
}
