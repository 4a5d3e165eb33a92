package binlog_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/replication/binlog"
	"kith/storage"
	"kith/storage/sqlstore"
)

// moving is a store of two servers, a shard each, whose buckets move.
type moving struct {
	*world
	servers [2]*testenv.MariaDBServer
}

func newMoving(t *testing.T) *moving {
	t.Helper()
	testenv.NeedsBinlog(t)
	m := &moving{servers: [2]*testenv.MariaDBServer{testenv.MariaDB(t), testenv.MariaDB(t)}}
	m.world = worldOn(t, m.servers[0].CreateDatabase(t, "kith_a"), m.servers[1].CreateDatabase(t, "kith_b"))
	return m
}

// move moves buckets to a shard, and removes the rows from the other.
func (m *moving) move(t *testing.T, buckets storage.BucketRange, to int) {
	t.Helper()
	_, err := m.store.Move(t.Context(), sqlstore.Move{Buckets: buckets, From: 1 - to, To: to}, sqlstore.MoveConfig{Token: "t"})
	check.That(t, err == nil, "to shard %d: %v", to, err)
}

// lose removes what a server has logged.
func (m *moving) lose(t *testing.T, shard int) {
	t.Helper()
	m.servers[shard].Exec(t, "FLUSH BINARY LOGS")
	purge(t, m.servers[shard])
}

// replicateOnly replicates one server while f runs, and then what the server has logged.
func (m *moving) replicateOnly(t *testing.T, shard int, f func()) (r *running) {
	t.Helper()
	r = m.replicate(t, func(c *binlog.Config) { c.DSNs = m.dsns[shard : shard+1] })
	r.await(t, binlog.Tailing)
	f()
	var user storage.UserID = 5000
	for m.store.ShardOf(user) != shard {
		user++
	}
	last := m.follow(user, user+1)
	m.write(t, last)
	must.Soon(t, "the log has been applied", func() bool { return r.published(last) })
	r.stop(t)
	return r
}

// writeAll has a user write a row of each table that is replicated.
func (m *moving) writeAll(t *testing.T, from, to storage.UserID) {
	t.Helper()
	m.change(t, from, to, storage.Following)
	m.request(t, storage.Pending, from, to+2000)
	post := storage.PostID{Author: to, Number: 1000}
	_, _, err := m.store.Publish(t.Context(), storage.PostRow{PostID: post, Key: "1", At: 1})
	must.OK(t, err)
	for side, change := range map[storage.Side]storage.EdgeChange{
		storage.Favorites: post.Favorite(1, m.tick()),
		storage.Relations: {To: to, Item: 101, Type: 1, At: m.tick()},
	} {
		r := m.store.ChangeEdges(t.Context(), side, from, []storage.EdgeChange{change}, storage.ChangeOptions{Peace: true})[0]
		must.That(t, r.Err == nil && r.Value.Changed, "%s: %+v", side, r)
	}
}

// Rows leave a server before they are replicated, and its log is lost: neither its log nor its tables have them. Whoever has them now
// tells, unless its log is lost, too, or they leave again: then its tables tell, or the next one.
func TestRowsHaveLeftALostLog(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	user, other := onBoth()
	for _, test := range []struct {
		name  string
		fault func(t *testing.T, own storage.BucketRange)
	}{
		{"the other log is followed", func(t *testing.T, own storage.BucketRange) {
			m.replicateOnly(t, 1, func() { m.move(t, own, 1) })
			m.lose(t, 0)
		}},
		{"both logs are lost", func(t *testing.T, own storage.BucketRange) {
			m.move(t, own, 1)
			m.lose(t, 0)
			m.lose(t, 1)
		}},
		{"they come back behind the copy, and the other log is lost", func(t *testing.T, own storage.BucketRange) {
			m.move(t, own, 1)
			m.lose(t, 0)
			m.replicateOnly(t, 0, func() { m.move(t, own, 0) })
			m.lose(t, 1)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := m.replicate(t)
			r.await(t, binlog.Tailing)
			r.stop(t)
			for user++; m.store.ShardOf(user) != 0; {
				user++
			}
			other += 3000
			m.writeAll(t, user, other)
			test.fault(t, storage.BucketRange{First: user.Bucket(), Last: user.Bucket()})
			r = m.replicate(t)
			r.await(t, binlog.Tailing)
			m.settle(t)
			r.stop(t)
		})
	}
	r := m.replicateOnly(t, 1, func() { m.move(t, storage.BucketRange{First: user.Bucket(), Last: user.Bucket()}, 1) })
	old := storage.Row{Side: storage.Forward, Edge: m.edge(t, storage.Forward, user, other)}
	check.That(t, !r.publishedRow(old) && !r.saw(user, storage.Leaving), "what has been replicated is news when it moves")
}

// Users write while their rows move there and back. Replicators are killed during a move and during the copy that follows, because a log
// is lost that nobody has read to the end.
func TestMovesAndLostLogsSurviveKills(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	writing, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stop()
	for range 2 {
		writers.Go(func() {
			for ; writing.Err() == nil; time.Sleep(5 * time.Millisecond) {
				var edges []storage.Edge
				for range 1 + rand.IntN(20) {
					e := m.follow(storage.UserID(1+rand.IntN(300)), storage.UserID(1+rand.IntN(300)))
					e.Type = storage.EdgeType(rand.IntN(3))
					edges = append(edges, e)
				}
				err := m.tryWrite(edges...)
				check.That(t, err == nil, "%v", err)
			}
		})
	}
	runForAWhile := func() {
		p := m.launch(t)
		time.Sleep(rand.N(800 * time.Millisecond))
		p.Kill()
	}
	for _, to := range []int{1, 0} {
		var mover sync.WaitGroup
		mover.Go(func() { m.move(t, storage.BucketRange{First: 0, Last: storage.Buckets/2 - 1}, to) })
		runForAWhile()
		mover.Wait()
		m.lose(t, 1-to)
		runForAWhile()
		r := m.replicate(t)
		r.await(t, binlog.Tailing) // it has copied the rest
		r.stop(t)
	}
	stop()
	writers.Wait()
	m.launch(t)
	m.settle(t)
}
