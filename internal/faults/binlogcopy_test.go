package faults_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// The command of kith-binlogs.service copies binlogs from the first on. It is killed, and goes on where it was, also behind files that
// the server has removed meanwhile. What was copied of a file is kept if its next copies are cut off, and the server then removes it.
func TestTheUnitCopiesBinlogs(t *testing.T) {
	t.Parallel()
	testenv.OnlyOn(t, "it is for MariaDB's programs", "mariadb")
	testenv.Needs(t, "mariadb", "mariadb-binlog")
	text := must.File(t, "../../deploy/systemd/kith-binlogs.service")
	command := regexp.MustCompile(`(?s)ExecStart=/bin/sh -c '([^']*)'`).FindStringSubmatch(string(text))
	must.That(t, command != nil, "the unit starts nothing")
	script := strings.NewReplacer("$$", "$", "\\\n", "").Replace(command[1])
	server := testenv.MariaDB(t)
	server.CreateDatabase(t, "kith_0")
	server.Exec(t, "CREATE TABLE kith_0.numbers (n INT PRIMARY KEY, text TEXT)")
	credentials, folder := t.TempDir(), t.TempDir()
	clientFile(t, credentials, "db1.cnf", server)
	written := 0
	write := func() {
		for range 20 {
			written++
			server.Exec(t, fmt.Sprintf("INSERT INTO kith_0.numbers VALUES (%d, REPEAT('x', 5000))", written))
		}
		server.Exec(t, "FLUSH BINARY LOGS")
	}
	sizes := map[string]int64{} // as the server says
	// files are the server's binlogs.
	files := func() (names []string) {
		t.Helper()
		rows, err := server.Open(t, "").Query("SHOW BINARY LOGS")
		must.OK(t, err)
		defer rows.Close()
		for rows.Next() {
			var name string
			var size int64
			must.OK(t, rows.Scan(&name, &size))
			names, sizes[name] = append(names, name), size
		}
		return names
	}
	launch := func(path string) *kithtest.Command {
		return kithtest.Launch(t, kithtest.Program("/bin/sh"), kithtest.Dir(folder), kithtest.Env("CREDENTIALS_DIRECTORY="+credentials, "PATH="+path), kithtest.Args("-c", script))
	}
	// copied runs the command until all files are there, kills it, and returns what it said and the last file.
	copied := func() (said, last string) {
		t.Helper()
		p := launch(os.Getenv("PATH"))
		for _, name := range files() {
			last = name
			p.Until(t, "all is copied of "+name, func() bool {
				info, err := os.Stat(filepath.Join(folder, name))
				return err == nil && info.Size() >= sizes[name]
			})
		}
		p.Kill(t)
		return p.Stderr(), last
	}
	write()
	copied()
	write()
	server.Exec(t, "PURGE BINARY LOGS TO 'binlog.000002'")
	said, _ := copied()
	check.Equal(t, "what it said", said, "")
	write()
	_, last := copied()
	whole := must.File(t, filepath.Join(folder, last))
	// Twice the copy is cut off just after it has begun.
	cut := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(cut, "mariadb-binlog"), []byte("#!/bin/sh\nfor file; do :; done\necho begun >\"$file\"\necho cut off\nexec sleep 600\n"), 0o700))
	for range 2 {
		p := launch(cut + ":" + os.Getenv("PATH"))
		p.Until(t, "the copy begins anew", func() bool { return strings.Contains(p.Stdout(), "cut off") })
		p.Kill(t)
	}
	write()
	for slices.Contains(files(), last) { // the server keeps it until it notices that the first copier is gone
		server.Exec(t, "FLUSH BINARY LOGS")
		server.Exec(t, "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
		time.Sleep(10 * time.Millisecond)
	}
	said, newest := copied()
	check.That(t, strings.Contains(said, "a gap behind "+last) && newest != last, "%s is gone from the server: it said %q and copied up to %s", last, said, newest)
	text = must.File(t, filepath.Join(folder, last))
	check.That(t, bytes.Equal(text, whole), "%s had %d bytes, and has %d", last, len(whole), len(text))
	if files, _ := filepath.Glob(filepath.Join(folder, "binlog.[0-9]*")); len(files) < 5 { // as docs/how-to/back-up.md lists them
		t.Errorf("copied are %v", files)
	}
}
