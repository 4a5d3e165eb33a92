package private_test

import (
	"path/filepath"
	"strings"
	"testing"

	"kith/bench/private"
	"kith/internal/must"
	"kith/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestMariaDB(t *testing.T) {
	testenv.Needs(t, "mariadbd", "mariadb-install-db")
	server, dsn, err := private.MariaDB(t.Context(), filepath.Join(t.TempDir(), "mariadb"))
	must.OK(t, err)
	for _, statement := range []string{"CREATE DATABASE one", "CREATE TABLE one.t (a INT)", "INSERT INTO one.t VALUES (1)"} {
		if err := private.Execute(t.Context(), dsn, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := private.Execute(t.Context(), dsn+"none", "DO 1"); err == nil {
		t.Error("a database that is not there takes statements")
	}
	if err := server.Stop(); err != nil || private.Execute(t.Context(), dsn, "DO 1") == nil {
		t.Errorf("it does not stop: %v", err)
	}
}

func TestRedis(t *testing.T) {
	testenv.Needs(t, "redis-server")
	server, url, err := private.Redis(t.Context(), filepath.Join(t.TempDir(), "redis"))
	must.OK(t, err)
	if !strings.HasPrefix(url, "redis://127.0.0.1:") {
		t.Error(url)
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}
