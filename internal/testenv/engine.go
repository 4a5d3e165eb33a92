package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// An engine is a database server of the MySQL family that [MariaDB] and [SharedMariaDB] start.
type engine struct {
	name string
	bin  string                       // the server's program
	args func(*Server) []string       // the command line of a server
	data func(serverDir string) error // makes the first data of a new server
}

// Engine names the server that [MariaDB] and [SharedMariaDB] start: "mariadb", the one that is
// installed on the machine, or the one that KITH_TEST_ENGINE names instead. "mariadb11", "mysql"
// and "tidb" are those that scripts/install-engines.sh installs.
func Engine() string {
	if name := os.Getenv("KITH_TEST_ENGINE"); name != "" {
		return name
	}
	return "mariadb"
}

// NotOn skips t, for a reason, on some engines.
func NotOn(t testing.TB, why string, engines ...string) {
	t.Helper()
	if slices.Contains(engines, Engine()) {
		t.Skipf("not on %s: %s", Engine(), why)
	}
}

// OnlyOn skips t, for a reason, on all engines but these.
func OnlyOn(t testing.TB, why string, engines ...string) {
	t.Helper()
	if !slices.Contains(engines, Engine()) {
		t.Skipf("not on %s: %s", Engine(), why)
	}
}

// HasBinlog reports whether the engine writes a binlog, which the mode binlog needs.
func HasBinlog() bool { return Engine() != "tidb" }

// NeedsBinlog skips t on an engine without a binlog.
func NeedsBinlog(t testing.TB) {
	t.Helper()
	if !HasBinlog() {
		t.Skipf("%s has no binlog", Engine())
	}
}

// chosenEngine is the engine that is asked for.
func chosenEngine(t testing.TB) *engine {
	t.Helper()
	return engineNamed(t, Engine())
}

// engineNamed is the engine of a name, see [Engine]. If its programs are not installed, the test is
// skipped, as it is without MariaDB.
func engineNamed(t testing.TB, name string) *engine {
	t.Helper()
	switch name {
	case "mariadb":
		return mariaDBEngine(program(t, "mariadbd"), program(t, "mariadb-install-db"), "")
	case "mariadb11":
		return mariaDBEngine(installed(t, name, "usr/sbin/mariadbd"), installed(t, name, "usr/bin/mariadb-install-db"), unpacked(name))
	case "mysql":
		return mySQLEngine(installed(t, name, "usr/sbin/mysqld"), unpacked(name))
	case "tidb":
		return tiDBEngine(installed(t, name, "tidb-server"))
	default:
		t.Fatalf("there is no engine %q: there are mariadb, mariadb11, mysql and tidb", name)
		return nil
	}
}

// unpacked is the folder that an engine was unpacked in.
func unpacked(engine string) string {
	if dir := os.Getenv("KITH_TEST_ENGINES"); dir != "" {
		return filepath.Join(dir, engine)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return engine
	}
	return filepath.Join(home, ".cache", "kith-engines", engine)
}

// installed is the path of a program of an unpacked engine. VERSION is written last.
func installed(t testing.TB, engine, path string) string {
	t.Helper()
	dir := unpacked(engine)
	if _, err := os.Stat(filepath.Join(dir, "VERSION")); err != nil {
		Missing(t, fmt.Sprintf("%s is not in %s: run scripts/install-engines.sh %s (make test-engines does)", engine, dir, engine))
	}
	return filepath.Join(dir, path)
}
