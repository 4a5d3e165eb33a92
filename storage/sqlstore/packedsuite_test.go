package sqlstore

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"kith/internal/check"
	"kith/internal/storagetest"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore/internal/packed"
)

// ofLists are the topics in which lists are read that may be packed. The other topics run the same statements as in
// TestConformanceSQLite.
var ofLists = []string{"packedNeighbours", "cancellation", "lists", "bundles", "histories", "neighbours", "concurrency"}

// ofChunks are those that read lists in chunks: neighbours come from lists that are packed as one value.
var ofChunks = ofLists[:5]

// A store that packs every list before it is read is as good as any other: those of every second owner as one value, the others in
// chunks.
func TestConformancePacked(t *testing.T) {
	t.Parallel()
	conformsPacked(t, func(owner storage.UserID) bool { return owner%2 == 0 }, ofLists)
}

// TestLongConformancePackedAlike is the same with lists that are all packed in one way.
func TestLongConformancePackedAlike(t *testing.T) {
	testenv.Long(t)
	for asValue, topics := range map[bool][]string{true: ofLists, false: ofChunks} {
		t.Run(map[bool]string{true: "as values", false: "in chunks"}[asValue], func(t *testing.T) {
			t.Parallel()
			conformsPacked(t, func(storage.UserID) bool { return asValue }, topics)
		})
	}
}

func conformsPacked(t *testing.T, asValue func(owner storage.UserID) bool, topics []string) {
	storagetest.Run(t, func(t *testing.T) storage.Store {
		s := openSmall(t, twoFiles(t), nil)
		s.packed.Sizes.ShortTo, s.packed.Sizes.ShortQuiet, s.packed.Sizes.ShortEnded = 1000, -1<<60, 1<<60
		p := packer{s, asValue, t, new(atomic.Int64)}
		t.Cleanup(func() { check.That(t, p.asked.Load() != 0, "no list is packed here") })
		return p
	}, topics...)
}

// writesLists are the topics that write what is packed.
var writesLists = []string{
	"counts", "edges", "pages", "apply", "applyCounts", "changes", "inverse", "blocking", "friendships", "friendCounts", "changesAtOnce",
	"lifecycle", "profile", "count", "states", "erase", "comparer", "repairer", "requests", "settling",
}

// A store that packs in the background, while others write, is as good, too. TestPackingWhileOthersWrite
// is the short form.
func TestLongConformancePackedInTheBackground(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	var begun atomic.Int64
	storagetest.Run(t, func(t *testing.T) storage.Store {
		return openPacking(t, twoFiles(t), func(_ context.Context, st Statement) {
			if strings.Contains(st.Text, "INSERT INTO packed_list") {
				begun.Add(1)
			}
		})
	}, slices.Concat(ofLists, writesLists)...)
	check.Least(t, "lists were packed", begun.Load(), 100)
}

func twoFiles(t *testing.T) string {
	dir := t.TempDir()
	return "sqlite:" + filepath.Join(dir, "0.db") + ";" + filepath.Join(dir, "1.db")
}

// A packer packs lists that are about to be read.
type packer struct {
	*Store
	asValue func(owner storage.UserID) bool
	t       *testing.T
	asked   *atomic.Int64 // how often a list was to be packed
}

func (p packer) lists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	for _, q := range queries[:min(len(queries), 100)] {
		p.pack(ctx, side, q.Owner)
	}
	return storage.SnapshotLookups[side].Read(ctx, p.Store, queries...)
}

func (p packer) neighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	for _, owner := range owners[:min(len(owners), 100)] {
		if side.Truth() == storage.Forward && p.asValue(owner) {
			p.pack(ctx, side, owner)
		}
	}
	return storage.NeighbourLookups[side].Read(ctx, p.Store, owners...)
}

func (p packer) packedNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	for _, owner := range owners[:min(len(owners), 100)] {
		if side.Truth() == storage.Forward && !p.asValue(owner) {
			p.pack(ctx, side, owner)
		}
	}
	return storage.PackedLookups[side].Read(ctx, p.Store, owners...)
}

func (p packer) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.SnapshotLookups.Instead(ctx, b, p.lists)
	storage.NeighbourLookups.Instead(ctx, b, p.neighbours)
	storage.PackedLookups.Instead(ctx, b, p.packedNeighbours)
	p.Store.Bundle(ctx, b)
}

func (p packer) pack(ctx context.Context, side storage.Side, owner storage.UserID) {
	p.asked.Add(1)
	if p.asValue(owner) {
		p.packShorts(ctx, []packed.Name{{Side: side, Owner: owner}})
		return
	}
	err := p.Pack(ctx, side, owner)
	check.That(p.t, err == nil || ctx.Err() != nil, "%v", err)
}
