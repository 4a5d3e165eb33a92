package sqlstore_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// TestADemotedServerIsLeft: a replica is promoted, and gets the address, while the server before goes on answering, read-only. Connections
// to that one are not used any longer: it takes no writes, and hears of none.
func TestADemotedServerIsLeft(t *testing.T) {
	testenv.OnlyOn(t, "a replica is set up in MariaDB's words", "mariadb")
	servers := []*testenv.MariaDBServer{testenv.MariaDB(t), testenv.MariaDB(t)}
	host, port, _ := strings.Cut(servers[0].Addr(), ":")
	servers[1].Exec(t, fmt.Sprintf("CHANGE MASTER TO MASTER_HOST = '%s', MASTER_PORT = %s, MASTER_USER = 'app', MASTER_PASSWORD = 'app', MASTER_USE_GTID = slave_pos", host, port))
	servers[1].Exec(t, "START SLAVE")
	servers[0].CreateDatabase(t, "kith")
	servers[0].Exec(t, "CREATE USER kith IDENTIFIED BY 'kith'") // who may not write to a read-only server
	servers[0].Exec(t, "GRANT ALL ON kith.* TO kith")
	name := testenv.NewLink(t, servers[0].Addr())
	store := opened.Store(t, sqlstore.Config{Location: "mysql:kith:kith@tcp(" + name.Addr + ")/kith"})
	must.All(t, store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "anna", Name: "Anna"}}))
	names := func() (all [16]string) { // at once, by as many connections
		var asking sync.WaitGroup
		for i := range all {
			asking.Go(func() { all[i] = storage.UserLookups.Read(t.Context(), store, 1)[0].Value.Name })
		}
		asking.Wait()
		return all
	}
	names()

	servers[0].Exec(t, "SET GLOBAL read_only = 1")
	replica := servers[1].Open(t, "")
	must.Soon(t, "the replica has everything", func() bool {
		var n int
		return replica.QueryRow(`SELECT COUNT(*) FROM kith.users WHERE name = 'Anna'`).Scan(&n) == nil && n == 1
	})
	servers[1].Exec(t, "STOP SLAVE")
	name.Turn(servers[1].Addr())
	berta := "Berta"
	must.Soon(t, "the new server takes a write", func() bool {
		_, _, err := store.UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &berta}, storage.MicrosOf(time.Now()))
		return err == nil
	})
	for range 5 {
		for i, got := range names() {
			check.Equal(t, fmt.Sprint("answer ", i), got, berta)
		}
	}
}
