package localcache

import (
	"testing"

	"kith/storage"
	"kith/storage/memory"
)

// A long list is not read before it has been asked for often.
func TestALongListIsNotReadTooSoon(t *testing.T) {
	store := memory.New()
	edges := make([]storage.Edge, shortList+1)
	for i := range edges {
		edges[i] = storage.Edge{From: storage.UserID(i + 2), To: 1, Type: storage.Following, UpdateTime: storage.Micros(i + 1)}
	}
	store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
	c := New(Config{Source: store, Rows: store, Bytes: 64 << 20})
	defer c.Close()
	ask := func() {
		c.Pages(t.Context(), storage.Inverse, []storage.PageQuery{{Owner: 1, Limit: 3}})
	}
	ask() // now the list is known to be long
	k := key{kind: inverseKind, id: 1}
	for n := range often - 1 {
		ask()
		c.building.Lock() // waits for a read that should not be running
		if _, isLong := get[*long](c, k); !isLong {
			t.Fatalf("asked for %d times after the first, the list is read", n+1)
		}
		c.building.Unlock()
	}
	ask()
	c.building.Lock()
	defer c.building.Unlock()
	if _, isRead := get[*list](c, k); !isRead {
		t.Error("asked for often, the list is not read")
	}
}
