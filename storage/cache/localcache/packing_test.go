package localcache_test

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/localcache"
)

// packer reports the lists that it was asked to pack.
type packer struct {
	asked chan storage.UserID
	err   error
}

func (p *packer) Pack(_ context.Context, side storage.Side, owner storage.UserID) error {
	if side == storage.Inverse {
		p.asked <- owner
	}
	return p.err
}

// A long list that was read whole is packed in the store, and is kept even if packing fails each time.
// Short lists are not packed, nor are lists that are too long to be kept.
func TestLongListsArePackedInTheStore(t *testing.T) {
	const short, long, tooLong = storage.UserID(1), storage.UserID(2), storage.UserID(3)
	store := oracle.New()
	for owner, n := range map[storage.UserID]int{short: 10, long: 1500, tooLong: 6000} {
		var edges []storage.Edge
		for i := range n {
			edges = append(edges, storage.Edge{From: storage.UserID(100 + i), To: owner, Type: storage.Following, UpdateTime: storage.Micros(i + 1)})
		}
		must.All(t, store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer))
	}
	m := gauges{prometheus.NewRegistry()}
	p := &packer{asked: make(chan storage.UserID, 100), err: errors.New("the store is read-only")}
	cache := localcache.New(localcache.Config{Store: store, Packer: p, Bytes: 512 << 10, Metrics: localcache.NewMetrics(m)})
	defer cache.Close()
	all := []storage.UserID{short, tooLong, long}
	must.Soon(t, "the long list is there", func() bool {
		lists := setsOf(t, cache, storage.Inverse, all)
		return lists[0].Found && lists[2].Found
	})
	check.Equal(t, "the user who was packed", <-p.asked, long)
	check.Equal(t, "others who were packed", len(p.asked), 0)
	must.Soon(t, "that it could not be packed is counted", func() bool { return m.value(t, "kith_cache_pack_failures_total") == 1 })
}

// Packed lists are read from the store that keeps them, through all the decorators around it and
// whatever a cache is doing. If the store has nothing packed, nothing is found.
func TestPackedListsComeFromTheStore(t *testing.T) {
	packed := double.Of(oracle.New())
	double.After(packed, func(_ storage.Side, owners []storage.UserID, results []storage.Result[[]storage.UserID]) {
		for i, owner := range owners {
			if owner == 7 {
				results[i] = storage.Result[[]storage.UserID]{Value: []storage.UserID{1, 2}, Found: true}
			}
		}
	}, storage.PackedLookups...)
	for name, store := range map[string]storage.Store{"packed": packed, "not packed": oracle.New()} {
		cache := localcache.New(localcache.Config{Store: store, Bytes: 1 << 20})
		defer cache.Close()
		for _, on := range []bool{true, false} {
			cache.Switch(on)
			for _, reader := range []any{
				cache,
				localcache.NewStoreReader(store, func(context.Context, []storage.Row) {}),
			} {
				results := storage.PackedLookups[storage.Inverse].Read(t.Context(), reader.(storage.Bundler), 6, 7, 7)
				for i, want := range []bool{false, name == "packed", name == "packed"} {
					r := results[i]
					check.That(t, r.Err == nil && r.Found == want && (len(r.Value) == 2 || !want), "%s, on %v, %T: key %d is %+v", name, on, reader, i, r)
				}
			}
		}
	}
}
