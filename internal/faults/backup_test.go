package faults_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/kithtest"
	"kith/internal/testenv"
)

// TestBackupIsRestored runs the commands of docs/backup.md. A shard is dumped while it is written to, its binlogs are
// copied, its server is lost, and another server replaces it. Nothing that was acknowledged is lost, and both sides agree.
func TestBackupIsRestored(t *testing.T) {
	t.Parallel()
	testenv.OnlyOn(t, "the page is about MariaDB's programs", "mariadb")
	for _, program := range []string{"mariadb", "mariadb-dump", "mariadb-binlog"} {
		if _, err := exec.LookPath(program); err != nil {
			testenv.Missing(t, program+" is not installed: run scripts/install-test-deps.sh (make test does)")
		}
	}
	const users = 300
	servers := testenv.Servers{testenv.MariaDB(t), testenv.MariaDB(t)}
	d := assemble(t, servers, []string{servers[0].CreateDatabase(t, "kith_0"), servers[1].CreateDatabase(t, "kith_1")}, testenv.Redis(t), "binlog", users)
	page := commandsOf(t, "../../docs/backup.md")
	if len(page) != 5 {
		t.Fatalf("%d commands on the page", len(page))
	}
	copying, dump, load, replay, repair := page[0], page[1], page[2], page[3], page[4]

	folder := t.TempDir()
	clientFile(t, folder, "db1.cnf", servers[0])
	d.gateways = []*node{d.serving("gateway 0"), d.serving("gateway 1")}
	for _, n := range d.gateways {
		n.start(t)
	}
	b := d.balancer(t)
	for i := range d.gateways {
		b.has(t, i, true)
	}
	copies := kithtest.Launch(t, kithtest.Program("/bin/bash"), kithtest.Dir(folder), kithtest.Args("-c", copying))
	traffic := b.start(t, d, append(d.onShard(0, 2), d.onShard(1, 2)...), users, 5*time.Millisecond)
	enough := func(n int64) {
		until(t, fmt.Sprint(n, " follows"), func() bool { return traffic.followed.Load() >= n })
	}
	enough(50)
	shell(t, folder, dump)
	dumped := traffic.followed.Load()
	enough(dumped + 150)
	traffic.stop()

	// The copy of the binlogs has reached the end of the server's binlog.
	var file string
	var position int64
	if err := d.shards[0].QueryRow("SHOW MASTER STATUS").Scan(&file, &position, new(string), new(string)); err != nil {
		t.Fatal(err)
	}
	copies.Until(t, "the binlogs are copied", func() bool {
		info, err := os.Stat(filepath.Join(folder, "binlogs", file))
		return err == nil && info.Size() >= position
	})
	before := d.number(t, 0, "SELECT COUNT(*) FROM following")
	servers[0].Kill(t)
	copies.Signal(syscall.SIGTERM)
	for i, n := range d.gateways {
		b.out[i].Store(true)
		n.kill(t)
	}

	fresh := testenv.MariaDB(t)
	clientFile(t, folder, "new.cnf", fresh)
	shell(t, folder, load)
	d.dsns[0] = fresh.DSN("kith_0")
	d.shards[0] = fresh.Open(t, "kith_0")
	loaded := d.number(t, 0, "SELECT COUNT(*) FROM following")
	shell(t, folder, replay)
	replayed := d.number(t, 0, "SELECT COUNT(*) FROM following")
	t.Logf("%d follows on the shard, %d in the dump, %d after the replay", before, loaded, replayed)
	if loaded >= before || replayed != before {
		t.Errorf("%d follows on the shard, %d in the dump, %d after the replay", before, loaded, replayed)
	}

	for _, n := range d.gateways {
		n.launch = d.serving(n.name).launch
		n.start(t)
	}
	traffic.rolledWell(t, d, 0)

	// Some follows were acknowledged by the server, but not sent. They exist only on their other side.
	const unsent = 3
	shell(t, folder, fmt.Sprintf(`echo "SET SESSION sql_log_bin = 0; DELETE FROM kith_0.following LIMIT %d" | mariadb --defaults-file=new.cnf`, unsent))
	for _, again := range []bool{false, true} { // the second time nothing has to be repaired
		args := strings.Fields(strings.TrimPrefix(repair, "kith "))
		end := kithtest.Run(t, kithtest.Args(append(args, append(d.settings(), "--output=json", "--max-load=1")...)...))
		var report struct{ Found map[string]int }
		if err := json.Unmarshal([]byte(end.Stdout), &report); err != nil || end.Code != 0 {
			t.Fatalf("reconcile: %v %+v", err, end)
		}
		t.Logf("kith reconcile has found %v", report.Found)
		maps.DeleteFunc(report.Found, func(_ string, n int) bool { return n == 0 })
		if extra := report.Found["extra"]; !again && extra != unsent || again && len(report.Found) > 0 {
			t.Errorf("again %t: found %v", again, report.Found)
		}
	}
}

// commandsOf returns the commands of a page, in their order.
func commandsOf(t *testing.T, path string) (list []string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		list = append(list, strings.TrimSpace(block[1]))
	}
	return list
}

// shell runs commands of the page.
func shell(t *testing.T, folder, commands string) {
	t.Helper()
	command := exec.Command("/bin/bash", "-ec", commands)
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
}

// clientFile writes the file with which MariaDB's programs find a server.
func clientFile(t *testing.T, folder, name string, server *testenv.MariaDBServer) {
	t.Helper()
	host, port, _ := strings.Cut(server.Addr(), ":")
	text := fmt.Sprintf("[client]\nhost = %s\nport = %s\nuser = app\npassword = app\n", host, port)
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
