package binlog_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest"
	"kith/internal/testenv"
	"kith/replication/binlog"
	"kith/storage"
)

// The first time of a follow is a column of its table that the other side has not: rows with it are read like those without, and an import
// that sets it changes no edge.
func TestFirstFollowsStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.replicate(t).await(t, binlog.Tailing)
	a, b := onBoth()
	first := w.change(t, a, b, storage.Following)
	w.settle(t)
	w.change(t, a, b, storage.None)
	w.settle(t)
	again, back := w.change(t, a, b, storage.Following), w.change(t, b, a, storage.Following)
	for _, r := range w.store.Restore(t.Context(), storage.Restored{Annotations: []storage.Annotation{{Pair: back.Pair(), At: 7}}, Kind: storage.AnnotationFirst}) {
		must.That(t, r.Err == nil && r.Value, "%v", r)
	}
	w.settle(t)
	for _, row := range []storage.Edge{again, back} {
		check.Equal(t, "the other side", w.edge(t, storage.Inverse, row.From, row.To), row)
	}
	for i, m := range storage.MarkLookups.Read(t.Context(), w.store, again.Pair(), back.Pair()) {
		want := []storage.Micros{first.UpdateTime, 7}[i]
		check.That(t, m.Err == nil && m.Value.FirstAt == want, "%+v, want %d", m, want)
	}
}

// request changes a request for friendship by one act.
func (w *world) request(t testing.TB, act storage.EdgeType, from, to storage.UserID) storage.Changed {
	t.Helper()
	w.users(t, from, to)
	changed, err := storagetest.Request(context.Background(), w.store, storage.Pair{From: from, To: to},
		storage.EdgeChange{Type: act, At: w.tick()}, storage.ChangeOptions{TTL: storage.DefaultRequestTTL})
	must.That(t, err == nil && changed.Changed, "request %d→%d, act %d: %+v, %v", from, to, act, changed, err)
	return changed
}

// change changes an edge as a user may do.
func (w *world) change(t testing.TB, from, to storage.UserID, kind storage.EdgeType) storage.Edge {
	t.Helper()
	w.users(t, from, to)
	change := storage.EdgeChange{To: to, Type: kind, At: w.tick()}
	r := w.store.ChangeEdges(context.Background(), storage.Forward, from, []storage.EdgeChange{change}, storage.ChangeOptions{})[0]
	must.That(t, r.Err == nil && r.Value.Changed, "%d→%d to %d: %+v", from, to, kind, r)
	return r.Value.Row
}

// users makes users, unless they exist.
func (w *world) users(t testing.TB, ids ...storage.UserID) {
	t.Helper()
	users := make([]storage.User, len(ids))
	for i, id := range ids {
		users[i] = storage.User{ID: id, Handle: "u" + id.String(), Name: "U", CreatedAt: 1, UpdatedAt: 1}
	}
	must.All(t, w.store.CreateUsers(context.Background(), users))
}

// shardOf is the shard of a user.
func (w *world) shardOf(id storage.UserID) int { return storage.NewShardMap(len(w.dsns)).Of(id) }

// onBoth returns a user of each server. Each server has half of the shards.
func onBoth() (a, b storage.UserID) {
	shards := storage.NewShardMap(2)
	for a, b = 1, 1; shards.Of(a) != 0; a++ {
	}
	for shards.Of(b) != 1 {
		b++
	}
	return a, b
}

// A block ends the reverse follow, whose truth is on the other server, and the end comes back to the
// server of the block. An accepted request makes two follows. All of these rows are published.
func TestWhatFollowsComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	a, b := onBoth()
	for _, one := range [][2]storage.UserID{{a, b}, {b, a}} {
		blocker, blocked := one[0], one[1]
		follow := w.change(t, blocked, blocker, storage.Following)
		w.settle(t)
		block := w.change(t, blocker, blocked, storage.Blocking)
		must.OKSoon(t, func() error {
			if e := w.edge(t, storage.Inverse, blocked, blocker); e.Type != storage.None || e.UpdateTime <= follow.UpdateTime {
				return fmt.Errorf("%d→%d is %+v on the side of who blocks", blocked, blocker, e)
			}
			return nil
		})
		w.settle(t)
		ended := w.edge(t, storage.Forward, blocked, blocker)
		must.OKSoon(t, func() error {
			if !r.published(block) || !r.published(ended) {
				return errNotYet
			}
			return nil
		})
		w.write(t, storage.Edge{From: blocker, To: blocked, Type: storage.None, UpdateTime: w.tick()})
		w.settle(t)
	}

	w.request(t, storage.Pending, a, b)
	w.settle(t)
	accepted := w.request(t, storage.Accepted, a, b).Row
	must.OKSoon(t, func() error {
		for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
			if there, back := w.edge(t, side, a, b), w.edge(t, side, b, a); there.Type != storage.Following || back.Type != storage.Following {
				return fmt.Errorf("in %s they are %+v and %+v", side, there, back)
			}
		}
		if !r.publishedRow(storage.Row{Side: storage.Requests, Edge: accepted}) {
			return errNotYet
		}
		return nil
	})
	w.settle(t)
	for _, c := range storage.CountLookups.Read(t.Context(), w.store, a, b) {
		check.That(t, c.Err == nil && c.Value.Friend == 1, "%+v", c)
	}
}

// publishedRow reports whether a row was published.
func (w *witness) publishedRow(r storage.Row) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows[r] > 0
}

// A replicator that starts late finds a block and a reverse follow together in the tables. If all rows
// are copied again, nothing changes.
func TestCopyEndsWhatIsBlocked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := onBoth()
	w.change(t, b, a, storage.Following)
	w.change(t, a, b, storage.Blocking)
	w.request(t, storage.Pending, a, b+2000)
	w.request(t, storage.Pending, b+2000, a) // the two requests cross
	r := w.replicate(t)
	w.settle(t)
	e := w.edge(t, storage.Forward, b, a)
	check.That(t, e.Type == storage.None, "%d→%d is %+v", b, a, e)
	e = w.edge(t, storage.Forward, b+2000, a)
	check.That(t, e.Type == storage.Following, "%d→%d is %+v", b+2000, a, e)
	r.await(t, binlog.Tailing)
	r.stop(t)
	before, err := w.rows(storage.Forward)
	must.OK(t, err)
	r = w.replicate(t, func(c *binlog.Config) { c.Resync = true })
	r.await(t, binlog.Tailing)
	w.settle(t)
	after, err := w.rows(storage.Forward)
	check.That(t, err == nil && fmt.Sprint(before) == fmt.Sprint(after), "%v: following was %v, is %v", err, before, after)
}

// stuck is a store of a replicator that is killed before it ends a follow on the inverse side, which
// follows from a block.
type stuck struct{ storage.EdgeWriter }

const stuckMessage = "a follow ends here"

func (s stuck) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	for _, e := range edges {
		if side == storage.Inverse && e.Type == storage.None {
			fmt.Println(stuckMessage)
			select {} // until the process is killed
		}
	}
	return s.EdgeWriter.Apply(ctx, side, edges, rule)
}

// A replicator that is killed between applying a block and propagating the end of a follow loses
// nothing, even if the block is removed before another replicator starts.
func TestKilledBetweenABlockAndWhatFollows(t *testing.T) {
	t.Parallel()
	for name, unblock := range map[string]bool{"the block stays": false, "it is taken back": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a, b := onBoth()
			r := w.replicate(t)
			r.await(t, binlog.Tailing)
			w.change(t, b, a, storage.Following)
			w.settle(t)
			r.stop(t)
			p := w.launch(t, childStopsVariable+"=1")
			w.change(t, a, b, storage.Blocking)
			must.OKSoon(t, func() error {
				if !strings.Contains(p.log.String(), stuckMessage) {
					return errNotYet
				}
				return nil
			})
			p.Kill()
			truth, replica := w.edge(t, storage.Forward, b, a), w.edge(t, storage.Inverse, b, a)
			must.That(t, truth.Type == storage.None && replica.Type == storage.Following, "it was not killed in between: %+v, %+v", truth, replica)
			if unblock {
				w.write(t, storage.Edge{From: a, To: b, Type: storage.None, UpdateTime: w.tick()})
			}
			w.launch(t)
			w.settle(t)
			e := w.edge(t, storage.Inverse, b, a)
			check.That(t, e.Type == storage.None, "%d→%d is %+v", b, a, e)
		})
	}
}

// Users do to each other whatever they may do, while replicators are killed.
func TestRelationsSurviveKills(t *testing.T) {
	t.Parallel()
	relationsSurviveKills(t, 4*time.Second)
}

func TestRelationsSurviveKillsForLong(t *testing.T) {
	testenv.Long(t)
	relationsSurviveKills(t, 60*time.Second)
}

func relationsSurviveKills(t *testing.T, length time.Duration) {
	const people = 40
	const leastWrites = 1000 // so that all tables get rows even on a busy machine, where they take longer
	w := newWorld(t)
	var ids []storage.UserID
	for id := storage.UserID(1); id <= people; id++ {
		ids = append(ids, id)
	}
	w.users(t, ids...)
	var posts []storage.PostID
	for _, id := range ids[:5] {
		post := storage.PostID{Author: id, Number: 1000 + int64(id)}
		_, _, err := w.store.Publish(t.Context(), storage.PostRow{PostID: post, Key: "1", At: 1})
		must.OK(t, err)
		posts = append(posts, post)
	}
	end := time.Now().Add(length)
	var writers sync.WaitGroup
	var writes atomic.Int64
	goesOn := func() bool { return time.Now().Before(end) || writes.Load() < leastWrites }
	for range 4 {
		writers.Go(func() {
			for ; goesOn(); writes.Add(1) {
				time.Sleep(5 * time.Millisecond)
				from, to := ids[rand.IntN(people)], ids[rand.IntN(people)]
				if from == to {
					continue
				}
				if rand.IntN(4) == 0 { // a block may forbid this
					change := posts[rand.IntN(len(posts))].Favorite(storage.EdgeType(min(rand.IntN(3), 1)), w.tick())
					w.store.ChangeEdges(context.Background(), storage.Favorites, from, []storage.EdgeChange{change}, storage.ChangeOptions{Peace: true})
					continue
				}
				if rand.IntN(3) == 0 { // mostly refused
					_, _ = storagetest.Request(context.Background(), w.store, storage.Pair{From: from, To: to},
						storage.EdgeChange{Type: storage.Pending + storage.EdgeType(rand.IntN(5)), At: w.tick()}, storage.ChangeOptions{TTL: storage.DefaultRequestTTL})
					continue
				}
				if rand.IntN(4) == 0 {
					change := storage.EdgeChange{To: to, Item: 101 + rand.Int64N(2), Type: storage.EdgeType(min(rand.IntN(3), 1)), At: w.tick()}
					w.store.ChangeEdges(context.Background(), storage.Relations, from, []storage.EdgeChange{change}, storage.ChangeOptions{})
					continue
				}
				kind := storage.EdgeType(rand.IntN(4))
				ends := storage.EdgeType(rand.IntN(4))
				w.store.ChangeEdges(context.Background(), storage.Forward, from, []storage.EdgeChange{{To: to, Type: kind, Ends: ends, At: w.tick()}}, storage.ChangeOptions{})
			}
		})
	}
	kills := 0
	for ; goesOn(); kills++ {
		p := w.launch(t)
		time.Sleep(rand.N(1200 * time.Millisecond))
		p.Kill()
	}
	writers.Wait()
	w.launch(t)
	w.settle(t)
	for _, side := range storage.AllSides {
		rows, err := w.rows(side)
		check.That(t, err == nil && len(rows) >= people/2, "%d rows of %s: %v", len(rows), side, err) // of requests there are some 50
	}
	t.Logf("%d kills, %d writes", kills, writes.Load())
}

// Intended deletions, those of erased users and of tombstones, do not stop replication. The states of
// users are published.
func TestDeletionsThatAreMeant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	a, b := onBoth()
	w.change(t, a, b, storage.Following)
	w.request(t, storage.Pending, a, b)
	w.settle(t)
	_, err := w.store.SetState(t.Context(), a, storage.Deactivated, w.tick())
	must.OK(t, err)
	must.OKSoon(t, func() error {
		if !r.saw(a, storage.Standing) {
			return errNotYet
		}
		return nil
	})
	_, err = w.store.SetState(t.Context(), a, storage.Deleting, w.tick())
	must.OK(t, err)
	w.change(t, a, b, storage.None)
	w.writeTo(t, storage.Requests, storage.Edge{From: a, To: b, Type: storage.None, UpdateTime: w.tick()})
	w.settle(t)
	must.OK(t, w.store.Erase(t.Context(), a, w.tick()))
	for side, user := range map[storage.Side]storage.UserID{storage.Forward: a, storage.Requests: a, storage.Inverse: b, storage.Inbox: b} {
		w.exec(t, w.shardOf(user), fmt.Sprintf("DELETE FROM %s WHERE from_user_id = %d AND to_user_id = %d", side, a, b))
	}
	for _, side := range storage.Sides {
		rows, err := w.rows(side)
		must.That(t, err == nil && len(rows) == 0, "%s holds %v: %v", side, rows, err)
	}
	w.change(t, b, b+1, storage.Following)
	w.change(t, a+1, b, storage.Following)
	w.settle(t)
	must.OKSoon(t, func() error {
		if !r.saw(a, storage.Whole) || !r.saw(a, storage.Beside) {
			return errNotYet
		}
		return nil
	})
	r.await(t, binlog.Tailing)
}

// writeTo writes a row of a forward table.
func (w *world) writeTo(t testing.TB, side storage.Side, e storage.Edge) {
	t.Helper()
	must.OK(t, w.store.Apply(context.Background(), side, []storage.Edge{e}, storage.IfNewer)[0].Err)
}

// A program that knows a table which the one that saved the checkpoint did not know copies that table, and nothing else.
func TestCheckpointWithFewerTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	a, b := onBoth()
	w.change(t, a, b, storage.Following)
	w.settle(t)
	r.stop(t)
	for _, p := range []storage.Pair{{From: a, To: b}, {From: b, To: a + 1}} { // as if they had been skipped
		w.exec(t, w.shardOf(p.From), "SET SESSION sql_log_bin = 0",
			fmt.Sprintf("INSERT INTO friend_request (from_user_id, to_user_id, type, update_time) VALUES (%d, %d, 1, 5)", p.From, p.To))
	}
	w.resave(t, func(saved map[string]any) {
		check.That(t, saved["tables"] == float64(len(storage.Truths)), "saved %v", saved)
		saved["tables"] = 1
	})
	r = w.replicate(t)
	r.await(t, binlog.Tailing)
	w.settle(t)
	text := w.log.String()
	check.That(t, strings.Count(text, "table=friend_request") == 2 && strings.Count(text, "table=following") == 2, "it logs %s", text)
}

// A newer program was copying a table that this one does not know. This one goes on with what it knows, and does not say that it has
// copied the other.
func TestCheckpointOfAnUnknownTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	r.stop(t)
	known := len(storage.Truths)
	w.resave(t, func(saved map[string]any) {
		saved["tables"], saved["copy"] = known+1, map[string]any{"table": known, "database": 0, "from": 7, "to": 8}
	})
	r = w.replicate(t)
	r.await(t, binlog.Tailing)
	a, b := onBoth()
	w.change(t, a, b, storage.Following)
	w.settle(t)
	r.stop(t)
	w.resave(t, func(saved map[string]any) {
		check.That(t, saved["tables"] == float64(known) && saved["copy"] == nil, "saved %v", saved)
	})
}

// resave changes the checkpoints of both servers.
func (w *world) resave(t testing.TB, change func(saved map[string]any)) {
	t.Helper()
	checkpoints := map[string]string{}
	err := w.each(`SELECT name, value FROM kith_checkpoints WHERE name LIKE 'binlog/%'`, func(r *sql.Rows) error {
		var name, value string
		err := r.Scan(&name, &value)
		checkpoints[name] = value
		return err
	})
	must.That(t, err == nil && len(checkpoints) == 2, "%v: %v", err, checkpoints)
	for name, value := range checkpoints {
		var saved map[string]any
		must.OK(t, json.Unmarshal([]byte(value), &saved))
		change(saved)
		changed, err := json.Marshal(saved)
		must.OK(t, err)
		must.OK(t, w.store.SaveCheckpoint(t.Context(), name, changed))
	}
}
