package storage_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

func bundleOf(ids ...storage.UserID) *storage.Bundle {
	var b storage.Bundle
	storage.UserLookups.Ask(&b, ids...)
	storage.EdgeLookups[storage.Inverse].Ask(&b, storage.Pair{From: 1, To: 2})
	return &b
}

// TestReadsAreLogged: a read that is noted under the context of a bundle belongs to that bundle, and counts for
// the whole operation.
func TestReadsAreLogged(t *testing.T) {
	ctx, whole := storage.CountReads(t.Context(), true)
	storage.ReadsOf(ctx).Note(storage.Read{Lookup: "states", Rows: 1})
	reading, of, end := storage.ReadsOf(ctx).Begin(ctx, bundleOf(7, 8))
	of.InMemory(1)
	storage.ReadsOf(reading).InRedis(2)
	failed := errors.New("gone")
	storage.ReadsOf(reading).Note(storage.Read{Lookup: "users", Shard: 3, Keys: 2, Rows: 4, Err: failed})
	check.That(t, whole.Log().Bundles[0].Ended.IsZero(), "it has ended already")
	end()

	log := whole.Log()
	must.That(t, len(log.Bundles) == 1 && len(log.Reads) == 2 && log.LeftOut == 0, "%+v", log)
	if b := log.Bundles[0]; b.Memory != 1 || b.Redis != 2 || b.Ended.Before(b.Began) || len(b.Asked) != 2 ||
		b.Asked[0] != (storage.Read{Lookup: "users", Keys: 2}) || b.Asked[1] != (storage.Read{Lookup: "edges.follower", Keys: 1}) {
		t.Errorf("%+v", b)
	}
	first, second := log.Reads[0], log.Reads[1]
	check.That(t, first.Bundle == -1 && second.Bundle == 0 && second.Shard == 3 && second.Err == failed && !second.Ended.IsZero(), "%+v", log.Reads)
	storage.ReadsOf(ctx).Note(storage.Read{Lookup: "states", Shard: 3})
	storage.ReadsOf(ctx).Note(storage.Read{Lookup: "states", Shard: 1})
	log = whole.Log()
	check.That(t, log.Statements == 4 && log.Rows == 5 && log.Memory == 1 && log.Redis == 2 && slices.Equal(log.Shards, []int{0, 1, 3}), "%+v", log)
}

// TestLogOfReadsIsBounded: reads beyond the bounds are counted, but not kept.
func TestLogOfReadsIsBounded(t *testing.T) {
	const mostBundles, mostStatements = 128, 256
	ctx, whole := storage.CountReads(t.Context(), true)
	for range mostBundles + 1 {
		_, _, end := storage.ReadsOf(ctx).Begin(ctx, bundleOf(1))
		end()
	}
	for range mostStatements + 1 {
		whole.Note(storage.Read{})
	}
	log := whole.Log()
	statements := log.Statements
	if len(log.Bundles) != mostBundles || len(log.Reads) != mostStatements || log.LeftOut != 2 || statements != mostStatements+1 {
		t.Errorf("%d bundles, %d statements, %d left out, %d counted", len(log.Bundles), len(log.Reads), log.LeftOut, statements)
	}
}

// TestNobodyAsks: without a log nothing is kept, and nothing is allocated.
func TestNobodyAsks(t *testing.T) {
	counting, counted := storage.CountReads(t.Context(), false)
	b := bundleOf(1)
	n := testing.AllocsPerRun(100, func() {
		for _, r := range []*storage.ReadStats{nil, counted} {
			ctx, _, end := r.Begin(counting, b)
			r.Note(storage.Read{Rows: 1})
			r.InMemory(1)
			r.InRedis(1)
			if end(); ctx != counting {
				t.Fatal("another context")
			}
		}
	})
	check.That(t, n == 0, "%v allocations", n)
	type other struct{}
	below := context.WithValue(counting, other{}, 1)
	var kept any // on the heap, like those of requests
	check.Most(t, "allocations for a context that counts", testing.AllocsPerRun(100, func() { kept, _ = storage.CountReads(below, false) }), 2)
	within := kept.(context.Context)
	check.That(t, within.Value(other{}) == 1 && storage.ReadsOf(within) != counted, "the context hides what is below it, or not what it counts itself")
	log := counted.Log()
	check.That(t, log.Bundles == nil && log.Reads == nil, "%+v", log)
}
