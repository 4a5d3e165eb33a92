package cli

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

	"github.com/alecthomas/kong"

	"kith/internal/check"
	"kith/internal/must"
)

// ran is what a command prints.
func ran(t *testing.T, args ...string) (code int, out, complaints string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// done runs a command that has to end well.
func done(t *testing.T, args ...string) {
	t.Helper()
	code, _, complaints := ran(t, args...)
	must.That(t, code == 0, "kith %v ends with %d: %s", args, code, complaints)
}

var flagInHelp = regexp.MustCompile(`(?m)^ +(?:-\w, +)?--(?:\[no-\])?([a-z0-9-]+)[ =\n]`)

// flagsIn are the flags that a help shows, without those that show something and end.
func flagsIn(help string) (names []string) {
	for _, m := range flagInHelp.FindAllStringSubmatch(help, -1) {
		if name := m[1]; !slices.Contains([]string{"help", "help-all", "version"}, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// The help of serve shows what most need, and --help-all the rest, but no setting of the store.
func TestHelpShowsFewFlags(t *testing.T) {
	const shown, inAll = 15, 40
	_, help, _ := ran(t, "serve", "--help")
	names := flagsIn(help)
	check.Equal(t, fmt.Sprint("flags of the help: ", names), len(names), shown)
	_, help, _ = ran(t, "serve", "--help-all")
	names = flagsIn(help)
	check.Most(t, fmt.Sprint("flags of --help-all: ", names), len(names), inAll)
	_, ofStore := new(StoreSettings).storeFlags()
	for name := range ofStore {
		check.That(t, !slices.Contains(names, name), "--%s is a setting of the store", name)
	}
	for _, args := range [][]string{{"schema"}, {"version"}, {"completion", "bash"}, {"migrate"}} {
		for _, flag := range []string{"--help", "--help-all"} {
			code, help, _ := ran(t, append(args, flag)...)
			check.That(t, code == 0 && strings.HasPrefix(help, "Usage: kith "+strings.Join(args, " ")), "%v %s: %d %.100s", args, flag, code, help)
		}
	}
}

// Variables of another spelling are warned of, those of Kubernetes are not.
func TestUnknownVariables(t *testing.T) {
	for name, value := range map[string]string{"KITH_STOR": "x", "KITH_ZEBRA": "x", "KITH_PORT": "tcp://10.0.0.1:80", "KITH_PORT_80_TCP_ADDR": "10.0.0.1", "KITH_SERVICE_HOST": "10.0.0.1", "KITH_APP_SERVICE_PORT_HTTP": "80"} {
		t.Setenv(name, value)
	}
	code, _, complaints := ran(t, "migrate", "--store=sqlite:"+filepath.Join(t.TempDir(), "kith.db"))
	lines := strings.Split(strings.TrimSpace(complaints), "\n")
	slices.Sort(lines)
	want := []string{"kith: warning: KITH_STOR is not a setting: did you mean KITH_STORE?", "kith: warning: KITH_ZEBRA is not a setting"}
	check.That(t, code == 0 && slices.Equal(lines, want), "%d %q", code, lines)
}

// A file sets what flags set, unless a flag or a variable does. Sizes and durations have units.
func TestConfigFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kith.yaml")
	err := os.WriteFile(file, []byte(`
store: sqlite:of/the/file.db
shard-conns: 7
max-cost: 5000 # the flag below wins
max-body: 1.5MiB
cache-bytes: 0
drain: 1d
stop-delay: 90s
cors-origin: [https://a.example, https://b.example]
replicate: false
friend-request-ttl: 30d
`), 0o600)
	must.OK(t, err)
	read := func(args ...string) *Program {
		var p Program
		parser := kong.Must(&p, Vars, bounded, configured, days)
		k, err := parser.Parse(args)
		must.OK(t, err)
		p.noteTold(k)
		return &p
	}
	t.Setenv("KITH_SHARD_CONNS", "9")
	p := read("serve", "--config", file, "--max-cost=6000")
	s := p.Serve
	if p.Store != "sqlite:of/the/file.db" || p.ShardConns != 9 || s.MaxCost != 6000 || s.MaxBody != 3<<19 || s.CacheBytes == nil || *s.CacheBytes != 0 ||
		s.Drain != 24*time.Hour || s.StopDelay != 90*time.Second || !slices.Equal(s.CORSOrigin, []string{"https://a.example", "https://b.example"}) || s.Replicate {
		t.Errorf("%+v", p)
	}
	check.That(t, len(p.told) == 1 && p.told["friend-request-ttl"] == "720h", "told %v", p.told)
	t.Setenv("KITH_CONFIG", file)
	check.Equal(t, "by the variable", read("migrate").Store, "sqlite:of/the/file.db")
	check.Equal(t, "beside a flag", read("migrate", "--store=sqlite:x").Store, "sqlite:x")
}

// An empty variable sets nothing: neither over the file, nor over the store. Only that of the store must say something.
func TestEmptyVariablesSetNothing(t *testing.T) {
	for _, f := range settingsOf(kong.Must(new(Program), Vars).Model.Node) {
		t.Setenv(f.Envs[0], "")
	}
	code, _, complaints := ran(t, "migrate")
	check.That(t, code != 0 && strings.Contains(complaints, "--store"), "an empty store: %d, %s", code, complaints)
	must.OK(t, os.Unsetenv("KITH_STORE")) // Setenv restores it
	file := filepath.Join(t.TempDir(), "kith.yaml")
	must.OK(t, os.WriteFile(file, []byte("store: sqlite:"+filepath.Join(t.TempDir(), "kith.db")), 0o600))
	done(t, "migrate", "--config", file)
	done(t, "settings", "set", "--config", file, "suggest=3,1")
	done(t, "doctor", "--config", file)
	done(t, "export", "--config", file, t.TempDir())
}

// Settings of the store have one spelling, whatever they were told as.
func TestStoreSettingsAreWrittenInOneWay(t *testing.T) {
	for _, c := range []struct{ name, told, want string }{
		{"friend-request-ttl", "30d", "720h"}, {"friend-request-pause", "90m", "1h30m"}, {"friend-request-pause", "10s", "10s"}, {"friend-request-pause", "1h0m10s", "1h0m10s"},
		{"redis-cache", "no", "false"}, {"suggest", "3,1,2", "3,1,2"}, {"max-following", "007", "7"}, {"feed", "push", "push"},
	} {
		s, err := readStoreSettings(map[string]string{c.name: c.told})
		if err != nil {
			t.Errorf("%s=%s: %v", c.name, c.told, err)
			continue
		}
		_, flags := s.storeFlags()
		check.Equal(t, c.name+"="+c.told, written(flags[c.name]), c.want)
	}
}

// TestWrongVariablesOfTracesAreNoFailure: the same start fails again, as with a setting of Kith's own.
func TestWrongVariablesOfTracesAreNoFailure(t *testing.T) {
	for name, value := range map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/missing", "OTEL_TRACES_SAMPLER": "half"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv(name, value)
			code, _, complaints := ran(t, "serve", "--addr=127.0.0.1:0", "--store=sqlite:"+filepath.Join(t.TempDir(), "kith.db"))
			check.That(t, code == 78 && strings.Contains(complaints, name), "code %d: %s", code, complaints)
		})
	}
}
