package ids

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// TestOnAStore takes leases of real stores, from several gateways at once.
func TestOnAStore(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		onAStore(t, "sqlite:"+filepath.Join(t.TempDir(), "kith.db"))
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		onAStore(t, "mysql:"+testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0])
	})
}

func onAStore(t *testing.T, location string) {
	t.Helper()
	const gateways = 6
	var mu sync.Mutex
	var all []*Generator
	seen := map[int]bool{}
	var running sync.WaitGroup
	for range gateways {
		store := opened.Store(t, sqlstore.Config{Location: location})
		running.Go(func() {
			for range 4 {
				g, err := New(t.Context(), store, Config{Lease: 3 * time.Second})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				check.That(t, !seen[g.MachineID()], "machine %d twice", g.MachineID())
				seen[g.MachineID()] = true
				all = append(all, g)
				mu.Unlock()
				_, err = g.Next(t.Context())
				check.That(t, err == nil, "%v", err)
			}
		})
	}
	running.Wait()
	for _, g := range all {
		next(t, g)
		err := g.Close(context.Background())
		check.That(t, err == nil, "%v", err)
	}
}

func madeAt(g *Generator, id storage.UserID) storage.Micros {
	return storage.MicrosOf(g.flake.maker.ToTime(int64(id)))
}
