package program_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// refused checks that a start has ended with one line on the standard error, which names the
// setting and contains the texts, and with no other output.
func refused(t *testing.T, end kithtest.End, setting string, texts ...string) {
	t.Helper()
	line, rest, _ := strings.Cut(end.Stderr, "\n")
	if end.Code != 1 && end.Code != misused || end.Stdout != "" || rest != "" || !strings.HasPrefix(line, "kith: ") || !strings.Contains(line, setting) {
		t.Errorf("ended with code %d, stdout %q, stderr %q; want one line about %s", end.Code, end.Stdout, end.Stderr, setting)
	}
	check.Has(t, setting, line, texts...)
	check.Lacks(t, setting, line, password)
	// Not the time of a retry or of a time limit; a machine under load takes seconds.
	check.Most(t, line, end.Took, 20*time.Second)
}

// misused is the exit code after a mistake in the settings, or for an address that is taken: to start again is of no use.
const misused = 78

// TestExitCodes tell a service manager whether a new start may help.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	g := kithtest.Start(t)
	taken := strings.TrimPrefix(g.URL, "http://")
	shard := "--store=mysql:app@tcp(" + closedPort(t) + ")/kith"
	gone := written(t, "identity.json", `[{"issuer": "a", "jwks": "http://`+closedPort(t)+`/jwks", "audience": ["kith"]}]`)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--addr", taken}, misused, "--addr (KITH_ADDR): " + taken + " is taken by another program: stop it, or choose another port\n"},
		{[]string{"--addr=127.0.0.1:0", "--admin-addr", taken}, misused, "--admin-addr (KITH_ADMIN_ADDR): " + taken + " is taken"},
		{[]string{"replicate", shard, "--redundancy=sync"}, misused, "--redundancy (KITH_REDUNDANCY): "},
		{[]string{"--max-cost=none"}, misused, "--max-cost: "},
		{[]string{"--max-cost", "-3"}, misused, "--max-cost (KITH_MAX_COST): it must be greater than 0 and at most 1000000000\n"},
		{[]string{"--store=postgres:x"}, misused, "--store (KITH_STORE): "},
		{[]string{"--jwt-secret", strings.Repeat("0", 64)}, misused, "can be guessed"},
		{[]string{"--only-trusted=on"}, misused, "--only-trusted (KITH_ONLY_TRUSTED): "},
		{[]string{"--trusted-documents=nowhere"}, misused, "--trusted-documents (KITH_TRUSTED_DOCUMENTS): nowhere: no such file or directory"},
		{[]string{"--addr=127.0.0.1:99999"}, misused, "address 127.0.0.1:99999: a port is at most 65535"},
		{[]string{"--pages=app", "--without=posts"}, misused, "--pages (KITH_PAGES): the app needs the whole schema"},
		{[]string{"--addr=127.0.0.1:0", shard}, 1, "connection refused"},
		{[]string{"replicate", shard, "--redundancy=binlog"}, 1, "connection refused"},
		{[]string{"--addr=127.0.0.1:0", "--identity=" + gone}, 1, "connection refused"},
	} {
		complains(t, c.args, kithtest.Run(t, kithtest.Args(c.args...)), c.code, c.says)
	}
	status, _ := g.Get(t, "/readyz")
	check.Equal(t, "what the gateway answers whose ports others wanted", status, 200)
}

// password is a password that no message may show.
const password = "hush-5791"

// secret signs tokens.
const secret = "the secret of the tests of the program"

func TestBadCommands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args    []string
		setting string
	}{
		"unknown flag":            {[]string{"--color"}, "unknown flag --color"},
		"unknown command":         {[]string{"dance"}, "unexpected argument dance"},
		"import of nothing":       {[]string{"import"}, `expected "<file> ..."`},
		"import of no file":       {[]string{"import", "none.txt"}, "none.txt: no such file"},
		"import, odd chunk":       {[]string{"import", "--chunk=many", "none.txt"}, "--chunk: "},
		"import, huge chunk":      {[]string{"import", "--chunk=10000001", "none.txt"}, "--chunk: it must be 1 to 10000000"},
		"import, unknown store":   {[]string{"import", "--store=x:y", "none.txt"}, "--store (KITH_STORE): "},
		"import of an empty file": {[]string{"import", "/dev/null"}, "there is nothing to import"},
		"replicate on SQLite":     {[]string{"replicate"}, "--store (KITH_STORE): "},
		"migrate, no server":      {[]string{"migrate", "--store=mysql:app:" + password + "@tcp(" + closedPort(t) + ")/kith"}, "--store (KITH_STORE): "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			refused(t, kithtest.Run(t, kithtest.Dir(folder), kithtest.Args(c.args...)), c.setting)
			_, err := os.Stat(filepath.Join(folder, "data"))
			check.That(t, err != nil || slices.Contains(c.args, "/dev/null"), "it has made a database")
		})
	}
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	server := testenv.SharedMariaDB(t, 2)[0]
	end := kithtest.Run(t, kithtest.Args("serve", "--addr=127.0.0.1:0", "--store=mysql:app:"+password+"@tcp("+server.Addr()+")/kith"))
	refused(t, end, "--store (KITH_STORE): shard 0: "+server.Addr()+"/kith: ", "Access denied for user 'app'")
	end = kithtest.Run(t, kithtest.Args("serve", "--addr=127.0.0.1:0", "--store=mysql:app:app@tcp("+server.Addr()+")/none"))
	refused(t, end, "--store (KITH_STORE): shard 0: "+server.Addr()+"/none: ", "Unknown database 'none'")
}

func TestWrongRedisPassword(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	end := kithtest.Run(t, kithtest.Args("serve", "--addr=127.0.0.1:0", "--redis=redis://app:"+password+"@"+server.Addr()+"/0"))
	refused(t, end, "--redis (KITH_REDIS): "+server.Addr()+": ", "WRONGPASS")
}

// A command that writes beside gateways has to tell them, so it refuses to run without their Redis.
func TestCommandsNeedTheirRedis(t *testing.T) {
	t.Parallel()
	closed, silent := closedPort(t), silentPort(t)
	file := written(t, "one.tsv", "1\t2\n")
	for value, says := range map[string]string{"redis://" + closed + "/0": "connection refused", closed + "," + closed: "connection refused", silent: "no answer within 2s", "redis://none.invalid:6379": "none.invalid"} {
		end := kithtest.Run(t, kithtest.Args("import", "--store", location(newSQLite(t, 1)...), "--redis", value, file))
		end.Fails(t, value, 1, "--redis (KITH_REDIS): ", says)
	}
}

func TestRedisReplica(t *testing.T) {
	t.Parallel()
	_, port, _ := strings.Cut(testenv.Redis(t).Addr(), ":")
	replica := testenv.Redis(t, "--replicaof", "127.0.0.1 "+port)
	for _, mode := range []string{"sync", "stream"} {
		end := kithtest.Run(t, kithtest.Args("serve", "--addr=127.0.0.1:0", "--redis="+replica.Addr(), "--redundancy="+mode))
		refused(t, end, "--redis (KITH_REDIS): "+replica.Addr()+": ", "replica")
	}
}

// closedPort is an address on which nothing listens, and nothing can listen while the test runs,
// because a socket is bound to it.
func closedPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must.OK(t, err)
	t.Cleanup(func() { syscall.Close(fd) })
	must.OK(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	bound, err := syscall.Getsockname(fd)
	must.OK(t, err)
	return fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
}

// silentPort is an address that accepts connections, but never answers.
func silentPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}
