package faults_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kith/internal/kithtest"
	"kith/internal/testenv"
)

// The command of kith-binlogs.service copies binlogs from the first on. It is killed, and goes on where it was, also behind files that
// the server has removed meanwhile.
func TestTheUnitCopiesBinlogs(t *testing.T) {
	t.Parallel()
	testenv.OnlyOn(t, "it is for MariaDB's programs", "mariadb")
	for _, program := range []string{"mariadb", "mariadb-binlog"} {
		if _, err := exec.LookPath(program); err != nil {
			testenv.Missing(t, program+" is not installed: run scripts/install-test-deps.sh (make test does)")
		}
	}
	text, err := os.ReadFile("../../deploy/systemd/kith-binlogs.service")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?s)ExecStart=/bin/sh -c '([^']*)'`).FindStringSubmatch(string(text))
	if command == nil {
		t.Fatal("the unit starts nothing")
	}
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
	// copied runs the command until all closed files are there, and kills it.
	copied := func() {
		t.Helper()
		p := kithtest.Launch(t, kithtest.Program("/bin/sh"), kithtest.Dir(folder), kithtest.Env("CREDENTIALS_DIRECTORY="+credentials), kithtest.Args("-c", script))
		rows, err := server.Open(t, "").Query("SHOW BINARY LOGS")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var size int64
			if err := rows.Scan(&name, &size); err != nil {
				t.Fatal(err)
			}
			p.Until(t, "all is copied of "+name, func() bool {
				info, err := os.Stat(filepath.Join(folder, name))
				return err == nil && info.Size() >= size
			})
		}
		p.Kill(t)
	}
	write()
	copied()
	write()
	server.Exec(t, "PURGE BINARY LOGS TO 'binlog.000002'")
	copied()
	if files, _ := filepath.Glob(filepath.Join(folder, "*.[0-9]*")); len(files) < 3 {
		t.Errorf("copied are %v", files)
	}
}
