// Package testenv starts private, real servers for tests: MariaDB and Redis as
// child processes with their own data directory, socket and loopback port. They
// die with the test process, however it ends.
//
// Most tests want databases, not servers. They share servers that are started
// once per test binary, and cost milliseconds each:
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
//
//	func TestStore(t *testing.T) {
//		dsns := testenv.SharedMariaDB(t, 2).FreshDatabases(t, 2) // 2 servers × 2 databases
//		…
//	}
//
// A test that stops, kills or freezes a server may take a private one from
// [MariaDB] or [Redis]; a shared server is restored when the test ends.
//
// KITH_TEST_ENGINE names another database server to start instead of MariaDB, see [Engine].
//
// If a program is not installed, the test is skipped with the reason; with CI=true in the
// environment it fails instead.
package testenv

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/child"
	"kith/internal/must"
)

// Main runs the package's tests, stops the shared servers, removes what they
// left and exits. Call it from TestMain. Without it nothing outlives the process, either, but its
// directory stays until the next test process removes it.
func Main(m *testing.M) {
	code := m.Run()
	stopShared()
	removeRunDir()
	os.Exit(code)
}

// Long skips t unless KITH_TEST_LONG=1 (make test-all) asks for the long tests.
func Long(t testing.TB) {
	t.Helper()
	if !AllTests() {
		t.Skip("long test: run it with KITH_TEST_LONG=1 or make test-all")
	}
}

// AllTests reports whether the long tests run, for tests that do more then.
func AllTests() bool { return os.Getenv("KITH_TEST_LONG") == "1" }

// ProcessorTime is that of this process: other load on the machine does not add to it.
func ProcessorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Clients skips t unless KITH_TEST_CLIENTS=1 (make test-clients) asks for the tests with large programs from npm.
func Clients(t testing.TB) {
	t.Helper()
	if os.Getenv("KITH_TEST_CLIENTS") != "1" {
		t.Skip("large programs from npm: run it with KITH_TEST_CLIENTS=1 or make test-clients")
	}
}

// Chromium returns the path of a Chromium or Chrome program. The one without windows takes half of the processor time.
func Chromium(t testing.TB) string {
	t.Helper()
	return program(t, "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
}

// program returns the path of the first of names that is installed.
func program(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := child.Find(name); err == nil {
			return path
		}
	}
	Missing(t, strings.Join(names, " or ")+" is not installed: run scripts/install-test-deps.sh (make test does)")
	return ""
}

// Needs ends a test as [Missing] does, unless some programs are installed.
func Needs(t testing.TB, programs ...string) {
	t.Helper()
	for _, name := range programs {
		program(t, name)
	}
}

// Missing ends a test that needs something that the machine does not have: the test is skipped.
// Under CI=true, where everything has to be installed, it fails.
func Missing(t testing.TB, reason string) {
	t.Helper()
	must.That(t, os.Getenv("CI") != "true", "%v", reason)
	t.Skip(reason)
}
