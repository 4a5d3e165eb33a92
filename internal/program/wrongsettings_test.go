package program_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"kith/cli"
	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// wrong is a value that a setting refuses.
type wrong struct {
	value string
	says  []string // what else the line contains
	with  []string // other arguments that make the value wrong
	names string   // the setting that the line names, if it is another one
}

// eachSetting calls visit with each setting of each command.
func eachSetting(t *testing.T, visit func(command string, flag *kong.Flag)) {
	t.Helper()
	parser, err := kong.New(new(cli.Program), kong.Name("kith"), cli.Vars)
	must.OK(t, err)
	for _, command := range parser.Model.Leaves(false) {
		name := command.Path()
		if strings.HasPrefix(name, "bench ") {
			continue
		}
		flags := slices.Clone(command.Flags)
		if name == "serve" {
			flags = append(flags, parser.Model.Flags...)
		}
		if name == "doctor" || name == "token" { // they take the same settings: see TestDoctorChecksSettings
			flags = ofDoctor(parser.Model.Node, command)
		}
		for _, flag := range flags {
			if !strings.HasPrefix(flag.Name, "help") {
				visit(name, flag)
			}
		}
	}
}

// TestWrongKinds gives each setting of each command values that are wrong for its kind, by flag, and the first of several by variable, if
// there is one. They are refused while the command line is read. That is asked of [cli.Run], to which the program hands its arguments: to
// start it takes ten times as long as to read them. The context has ended, so that a command whose value is not refused does not run.
func TestWrongKinds(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	store := "--store=" + location(newSQLite(t, 1)...)
	read := map[reflect.Type]bool{} // kinds for which all values that cannot be read have been tried
	table := wrongAsRead()
	eachSetting(t, func(command string, flag *kong.Flag) {
		cases := slices.Concat(wrongOfKind(flag, read), table[flag.Name])
		for i, c := range cases {
			title, setting, args := c.of(command, flag, i)
			t.Run(title, func(t *testing.T) {
				if i == 0 && len(cases) > 1 && len(flag.Envs) > 0 {
					t.Setenv(flag.Envs[0], c.value)
				} else {
					args = append(args, "--"+flag.Name+"="+c.value)
				}
				var stdout, stderr strings.Builder
				code := cli.Run(ended, append(args, store), &stdout, &stderr)
				refused(t, kithtest.End{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}, setting, c.says...)
			})
		}
	})
}

// TestWrongSettings starts the program with the values of the table below, by flag, and the first of several by variable. Both lead to the
// same check, and each needs a start of the program. For a new setting that is a text, the test fails until the table has wrong values.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	table, asRead := wrongValues(t), wrongAsRead()
	environment := kithtest.Env("KITH_ADDR=127.0.0.1:0", "KITH_STORE="+kithtest.DemoStore(t, 1))
	read := map[reflect.Type]bool{}
	eachSetting(t, func(command string, flag *kong.Flag) {
		extra, listed := table[flag.Name]
		cases := slices.Concat(extra, table[command+" "+flag.Name])
		check.That(t, len(cases)+len(asRead[flag.Name])+len(wrongOfKind(flag, read)) != 0 || listed, "%s --%s: the table has no wrong values of it", command, flag.Name)
		for i, c := range cases {
			title, setting, args := c.of(command, flag, i)
			way := kithtest.Args("--" + flag.Name + "=" + c.value)
			if i == 0 && len(cases) > 1 && len(flag.Envs) > 0 {
				title, way = title+" by variable", kithtest.Env(flag.Envs[0]+"="+c.value)
			}
			t.Run(title, func(t *testing.T) {
				t.Parallel()
				refused(t, kithtest.Run(t, environment, kithtest.Args(args...), way), setting, c.says...)
				if t.Failed() {
					t.Logf("value %q with %q", c.value, c.with)
				}
			})
		}
	})
}

// of returns how a case of a command and a setting is called, which setting the line names, and all arguments but the value.
func (c wrong) of(command string, flag *kong.Flag, i int) (title, setting string, args []string) {
	setting = "--" + flag.Name
	if c.names != "" {
		setting = "--" + c.names
	}
	if len(flag.Envs) > 0 {
		setting += " (KITH_" + strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(setting, "--"), "-", "_")) + ")"
	}
	args = append(strings.Fields(command), c.with...)
	switch command {
	case "import":
		args = append(args, "-")
	case "copy":
		args = append(args, "sqlite:never.db")
	case "reconcile watch":
		args = append(args, "http://127.0.0.1:1")
	}
	return fmt.Sprintf("%s %s %d", command, flag.Name, i), setting, args
}

// zeroIsGood are the numbers and durations that may be 0.
var zeroIsGood = []string{"stop-delay", "drain", "max-following", "cache-bytes", "session-ttl", "login-limit", "address-limit", "write-limit", "slow-operation", "user", "from", "to"}

// wrongOfKind returns values that no setting of this kind accepts. Values that cannot be read as the kind
// are refused by the same code for every setting. So all of them are tried only with the first setting of a
// kind, and one with each other setting. The long tests try all with each setting.
func wrongOfKind(flag *kong.Flag, read map[reflect.Type]bool) []wrong {
	kind := flag.Target.Type()
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	var unread, values []string
	zero := "0"
	switch {
	case kind == reflect.TypeFor[time.Duration]():
		unread, values, zero = []string{"soon", "5", "3000000h", ""}, []string{"-1s"}, "0s"
	case flag.Enum != "":
		return []wrong{{value: "nonsense"}, {value: ""}}
	case flag.IsBool():
		return []wrong{{value: "perhaps"}, {value: "2"}}
	case slices.Contains([]reflect.Kind{reflect.Int, reflect.Int64, reflect.Uint64}, kind.Kind()):
		unread, values = []string{"much", "1.5", "99999999999999999999", ""}, []string{"-1"}
	case kind.Kind() == reflect.Float64:
		unread, values = []string{"much", ""}, []string{"-1", "NaN", "+Inf"}
	default:
		return nil // any text may be right
	}
	switch {
	case slices.Contains(zeroIsGood, flag.Name):
	case testenv.AllTests() || !read[kind]:
		values = append(values, zero)
	default:
		values[0] = zero // what refuses it refuses what is less
	}
	if read[kind] && !testenv.AllTests() {
		unread = unread[:1]
	}
	read[kind] = true
	var list []wrong
	for _, v := range append(unread, values...) {
		list = append(list, wrong{value: v})
	}
	return list
}

// wrongAsRead are the values that are wrong for a reason of a particular setting, and are refused while the command line is read.
func wrongAsRead() map[string][]wrong {
	corsOrigin := []string{"--cors-origin=https://app.example.org"}
	positive, notNegative := []string{"greater than 0"}, []string{"negative"}
	return map[string][]wrong{
		"addr": {
			{value: "localhost", says: []string{"localhost", "port"}}, {value: ""}, {value: "127.0.0.1:"}, {value: "http://localhost:8080"},
			{value: "8080", says: []string{"a host and a port, such as 127.0.0.1:8080"}},
		},
		"admin-addr": {{value: "localhost"}, {value: "127.0.0.1:"}, {value: "http://localhost:8080"}},
		"cors-origin": {
			{value: "app.example.org", says: []string{`"app.example.org"`, "https://"}}, {value: "https://app.example.org/"},
			{value: "https://a.example,nonsense", says: []string{`"nonsense"`}}, {value: "ftp://x"},
		},
		"cors-header": {
			{value: "X Tenant", with: corsOrigin, says: []string{`"X Tenant"`}}, {value: "*", with: corsOrigin}, {value: "X-A,,X-B", with: corsOrigin},
			{value: "Cookie", with: corsOrigin, says: []string{`"Cookie"`, "browsers"}}, {value: "sec-fetch-site", with: corsOrigin},
			{value: strings.Repeat("x", 65), with: corsOrigin, says: []string{"at most 64"}}, {value: "x" + strings.Repeat(",x", 50), with: corsOrigin, says: []string{"at most 50"}},
			{value: "X-Tenant", says: []string{"--cors-origin"}},
		},
		"public-url": {
			{value: "kith.example.org", says: []string{`"kith.example.org"`, "https://"}}, {value: "https://kith.example.org/"},
			{value: "https://*.example.org", says: []string{"one origin"}}, {value: "*"},
		},
		"suggest": {
			{value: "maya"}, {value: "7,0", says: []string{"greater than 0"}}, {value: "1" + strings.Repeat(",1", 100), says: []string{"at most 100"}},
		},
		"feed-active-days": {{value: "366", says: []string{"at most 365"}}},
		"drain":            {{value: "-1s", says: notNegative}},
		"slow-operation":   {{value: "-1s", says: notNegative}},
		"max-following":    {{value: "-1", says: notNegative}},
		"login-limit":      {{value: "-1", says: notNegative}},
		"write-limit":      {{value: "-1", says: notNegative}},
		"address-limit":    {{value: "-1", says: notNegative}},
		"request-timeout":  {{value: "-5s", says: positive}},
		"shard-conns":      {{value: "0", says: []string{"at least 1"}}},
		"max-body":         {{value: "2TiB", says: []string{"at most 1TiB"}}},
		"scope":            {{value: "sudo", says: []string{`"act-as"`}}},
		"for":              {{value: "0s", says: []string{"at least 1s"}}},
		"log-level":        {{value: "loud", says: []string{`"loud"`, `"debug"`}}},
		"token-ttl":        {{value: "0s", says: []string{"at least 1s"}}, {value: "999ms"}},
		"session-ttl":      {{value: "-1s", says: notNegative}},
		"trusted-proxy":    {{value: "foo", says: []string{`"foo"`}}, {value: "10.0.0.0/8,10.0.0.0/64"}},
		"buckets":          {{value: "a"}, {value: "9-3"}, {value: "0-1024"}, {value: "-1"}},
	}
}

// wrongValues are further such values, for which files are opened, or servers asked. Settings without such
// values are also listed.
func wrongValues(t *testing.T) map[string][]wrong {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	pipe := filepath.Join(folder, "pipe")
	must.OK(t, syscall.Mkfifo(pipe, 0o600))
	gone := filepath.Join(folder, "gone.db")
	must.OK(t, os.Symlink(filepath.Join(folder, "absent", "kith.db"), gone))
	noDatabase, noKeys := file("file", strings.Repeat("no database ", 500)), file("empty.json", "{}")
	closed, silent := closedPort(t), silentPort(t)
	wanting := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(wanting.Close)
	keysOf := func(jwks string) string {
		return file(fmt.Sprintf("%x.json", sha256.Sum256([]byte(jwks))), fmt.Sprintf(`[{"issuer": "a", "jwks": %q, "audience": ["kith"]}]`, jwks))
	}
	const redis, mysql = "redis://:" + password + "@", "mysql:app:" + password + "@tcp("

	return map[string][]wrong{
		"changes after": {
			{value: ""}, {value: "null", says: []string{"no cursor of this store"}}, {value: strings.Repeat("A", 70_000)},
			{value: "eyJzdG9yZSI6IngiLCJsb2dzIjp7fX0", says: []string{"no cursor of this store"}}, // another store's
		},
		"serve addr": { // the other commands with this flag do not listen there
			{value: "127.0.0.1:99999", says: []string{"99999"}}, {value: "127.0.0.1:http-or-so"}, {value: silent, says: []string{silent, "taken"}},
			{value: "192.0.2.1:80", says: []string{"192.0.2.1"}}, {value: "none.invalid:80"},
		},
		"store": {
			{value: ""}, {value: "sqlite"}, {value: "sqlite:", says: []string{"shard 0", "missing"}},
			{value: "postgres:x", says: []string{`"postgres"`, "sqlite:PATH", "mysql:DSN"}},
			{value: "app:" + password + "@tcp(" + closed + ")/kith", says: []string{"sqlite:PATH", "mysql:DSN"}},
			{value: "sqlite:" + filepath.Join(folder, "a.db") + ";", says: []string{"shard 1", "missing"}},
			{value: "sqlite:" + filepath.Join(noDatabase, "kith.db"), says: []string{noDatabase, "not a directory"}},
			{value: "sqlite:/proc/none/kith.db", says: []string{"/proc/none"}}, {value: "sqlite:" + folder, says: []string{folder}},
			{value: "sqlite:" + noDatabase, says: []string{noDatabase, "not a database"}}, {value: "sqlite:/dev/null"}, {value: "sqlite:" + pipe}, {value: "sqlite:" + gone, says: []string{gone, "no such file"}},
			{value: "sqlite:" + readOnlySQLite(t), says: []string{"shard 0", "readonly"}},
			{value: "sqlite:" + readOnlySQLite(t), with: []string{"--demo"}, says: []string{"shard 0", "readonly"}},
			{value: mysql + closed + ")/kith", says: []string{closed + "/kith", "connection refused"}},
			{value: "mysql:app@tcp(" + closed + ")/a;app@tcp(" + closed + ")/b", says: []string{"shard 0", closed + "/a", "shard 1", closed + "/b"}},
			{value: mysql + silent + ")/kith", says: []string{silent + "/kith", "no answer within 4s"}},
			{value: mysql + silent + ")/kith", with: []string{"--statement-timeout=1m"}, says: []string{"no answer within 4s"}},
			{value: mysql + "none.invalid:3306)/kith", says: []string{"none.invalid:3306"}}, {value: mysql + closed + ")/", says: []string{"names no database"}},
			{value: mysql + closed + ")", says: []string{"invalid DSN"}}, {value: "mysql:app:" + password + "/kith", says: []string{"address is missing"}},
			{value: "mysql://app:" + password + "@" + closed + "/kith", says: []string{"user:password@tcp(host:port)/database"}},
		},
		"redis": {
			{value: "localhost", says: []string{"host:port"}},
			{value: "redis:/x", says: []string{"host:port"}}, {value: "http://app:" + password + "@" + closed, says: []string{"redis://"}},
			{value: ":" + password + "@" + closed, says: []string{"redis://"}}, {value: ","},
			{value: "redis://:" + password + "#1@" + closed, says: []string{"%23"}}, {value: "redis://:12#" + password + "@" + closed, says: []string{"%23"}},
			{value: "redis://:" + password + "/1@" + closed, says: []string{"%2F"}}, {value: "redis://:" + password + "%@" + closed, says: []string{"%25"}},
			{value: "redis://:12?" + password + "@" + closed, says: []string{"%3F"}}, {value: redis + closed + "?pool_size=9", says: []string{"other options than db"}},
			{value: redis + closed + "," + silent + "/1", says: []string{"no database but 0"}},
		},
		"serve redis": {{value: "redis://" + testenv.Redis(t, "--rename-command", "SET", "").Addr(), says: []string{"it is a Sentinel: name the master"}}},
		"redundancy": {
			{value: "raid", says: []string{`"raid"`, `"sync","stream","binlog"`}}, {value: "binlog", says: []string{"SQLite has no binlog"}},
			{value: "stream", says: []string{"--redis"}},
		},
		"feed": {
			{value: "push", says: []string{"push", "--redis"}}, {value: "hybrid", says: []string{"hybrid", "--redis"}},
		},
		"config": {
			{value: filepath.Join(folder, "absent"), says: []string{"no such file"}}, {value: folder, says: []string{folder}}, {value: pipe, says: []string{pipe}},
			{value: file("stor.yaml", "stor: x\n"), says: []string{"did you mean store?"}}, {value: file("nest.yaml", "store:\n  a: b\n"), says: []string{"store: it is a value"}},
			{value: file("self.yaml", "config: a.yaml\n"), says: []string{"does not name another"}},
			{value: file("no.yaml", "store: [\n"), says: []string{"line 1"}}, {value: file("long.yaml", strings.Repeat("#", 1<<16+1)), says: []string{"65536 bytes"}},
		},
		"without":     {{value: "feeds", says: []string{`"feeds"`, "accounts and posts"}}, {value: "posts,federation"}, {value: "operators"}},
		"type-prefix": {{value: "kith", says: []string{"capital letter"}}, {value: "_K"}, {value: "K-"}, {value: "K" + strings.Repeat("x", 40)}},
		"relations": {
			{value: filepath.Join(folder, "absent"), says: []string{"no such file"}}, {value: folder, says: []string{folder}}, {value: pipe, says: []string{pipe}},
			{value: file("attributes", "attributes:\n  user:\n    a: {typ: Int}\n"), says: []string{"line 3"}},
			{value: file("huge", strings.Repeat("#", 1<<16+1)), says: []string{"65536 bytes"}},
			{value: file("handles", "reservedHandles:\n  - admin\n  - no handle\n"), says: []string{"reservedHandles", `"no handle"`}},
		},
		"import user":     {{value: "nobody_at_all", says: []string{"nobody_at_all", "no such user"}}, {value: "", with: []string{"--accounts=lists"}, names: "accounts", says: []string{"--user"}}, {value: "maya_okafor", with: []string{"--relation=blocking"}, names: "relation"}},
		"import accounts": {{value: "lists", says: []string{"--user"}}},
		"only-trusted":    {{value: "maybe", says: []string{`"maybe"`, `"log"`}}, {value: "on", says: []string{"--trusted-documents"}}},
		"trusted-documents": {
			{value: filepath.Join(folder, "absent"), says: []string{"no such file"}}, {value: t.TempDir(), says: []string{"no documents"}},
			{value: noKeys, says: []string{"no documents"}},
		},
		"jwt-secret": {{value: "short", says: []string{"32 bytes"}}, {value: password + strings.Repeat("-", 31-len(password))}, {value: strings.Repeat("0", 64), says: []string{"can be guessed", "openssl rand -hex 32"}}},
		"jwt-secret-file": {
			{value: filepath.Join(folder, "absent"), says: []string{"no such file"}}, {value: folder, says: []string{folder}}, {value: pipe, says: []string{pipe}},
			{value: file("short", password+"\n"), says: []string{"32 bytes"}}, {value: file("guessable", strings.Repeat(password, 4)), says: []string{"can be guessed"}}, {value: file("none", "\n\n"), says: []string{"no secret"}}, {value: noDatabase, says: []string{"4096 bytes"}},
			{value: file("three", strings.Repeat(strings.Repeat(password, 4)+"\n", 3)), says: []string{"3 secrets"}},
			{value: file("good", strings.Repeat(password, 4)), with: []string{"--jwt-secret=" + strings.Repeat(password, 4)}, says: []string{"choose one"}},
		},
		"identity": {
			{value: filepath.Join(folder, "absent"), says: []string{"no such file"}}, {value: folder, says: []string{folder}}, {value: pipe, says: []string{pipe}},
			{value: noKeys, says: []string{"no list of issuers"}}, {value: file("none.json", "[]"), says: []string{"0 issuers"}}, {value: noDatabase, says: []string{"no list of issuers"}},
			{value: file("open.json", `[{"issuer": "a", "jwks": "http://`+closed+`/jwks"}]`), says: []string{"issuer 1", "audience"}},
			{value: file("two.json", strings.Replace(`[X, X]`, "X", `{"issuer": "a", "jwks": "http://`+closed+`/jwks", "audience": ["kith"], "subjects": "mapped"}`, 2)), says: []string{`"a"`, "twice"}},
			{value: file("beside.json", strings.Replace(`[X, X]`, "X", `{"issuer": "a", "jwks": "http://`+closed+`/jwks", "audience": ["kith"]}`, 2)), says: []string{"lacks subjects"}},
			{value: file("app.json", `[{"issuer": "http://login.example.org/", "jwks": "http://`+closed+`/jwks", "audience": ["kith"], "app": {"clientId": "a"}}]`), says: []string{"issuer 1", "https"}},
			{value: keysOf(noKeys), says: []string{noKeys}}, {value: keysOf(noDatabase), says: []string{noDatabase}}, {value: keysOf(filepath.Join(folder, "absent")), says: []string{"no such file"}},
			{value: keysOf(folder), says: []string{folder}}, {value: keysOf(pipe), says: []string{pipe}},
			{value: keysOf("http://" + closed + "/jwks"), says: []string{closed, "connection refused"}},
			{value: keysOf("http://" + silent + "/jwks"), says: []string{silent}}, {value: keysOf(wanting.URL), says: []string{"404"}},
			{value: keysOf("https://none.invalid/jwks"), says: []string{"none.invalid"}}, {value: keysOf("ftp://x/jwks"), says: []string{"issuer 1"}}, {value: keysOf("https://"), says: []string{"issuer 1"}},
			{value: keysOf(strings.Replace(wanting.URL, "http", "https", 1))},
		},
		"skip": {{value: "nonsense", with: []string{"--store=mysql:x@tcp(" + closed + ")/kith", "--redundancy=binlog"}}},

		"reconcile realtime admin-addr": {{value: silent, says: []string{"taken"}}, {value: "127.0.0.1:99999"}, {value: "192.0.2.1:80"}},
		"max-load":                      {{value: "1.5"}, {value: "0"}},
	}
}

// readOnlySQLite is the file of a store that SQLite can read but not write, whatever the file's permissions.
// Its header says that only a later version may write it.
func readOnlySQLite(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kith.db")
	kithtest.Ends(t, 0, kithtest.Args("migrate", "--store=sqlite:"+path))
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	must.OK(t, err)
	defer file.Close()
	_, err = file.WriteAt([]byte{3}, 18)
	must.OK(t, err)
	return path
}

// TestReadOnlyServer: the tables are right, but cannot be written.
func TestReadOnlyServer(t *testing.T) {
	testenv.NotOn(t, "it cannot be made read-only", "tidb")
	t.Parallel()
	server := testenv.MariaDB(t)
	dsn := server.CreateDatabase(t, "kith")
	kithtest.Ends(t, 0, kithtest.Args("migrate", "--store=mysql:"+dsn))
	for user, rights := range map[string]string{"reader": "SELECT", "writer": "ALL"} {
		server.Exec(t, "CREATE USER "+user+" IDENTIFIED BY '"+password+"'")
		server.Exec(t, "GRANT "+rights+" ON kith.* TO "+user)
	}
	start := func(user, says string) {
		t.Helper()
		end := kithtest.Run(t, kithtest.Args("serve", "--addr=127.0.0.1:0", "--store=mysql:"+user+":"+password+"@tcp("+server.Addr()+")/kith"))
		refused(t, end, "--store (KITH_STORE): ", "shard 0", server.Addr()+"/kith", says)
	}
	start("reader", "denied")
	server.Exec(t, "SET GLOBAL read_only = 1")
	start("writer", "read-only")
	end := kithtest.Run(t, kithtest.Args("reconcile", "full", "--window=1ms", "--store=mysql:writer:"+password+"@tcp("+server.Addr()+")/kith"))
	if end.Code != 1 || !strings.Contains(end.Stdout, "compared") || !strings.Contains(end.Stderr, "the end of the scan is not recorded") {
		t.Errorf("kith reconcile full: exit code %d, %q, %q", end.Code, end.Stdout, end.Stderr)
	}
}

// ofDoctor returns the flags that only `kith doctor`, or `kith agree`, has. They also take those of serve.
func ofDoctor(root, command *kong.Node) []*kong.Flag {
	return slices.DeleteFunc(slices.Clone(command.Flags), func(f *kong.Flag) bool {
		return slices.ContainsFunc(root.DefaultCmd.Flags, func(other *kong.Flag) bool { return other.Name == f.Name })
	})
}
