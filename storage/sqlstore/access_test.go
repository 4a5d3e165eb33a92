package sqlstore_test

import (
	"errors"
	"fmt"
	"testing"

	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// A server that no longer accepts the gateway, because its password has changed, counts as out of
// reach, like a server that is down.
func TestServerThatRefusesThePasswordIsUnavailable(t *testing.T) {
	server := testenv.SharedMariaDB(t, 1)[0]
	const database, user = "kith_access", "kith_access"
	server.CreateDatabase(t, database)
	t.Cleanup(func() { server.Exec(t, "DROP DATABASE "+database) })
	server.Exec(t, "CREATE USER "+user+" IDENTIFIED BY 'old'")
	t.Cleanup(func() { server.Exec(t, "DROP USER "+user) })
	server.Exec(t, "GRANT ALL ON "+database+".* TO "+user)

	store := opened.Store(t, sqlstore.Config{
		Location:         fmt.Sprintf("mysql:%s:old@tcp(%s)/%s", user, server.Addr(), database),
		StatementTimeout: generous,
	})
	server.Exec(t, "ALTER USER "+user+" IDENTIFIED BY 'new'")
	server.KillConnections(t, user)

	if r := storage.UserLookups.Read(t.Context(), store, 1)[0]; !errors.Is(r.Err, storage.ErrUnavailable) {
		t.Errorf("%v, want %v", r.Err, storage.ErrUnavailable)
	}
}
