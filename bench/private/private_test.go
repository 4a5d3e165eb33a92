package private_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/bench/private"
	"kith/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// needs skips a test if a program is not installed, unless skipping is not allowed.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		_, err := private.Find(name)
		switch {
		case err != nil && os.Getenv("CI") == "true":
			t.Fatal(err)
		case err != nil:
			t.Skip(err)
		}
	}
}

func TestMariaDB(t *testing.T) {
	needs(t, "mariadbd", "mariadb-install-db")
	server, err := private.StartMariaDB(t.Context(), filepath.Join(t.TempDir(), "mariadb"))
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"CREATE DATABASE one", "CREATE TABLE one.t (a INT)", "INSERT INTO one.t VALUES (1)"} {
		if err := private.Execute(t.Context(), server.DSN(""), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := private.Execute(t.Context(), server.DSN("none"), "DO 1"); err == nil {
		t.Error("a database that is not there takes statements")
	}
	ends(t, server.Process)
}

func TestRedis(t *testing.T) {
	needs(t, "redis-server")
	server, err := private.StartRedis(t.Context(), filepath.Join(t.TempDir(), "redis"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(server.URL(), "redis://127.0.0.1:") {
		t.Error(server.URL())
	}
	ends(t, server.Process)
}

// ends stops a process, and checks that it is gone.
func ends(t *testing.T, p *private.Process) {
	t.Helper()
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stopped again: %v", err)
	}
	if err := p.Answers(t.Context(), func(context.Context) error { return errors.New("no") }); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("what has ended answers: %v", err)
	}
}

// A program that ends at once is reported with its output.
func TestProgramThatFails(t *testing.T) {
	p, err := private.Start(filepath.Join(t.TempDir(), "log"), []string{"SAYS=it is broken"}, "/bin/sh", "-c", `echo "$SAYS$KITH_STORE"`)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Answers(t.Context(), func(context.Context) error { return errors.New("no") })
	if err == nil || !strings.Contains(err.Error(), "it is broken") {
		t.Error(err)
	}
	if _, err := private.Start(filepath.Join(t.TempDir(), "log"), nil, "/no/such/program"); err == nil {
		t.Error("a program that is not there starts")
	}
}
