package program_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
)

// TestVersion asks for the version with settings that cannot be read, and checks which files it leaves.
func TestVersion(t *testing.T) {
	t.Parallel()
	want := fmt.Sprintf("kith devel (commit unknown, %s, %s/%s)\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	unreadable := kithtest.Env("KITH_STORE=nowhere", "KITH_REDIS=:", "KITH_LOG_LEVEL=loud", "KITH_MAX_COST=much")
	for _, args := range []string{"version", "--version", "serve --version", "import --version none.txt"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			end := kithtest.Run(t, kithtest.Dir(folder), unreadable, kithtest.Args(strings.Fields(args)...))
			check.Equal(t, args, []any{end.Code, end.Stdout, end.Stderr}, []any{0, want, ""})
			left, err := os.ReadDir(folder)
			check.That(t, err == nil && len(left) == 0, "it has left %v: %v", left, err)
		})
	}
	t.Run("with too much", func(t *testing.T) {
		t.Parallel()
		refused(t, kithtest.Run(t, kithtest.Args("version", "please")), "unexpected argument please")
	})
}

// The program and a gateway report the same version.
func TestMetricsAndSchemaAreOfTheBuild(t *testing.T) {
	t.Parallel()
	gateway := kithtest.Start(t)
	_, schema := gateway.Get(t, "/schema.graphql")
	end := kithtest.Run(t, kithtest.Dir(t.TempDir()), kithtest.Env("KITH_STORE=nowhere", "KITH_MAX_COST=much"), kithtest.Args("schema"))
	if end.Code != 0 || end.Stderr != "" || end.Stdout != schema || !strings.Contains(schema, "\ntype User implements Node ") {
		t.Errorf("kith schema ends with %d and %q, and is not what the gateway has at /schema.graphql", end.Code, end.Stderr)
	}
	end = kithtest.Run(t, kithtest.Env("KITH_STORE=nowhere"), kithtest.Args("schema", "--federation"))
	if end.Code != 0 || end.Stderr != "" || !strings.Contains(end.Stdout, "\ntype User implements Node @key(") {
		t.Errorf("kith schema --federation ends with %d and %q, and has no keys", end.Code, end.Stderr)
	}
	metrics := gateway.Metrics(t)
	want := fmt.Sprintf(`kith_build_info{goversion=%q,revision="unknown",version="devel"} 1`, runtime.Version())
	check.Has(t, "/metrics", "\n"+metrics, "\n"+want+"\n")
}
