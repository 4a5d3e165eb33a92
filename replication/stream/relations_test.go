package stream_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/replication"
	"kith/replication/stream"
	"kith/storage"
	"kith/storage/sqlstore"
)

// stuck is a store of a consumer that is killed before it ends a follow on the inverse side, which
// follows from a block.
type stuck struct{ storage.EdgeWriter }

func (s stuck) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	for _, e := range edges {
		if side == storage.Inverse && e.Type == storage.None {
			select {} // until the process is killed
		}
	}
	return s.EdgeWriter.Apply(ctx, side, edges, rule)
}

// If a consumer is killed between applying a block and propagating the end of a follow, another consumer
// gets the block, and finds out what has followed from it, even if the block was removed and the removal
// was applied in between.
func TestConsumerKilledBetweenABlockAndWhatFollows(t *testing.T) {
	t.Parallel()
	for name, unblock := range map[string]bool{"the block stays": false, "it is taken back": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			location := "sqlite:" + filepath.Join(folder, "a.db") + ";" + filepath.Join(folder, "b.db")
			store := opened.Store(t, sqlstore.Config{Location: location, StatementTimeout: 30 * time.Second})
			server := testenv.Redis(t, testenv.AppendOnly...)
			client := connect(t, server.Addr())
			a, b := ofEach(t, store)
			change := func(from, to storage.UserID, kind, ends storage.EdgeType) []storage.Row {
				t.Helper()
				r := store.ChangeEdges(t.Context(), storage.Forward, from, []storage.EdgeChange{{To: to, Type: kind, Ends: ends, At: storage.MicrosOf(time.Now())}}, storage.ChangeOptions{})[0]
				must.That(t, r.Err == nil && r.Value.Changed, "%d→%d to %d: %+v", from, to, kind, r)
				return storage.Each(r.Value.Written(), func(w storage.Written) storage.Row { return w.Row })
			}
			send := func(rows []storage.Row) {
				t.Helper()
				must.OK(t, stream.NewProducer(stream.ProducerConfig{Redis: client}).Add(t.Context(), rows))
			}
			row := func(side storage.Side, from, to storage.UserID) storage.Edge {
				return storage.EdgeLookups[side].Read(t.Context(), store, storage.Pair{From: from, To: to})[0].Value
			}

			p := &process{t: t, env: []string{envRedis + "=" + server.Addr(), envStore + "=" + location, envStuck + "=1"}, name: "killed"}
			p.start()
			t.Cleanup(p.kill)
			send(change(b, a, storage.Following, 0))
			must.Soon(t, "a has a follower", func() bool { return row(storage.Inverse, b, a).Type == storage.Following })
			send(change(a, b, storage.Blocking, 0))
			must.Soon(t, "the block has ended the follow", func() bool { return row(storage.Forward, b, a).Type == storage.None })
			p.kill()
			must.That(t, row(storage.Inverse, b, a).Type == storage.Following, "it was not killed in between")
			if unblock {
				for _, r := range change(a, b, storage.None, storage.Blocking) { // by a consumer that was faster than the one that takes the entry over
					store.Apply(t.Context(), r.Side.Replica(), []storage.Edge{r.Edge}, storage.IfNewer)
				}
			}
			c, _ := consume(t, stream.ConsumerConfig{Redis: client, Name: "another", ClaimAfter: 100 * time.Millisecond, Propagator: replication.Propagator{Store: store}})
			must.Soon(t, "all is acknowledged", idle(c, time.Now()))
			truth, replica := row(storage.Forward, b, a), row(storage.Inverse, b, a)
			check.That(t, truth == replica && replica.Type == storage.None, "following holds %+v, follower %+v", truth, replica)
			n := storage.CountLookups.Read(t.Context(), store, a)[0].Value
			check.That(t, n.Follower == 0, "counts %+v", n)
		})
	}
}

// ofEach makes two users, one on each shard.
func ofEach(t *testing.T, store storage.Store) (a, b storage.UserID) {
	t.Helper()
	shards := storage.NewShardMap(2)
	for a, b = 1, 1; shards.Of(a) != 0; a++ {
	}
	for shards.Of(b) != 1 {
		b++
	}
	for _, id := range []storage.UserID{a, b} {
		must.OK(t, store.CreateUsers(t.Context(), []storage.User{{ID: id, Handle: fmt.Sprint("u", id), Name: "U"}})[0].Err)
	}
	return a, b
}

// Rows of both pairs of tables are replicated, in one entry and in entries of their own.
func TestEntriesOfBothPairsOfTables(t *testing.T) {
	client, store := connect(t, testenv.Redis(t).Addr()), oracle.New()
	request := storage.Row{Side: storage.Requests, Edge: storage.Edge{From: 3, To: 7, Type: storage.Pending, UpdateTime: 11}}
	add(t, client, edge(1, 7, 10), edge(2, 7, 10))
	must.OK(t, stream.NewProducer(stream.ProducerConfig{Redis: client}).Add(t.Context(), append(rowsOf(edge(3, 7, 10)), request)))

	c, _ := consume(t, stream.ConsumerConfig{Redis: client, Propagator: replication.Propagator{Store: store}})
	must.Soon(t, "idle", idle(c, time.Now()))
	for from := storage.UserID(1); from <= 3; from++ {
		got := storage.EdgeLookups[storage.Inverse].Read(t.Context(), store, storage.Pair{From: from, To: 7})[0].Value
		check.That(t, got == edge(from, 7, 10), "follower holds %+v", got)
	}
	got := storage.EdgeLookups[storage.Inbox].Read(t.Context(), store, storage.Pair{From: 3, To: 7})[0].Value
	check.That(t, got == request.Edge, "the inbox holds %+v", got)
}
