package testenv_test

import (
	"database/sql"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"kith/internal/must"
	"kith/internal/testenv"
)

// A test of a sharded store asks for four shards on two servers.
func ExampleSharedMariaDB() {
	_ = func(t *testing.T) {
		for _, dsn := range testenv.SharedMariaDB(t, 2).FreshDatabases(t, 2) {
			db, err := sql.Open("mysql", dsn)
			must.OK(t, err)
			defer db.Close()
		}
	}
}

// A server crashes in the middle of a test.
func ExampleMariaDB() {
	_ = func(t *testing.T) {
		server := testenv.MariaDB(t)
		server.CreateDatabase(t, "kith")
		server.Kill(t)
		server.Restart(t)
	}
}
