package testenv_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kith/internal/must"
	"kith/internal/testenv"
)

func TestServersDieWithAKilledTest(t *testing.T) {
	mariadb, redis := testenv.MariaDB(t), testenv.Redis(t)
	if os.Getenv("KITH_TESTENV_VICTIM") == "1" { // the process that is to be killed
		fmt.Printf("servers %d %d %s\n", mariadb.PID(), redis.PID(), filepath.Dir(mariadb.Log()))
		select {}
	}

	victim := exec.Command(os.Args[0], "-test.run=^TestServersDieWithAKilledTest$")
	victim.Env = append(os.Environ(), "KITH_TESTENV_VICTIM=1")
	out, err := victim.StdoutPipe()
	must.OK(t, err)
	must.OK(t, victim.Start())
	t.Cleanup(func() { _ = victim.Process.Kill() })

	var pids [2]int
	var dir string
	for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "servers %d %d %s", &pids[0], &pids[1], &dir)
	}
	for _, pid := range pids {
		must.That(t, alive(pid), "the victim's server %d does not run", pid)
	}

	must.OK(t, victim.Process.Kill())
	_ = victim.Wait()
	must.Soon(t, "MariaDB and Redis end with the victim", func() bool { return !alive(pids[0]) && !alive(pids[1]) })

	// The victim's folder is removed when the next test process starts a server, this one or that of another package.
	sweeper := exec.Command(os.Args[0], "-test.run=^TestRedisIsPrivateAndEmpty$")
	if out, err := sweeper.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there (%v)", dir, err)
	}
}

// alive reports whether pid runs. A zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	return !bytes.Contains(stat, []byte(") Z "))
}
