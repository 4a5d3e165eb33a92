package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/kithtest"
	"kith/internal/testenv"
)

// refused sees that a start has ended with one line on the standard error that
// names the setting and holds the texts, and with nothing else.
func refused(t *testing.T, end kithtest.End, setting string, texts ...string) {
	t.Helper()
	line, rest, _ := strings.Cut(end.Stderr, "\n")
	if end.Code != 1 || end.Stdout != "" || rest != "" || !strings.HasPrefix(line, "kith: "+setting) {
		t.Errorf("ended with code %d, stdout %q, stderr %q; want one line about %s", end.Code, end.Stdout, end.Stderr, setting)
	}
	for _, text := range texts {
		if !strings.Contains(line, text) {
			t.Errorf("%q does not tell %q", line, text)
		}
	}
	if strings.Contains(line, password) {
		t.Errorf("%q shows the password", line)
	}
	if end.Took > 10*time.Second {
		t.Errorf("%q after %s", line, end.Took)
	}
}

// password is one that no message may show.
const password = "hush-5791"

func TestBadSettings(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, []byte(strings.Repeat("no database ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	closed, silent := closedPort(t), silentPort(t)

	// Everything that is not being tested is right.
	good := []string{"--addr=127.0.0.1:0", "--store=sqlite:" + filepath.Join(folder, "good.db")}
	const store, redis, redundancy = "--store (KITH_STORE): ", "--redis (KITH_REDIS): ", "--redundancy (KITH_REDUNDANCY): "
	for name, c := range map[string]struct {
		args    []string
		setting string
		texts   []string
	}{
		"unknown scheme":      {[]string{"--store=postgres:x"}, store, []string{`"postgres"`, "sqlite:PATH", "mysql:DSN"}},
		"no scheme":           {[]string{"--store=app:" + password + "@tcp(" + closed + ")/kith"}, store, []string{"sqlite:PATH", "mysql:DSN"}},
		"empty path":          {[]string{"--store=sqlite:"}, store, []string{"shard 0", "empty"}},
		"empty second path":   {[]string{"--store=sqlite:" + filepath.Join(folder, "a.db") + ";"}, store, []string{"shard 1", "empty"}},
		"folder is a file":    {[]string{"--store=sqlite:" + filepath.Join(file, "kith.db")}, store, []string{file, "not a directory"}},
		"unreadable folder":   {[]string{"--store=sqlite:/proc/none/kith.db"}, store, []string{"/proc/none"}},
		"path is a folder":    {[]string{"--store=sqlite:" + folder}, store, []string{folder}},
		"no database file":    {[]string{"--store=sqlite:" + file}, store, []string{file, "not a database"}},
		"no server":           {[]string{"--store=mysql:app:" + password + "@tcp(" + closed + ")/kith"}, store, []string{closed + "/kith", "connection refused"}},
		"two are not there":   {[]string{"--store=mysql:app@tcp(" + closed + ")/a;app@tcp(" + closed + ")/b"}, store, []string{"shard 0", closed + "/a", "shard 1", closed + "/b"}},
		"silent server":       {[]string{"--store=mysql:app:" + password + "@tcp(" + silent + ")/kith"}, store, []string{silent + "/kith", "no answer within 4s"}},
		"no such host":        {[]string{"--store=mysql:app:" + password + "@tcp(none.invalid:3306)/kith"}, store, []string{"none.invalid:3306"}},
		"no database":         {[]string{"--store=mysql:app:" + password + "@tcp(" + closed + ")/"}, store, []string{"names no database"}},
		"DSN without a slash": {[]string{"--store=mysql:app:" + password + "@tcp(" + closed + ")"}, store, []string{"invalid DSN"}},
		"DSN without address": {[]string{"--store=mysql:app:" + password + "/kith"}, store, []string{"address is missing"}},
		"DSN as a URL":        {[]string{"--store=mysql://app:" + password + "@" + closed + "/kith"}, store, []string{"user:password@tcp(host:port)/database"}},
		"unknown redundancy":  {[]string{"--redundancy=raid"}, redundancy, []string{`"raid"`, "sync, stream, binlog"}},
		"binlog on SQLite":    {[]string{"--redundancy=binlog"}, redundancy, []string{"SQLite has no binlog"}},
		"stream, no Redis":    {[]string{"--redundancy=stream"}, redundancy, []string{"--redis"}},
		"no Redis there":      {[]string{"--redis=redis://app:" + password + "@" + closed + "/0"}, redis, []string{closed, "connection refused"}},
		"no cluster there":    {[]string{"--redis=" + closed + "," + closed}, redis, []string{closed, "connection refused"}},
		"silent Redis":        {[]string{"--redis=redis://:" + password + "@" + silent}, redis, []string{silent, "no answer within 2s"}},
		"Redis without port":  {[]string{"--redis=localhost"}, redis, []string{"host:port"}},
		"Redis, odd URL":      {[]string{"--redis=redis:/x"}, redis, []string{"host:port"}},
		"Redis, odd scheme":   {[]string{"--redis=http://app:" + password + "@" + closed}, redis, []string{"redis://"}},
		"Redis password bare": {[]string{"--redis=:" + password + "@" + closed}, redis, []string{"redis://"}},
		"port taken":          {[]string{"--addr=" + silent}, "--addr (KITH_ADDR): ", []string{silent, "taken"}},
		"address, no port":    {[]string{"--addr=localhost"}, "--addr (KITH_ADDR): ", []string{"localhost", "port"}},
		"port too large":      {[]string{"--addr=127.0.0.1:99999"}, "--addr (KITH_ADDR): ", []string{"99999"}},
		"not our address":     {[]string{"--addr=192.0.2.1:80"}, "--addr (KITH_ADDR): ", []string{"192.0.2.1"}},
		"odd duration":        {[]string{"--request-timeout=soon"}, "--request-timeout (KITH_REQUEST_TIMEOUT): ", []string{"duration", `"soon"`}},
		"negative duration":   {[]string{"--request-timeout=-5s"}, "--request-timeout (KITH_REQUEST_TIMEOUT): ", []string{"greater than 0"}},
		"no time to answer":   {[]string{"--statement-timeout=0s"}, "--statement-timeout (KITH_STATEMENT_TIMEOUT): ", []string{"greater than 0"}},
		"negative drain":      {[]string{"--drain=-1s"}, "--drain (KITH_DRAIN): ", []string{"negative"}},
		"no connections":      {[]string{"--shard-conns=0"}, "--shard-conns (KITH_SHARD_CONNS): ", []string{"at least 1"}},
		"no number":           {[]string{"--max-cost=much"}, "--max-cost (KITH_MAX_COST): ", []string{`"much"`}},
		"no garbage":          {[]string{"--gc-percent=0"}, "--gc-percent (KITH_GC_PERCENT): ", []string{"greater than 0"}},
		"no cost":             {[]string{"--max-cost=0"}, "--max-cost (KITH_MAX_COST): ", []string{"greater than 0"}},
		"negative budget":     {[]string{"--budget=-1"}, "--budget (KITH_BUDGET): ", []string{"greater than 0"}},
		"unknown level":       {[]string{"--log-level=loud"}, "--log-level (KITH_LOG_LEVEL): ", []string{`"loud"`, `"debug"`}},
		"origin, no scheme":   {[]string{"--cors-origin=app.example.org"}, "--cors-origin (KITH_CORS_ORIGIN): ", []string{`"app.example.org"`, "https://"}},
		"origin with path":    {[]string{"--cors-origin=https://app.example.org/"}, "--cors-origin (KITH_CORS_ORIGIN): ", []string{"https://app.example.org/"}},
		"second origin odd":   {[]string{"--cors-origin=https://a.example,nonsense"}, "--cors-origin (KITH_CORS_ORIGIN): ", []string{`"nonsense"`}},
		"unknown flag":        {[]string{"--color"}, "unknown flag --color", nil},
		"stray argument":      {[]string{"stray"}, "unexpected argument stray", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, kithtest.Run(t, kithtest.Args("serve"), kithtest.Args(good...), kithtest.Args(c.args...)), c.setting, c.texts...)
		})
	}
}

func TestBadSettingsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	for variable, setting := range map[string]string{
		"KITH_STORE=redis:x":           "--store (KITH_STORE): ",
		"KITH_ADDR=nowhere":            "--addr (KITH_ADDR): ",
		"KITH_REDIS=nowhere":           "--redis (KITH_REDIS): ",
		"KITH_REDUNDANCY=raid":         "--redundancy (KITH_REDUNDANCY): ",
		"KITH_CORS_ORIGIN=ftp://x":     "--cors-origin (KITH_CORS_ORIGIN): ",
		"KITH_DRAIN=later":             "--drain (KITH_DRAIN): ",
		"KITH_LOG_FORMAT=xml":          "--log-format (KITH_LOG_FORMAT): ",
		"KITH_DEMO=perhaps":            "--demo (KITH_DEMO): ",
		"KITH_SHARD_CONNS=many":        "--shard-conns (KITH_SHARD_CONNS): ",
		"KITH_STATEMENT_TIMEOUT=0":     "--statement-timeout (KITH_STATEMENT_TIMEOUT): ",
		"KITH_REQUEST_TIMEOUT=nothing": "--request-timeout (KITH_REQUEST_TIMEOUT): ",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			refused(t, kithtest.Run(t, kithtest.Env("KITH_ADDR=127.0.0.1:0", variable)), setting)
		})
	}
}

func TestBadCommands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args    []string
		setting string
	}{
		"unknown command":       {[]string{"dance"}, "unexpected argument dance"},
		"import of nothing":     {[]string{"import"}, `expected "<file> ..."`},
		"import of no file":     {[]string{"import", "none.txt"}, "open none.txt: no such file"},
		"import, odd chunk":     {[]string{"import", "--chunk=many", "none.txt"}, "--chunk: "},
		"import, unknown store": {[]string{"import", "--store=x:y", "none.txt"}, "--store (KITH_STORE): "},
		"migrate, no server":    {[]string{"migrate", "--store=mysql:app:" + password + "@tcp(" + closedPort(t) + ")/kith"}, "--store (KITH_STORE): "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, kithtest.Run(t, kithtest.Args(c.args...)), c.setting)
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

// TestPortTakenByKith starts the program twice; the first goes on.
func TestPortTakenByKith(t *testing.T) {
	t.Parallel()
	g := kithtest.Start(t)
	addr := strings.TrimPrefix(g.URL, "http://")
	refused(t, kithtest.Run(t, kithtest.Args("--addr", addr)), "--addr (KITH_ADDR): "+addr+" is taken")
	if status, _ := g.Get(t, "/readyz"); status != 200 {
		t.Errorf("the first gateway answers %d", status)
	}
}

// closedPort is an address where nobody listens, nor can, as long as the test runs:
// a socket is bound to it.
func closedPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
}

// silentPort is an address that takes connections and never says a word.
func silentPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}
