package sqlstore_test

import (
	"bytes"
	"sync"
	"testing"

	"kith/internal/check"
	"kith/internal/testenv"
	"kith/storage/sqlstore"
)

// Gateways that start at once on a new store, and gateways that start later, have the same secrets.
// Another store has other secrets, and so has another purpose.
func TestSecretsAreTheStores(t *testing.T) {
	for name, location := range map[string]func(t *testing.T) string{
		"SQLite":  func(t *testing.T) string { return sqlite(t, 2) },
		"MariaDB": func(t *testing.T) string { return mysql(testenv.SharedMariaDB(t, 1).FreshDatabases(t, 2)) },
	} {
		t.Run(name, func(t *testing.T) {
			at := location(t)
			gateways := make([]*sqlstore.Store, 4)
			for i := range gateways {
				gateways[i] = open(t, at)
			}
			secrets := make([][]byte, len(gateways))
			var starting sync.WaitGroup
			for i, s := range gateways {
				starting.Go(func() { secrets[i] = secret(t, s, "tokens") })
			}
			starting.Wait()
			for i, got := range append(secrets, secret(t, open(t, at), "tokens")) {
				check.That(t, len(got) == 32 && bytes.Equal(got, secrets[0]), "gateway %d has %x, the first %x", i, got, secrets[0])
			}
			check.That(t, !bytes.Equal(secret(t, gateways[0], "cursors"), secrets[0]), "two purposes have one secret")
			check.That(t, !bytes.Equal(secret(t, open(t, location(t)), "tokens"), secrets[0]), "two stores have one secret")
		})
	}
}

func secret(t *testing.T, s *sqlstore.Store, purpose string) []byte {
	t.Helper()
	value, err := s.Secret(t.Context(), purpose)
	check.That(t, err == nil, "%v", err)
	return value
}
