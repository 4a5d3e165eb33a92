package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kith/cluster"
	"kith/graph/declared"
	"kith/replication"
	"kith/replication/binlog"
	"kith/storage"
	"kith/storage/sleep"
)

// shardLog is the binlog of a shard: its transactions in the order of their commits. A restored server has another one.
type shardLog struct {
	life    int
	entries []storage.Change
	purged  int           // entries that are gone
	holder  *gateway      // that follows it
	grew    chan struct{} // closed when there is more
}

// place is how much of a log has been applied: what a checkpoint says.
type place struct{ life, entries int }

// log adds a transaction to the logs of the shards that it has changed.
func (w *world) log(c storage.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for shard := range w.logs {
		var own storage.Change
		for _, r := range c.Rows {
			if w.shards.ShardOf(r.Side.Owner(r.Edge.Pair())) == shard && !r.Side.IsInverse() {
				own.Rows = append(own.Rows, r)
			}
		}
		for _, u := range c.Users {
			if w.shards.ShardOf(u.User) == shard {
				own.Users = append(own.Users, u)
			}
		}
		for _, p := range c.Posts {
			if w.shards.ShardOf(p.Author) == shard {
				own.Posts = append(own.Posts, p)
			}
		}
		if l := &w.logs[shard]; !own.IsEmpty() {
			l.entries = append(l.entries, own)
			l.wake()
		}
	}
}

func (l *shardLog) wake() {
	if l.grew != nil {
		close(l.grew)
	}
	l.grew = make(chan struct{})
}

// renew is a log of a restored server, which nobody has read.
func (w *world) renew(shard int) {
	l := &w.logs[shard]
	l.life, l.entries, l.purged = l.life+1, nil, 0
	l.wake()
}

// purge removes what is in the logs, read or not.
func (w *world) purge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.logs {
		w.logs[i].purged = len(w.logs[i].entries)
	}
}

// replicator follows the logs as package binlog follows those of MariaDB: it has the lock of each, or waits for it, goes on after the
// checkpoint, and copies all rows if the log does not.
type replicator struct {
	of  *gateway
	cfg binlog.Config
}

func (g *gateway) follow(cfg binlog.Config) cluster.Logs { return &replicator{g, cfg} }

func (r *replicator) Status() []binlog.Status { return nil }

func (r *replicator) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for shard := range r.cfg.DSNs {
		all.Go(func() {
			pause := 100*time.Millisecond + time.Duration(r.of.chance("pause", r.of.name, shard)*float64(time.Millisecond)) // no two try at one moment
			for sleep.For(ctx, pause) == nil && !r.of.dead.Load() {
				if r.locks(shard) {
					r.of.note("gateway %s replicates shard %d: %v", r.of.name, shard, r.session(ctx, shard))
					r.unlock(shard)
				}
			}
		})
	}
	all.Wait()
	return nil
}

// locks takes the lock of a log, which the server takes away from a process that is killed.
func (r *replicator) locks(shard int) bool {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	l := &r.of.logs[shard]
	if l.holder != nil && l.holder != r.of && !l.holder.dead.Load() {
		return false
	}
	l.holder = r.of
	return true
}

func (r *replicator) unlock(shard int) {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if l := &r.of.logs[shard]; l.holder == r.of {
		l.holder = nil
	}
}

// next are the transactions after a place; false if the log does not have them.
func (w *world) next(shard int, after place) (list []storage.Change, grew <-chan struct{}, has bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &w.logs[shard]
	if after.life != l.life || after.entries < l.purged {
		return nil, nil, false
	}
	return l.entries[after.entries:], l.grew, true
}

// end is that of a log.
func (w *world) end(shard int) place {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &w.logs[shard]
	if l.grew == nil {
		l.wake()
	}
	return place{l.life, len(l.entries)}
}

// session follows a log until it cannot.
func (r *replicator) session(ctx context.Context, shard int) error {
	name := fmt.Sprint("binlog/", shard)
	value, found, err := r.cfg.Checkpoints.LoadCheckpoint(ctx, name)
	if err != nil || r.of.store.awayFor()(shard) {
		return errRefused
	}
	feed := r.cfg.Applier.Feed(name)
	defer feed.Close()
	var at place
	_, _ = fmt.Sscan(string(value), &at.life, &at.entries)
	if _, _, has := r.of.next(shard, at); !found || !has {
		at = r.of.end(shard)
		r.cfg.Changed(ctx, storage.Change{Gap: true})
		if err := r.copy(ctx, shard, feed); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	applied, saved, last := at, at, time.Now()
	for {
		list, grew, has := r.of.next(shard, at)
		if !has || r.of.store.awayFor()(shard) {
			return errRefused
		}
		for _, c := range list {
			r.of.delay(8*time.Millisecond, r.of.name, "log", shard, at.entries)
			r.of.history.awaitLogged(shard)
			at.entries++
			reached := at
			r.cfg.Changed(ctx, c)
			if err := feed.Submit(ctx, replication.Batch{Rows: c.Rows, Committed: storage.MicrosOf(time.Now()), Done: func() {
				mu.Lock()
				defer mu.Unlock()
				applied = reached
			}}); err != nil {
				return err
			}
		}
		if len(list) == 0 {
			select {
			case <-grew:
			case <-time.After(time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		mu.Lock()
		now := applied
		mu.Unlock()
		if now != saved && time.Since(last) >= time.Second {
			saved, last = now, time.Now()
			if err := r.cfg.Checkpoints.SaveCheckpoint(ctx, name, fmt.Append(nil, saved.life, " ", saved.entries)); err != nil {
				return err
			}
		}
	}
}

// copy applies all rows of a shard.
func (r *replicator) copy(ctx context.Context, shard int, feed *replication.Feed) error {
	var rows []storage.Row
	r.of.history.awaitLogged(shard) // it takes locks
	for from := storage.UserID(1); from <= numberOfUsers; from++ {
		for to := storage.UserID(1); to <= numberOfUsers; to++ {
			pair := storage.Pair{From: from, To: to}
			for _, side := range []storage.Side{storage.Forward, storage.Requests, storage.Relations} {
				if pair.Item = 0; side.HasItem() {
					pair = declared.Mutes.Pair(from, to)
				}
				if is := storage.EdgeLookups[side].Read(ctx, r.of.shards, pair)[0]; is.Found && r.of.shards.ShardOf(from) == shard {
					rows = append(rows, storage.Row{Side: side, Edge: is.Value})
				}
			}
		}
	}
	if err := feed.Submit(ctx, replication.Batch{Rows: rows, Committed: storage.MicrosOf(time.Now()), Known: true}); err != nil {
		return err
	}
	return feed.Flush(ctx)
}
