// Package opened opens SQL stores for tests.
package opened

import (
	"testing"

	"kith/internal/must"
	"kith/storage/sqlstore"
)

// Store opens a store for the length of a test.
func Store(t testing.TB, cfg sqlstore.Config) *sqlstore.Store {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), cfg)
	must.OK(t, err)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}
