package deployment

import (
	"context"
	"sync"
	"testing"
	"time"

	"kith/storage/memory"
)

func TestGatewaysCountEachOther(t *testing.T) {
	store := memory.New()
	first, second := newPresence(store), newPresence(store)
	if !first.enter(t.Context()) {
		t.Error("the first one is not alone")
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var mu sync.Mutex
	var reported []bool
	var watching sync.WaitGroup
	watching.Go(func() {
		first.watch(ctx, func(alone bool) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, alone)
		})
	})
	heard := func(want bool) bool {
		mu.Lock()
		defer mu.Unlock()
		return len(reported) > 0 && reported[len(reported)-1] == want
	}
	if second.enter(t.Context()) {
		t.Error("the second one is alone")
	}
	if !heard(false) {
		t.Error("the second one serves before the first one has counted it")
	}
	gone, end := context.WithCancel(t.Context())
	end()
	second.watch(gone, func(bool) {})
	for end := time.Now().Add(10 * time.Second); !heard(true); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the first one does not notice that the second one has left")
		}
	}
	leave()
	watching.Wait()
	if n, err := store.Holders(t.Context(), presenceKind, 0); n != 0 || err != nil {
		t.Errorf("%d leases are left, %v", n, err)
	}
}
