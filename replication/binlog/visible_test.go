package binlog_test

import (
	"testing"
	"time"

	"kith/internal/testenv"
	"kith/replication/binlog"
	"kith/storage"
)

// TestNothingIsAppliedBeforeItCanBeRead has a server hold back commits that it has logged. Whoever hears of a row then looks at both of its
// sides, and would not hear of it again.
func TestNothingIsAppliedBeforeItCanBeRead(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	server, other := testenv.MariaDB(t), testenv.MariaDB(t)
	w := worldOn(t, server.CreateDatabase(t, "kith_a"), other.CreateDatabase(t, "kith_b"))
	r := w.replicate(t)
	r.await(t, binlog.Tailing)
	var on [2]storage.UserID // a user on each server
	for id := storage.UserID(1); on[0] == 0 || on[1] == 0; id++ {
		on[r.shardOf(id)] = id
	}
	const held = 300 * time.Millisecond
	hold := server.HoldsCommits(t, held)
	for took := time.Duration(0); took < held; { // another commit may have been held in its place
		hold()
		edge, done, began := w.follow(on[0], on[1]), make(chan struct{}), time.Now()
		go func() {
			defer close(done)
			w.write(t, edge)
			took = time.Since(began)
		}()
		for writing := true; writing; {
			select {
			case <-done:
				writing = false
			default:
				published := r.published(edge)
				derived := storage.EdgeLookups[storage.Inverse].Read(t.Context(), w.store, edge.Pair())[0]
				primary := storage.EdgeLookups[storage.Forward].Read(t.Context(), w.store, edge.Pair())[0]
				if primary.Value != edge && (derived.Value == edge || published) {
					t.Fatalf("the other side is %v (published: %t) while this one is %v", derived.Value, published, primary.Value)
				}
			}
		}
	}
	w.settle(t)
}
