package examples_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

const clientFolder = "../web/client"

// What web/client knows of the schema is what make generate writes.
func TestClientKnowsTheSchema(t *testing.T) {
	generate := exec.CommandContext(t.Context(), "go", "run", "../internal/generate/client")
	generate.Stdin = strings.NewReader(kithtest.Run(t, kithtest.Args("schema")).Stdout)
	want, err := generate.Output()
	must.OK(t, err)
	got, err := os.ReadFile(filepath.Join(clientFolder, "schema.js"))
	if err != nil || string(got) != string(want) || !strings.Contains(string(got), `"FollowEdge",`) {
		t.Errorf("web/client/schema.js is not of this schema (%v): run make generate", err)
	}
}

// The package as a release has it: installed into an empty folder, its types fit those of the libraries, and it does what it says.
func TestClientPackage(t *testing.T) {
	testenv.Clients(t)
	folders := []string{"relay", "apollo", "urql", "subscriptions"}
	for _, folder := range folders {
		testenv.NPM(t, folder)
	}
	at := t.TempDir()
	for _, name := range []string{"page.ts", "tsconfig.json"} {
		text := must.File(t, filepath.Join("testdata/client", name))
		write(t, filepath.Join(at, name), text)
	}
	write(t, filepath.Join(at, "package.json"), []byte(`{"type": "module", "private": true}`))
	runIn(t, "..", "scripts/pack.sh", "1.2.3", at)
	runIn(t, at, "npm", "install", "--offline", "--no-audit", "--no-fund", "./kith-client-1.2.3.tgz")

	installed := filepath.Join(at, "node_modules/@kith/client")
	var files []string
	for _, file := range dirNames(t, installed) {
		files = append(files, file.Name())
	}
	want := []string{"LICENSE", "README.md", "cache.js", "copy.js", "index.d.ts", "index.js", "optimistic.js", "package.json", "schema.graphql", "schema.js", "session.js", "subscriptions.js"}
	check.That(t, slices.Equal(files, want), "the package has %v, want %v", files, want)
	schema, err := os.ReadFile(filepath.Join(installed, "schema.graphql"))
	released, _ := os.ReadFile("../graph/sdl/released.graphql")
	check.That(t, err == nil && len(released) != 0 && string(schema) == string(released), "schema.graphql is not that of the release: %v", err)

	// The libraries are those of the recipes.
	for name, folder := range map[string]string{"@apollo/client": "apollo", "@urql/exchange-graphcache": "urql", "@urql/core": "urql", "graphql-sse": "subscriptions", "graphql-ws": "subscriptions", "@types/node": "relay"} {
		from, err := filepath.Abs(filepath.Join(folder, "node_modules", name))
		must.OK(t, err)
		to := filepath.Join(at, "node_modules", name)
		must.OK(t, os.MkdirAll(filepath.Dir(to), 0o755))
		must.OK(t, os.Symlink(from, to))
	}
	compiler, err := filepath.Abs("relay/node_modules/.bin/tsc")
	must.OK(t, err)
	runIn(t, at, compiler)

	kith := start(t)
	p := kith.person(t, "packed")
	page := exec.CommandContext(t.Context(), "node", "page.js", kith.URL+"/graphql", p.handle, password, demo(300))
	page.Dir, page.Env, page.Stderr = at, append(os.Environ(), "KITH_TOKEN="+token(t, p.id, -time.Minute)), os.Stderr
	out, err := page.Output()
	must.OK(t, err)
	checkPage(t, p, out)
}

// checkPage checks what testdata/client/page.ts has printed.
func checkPage(t *testing.T, p user, out []byte) {
	t.Helper()
	var got map[string]any
	err := json.Unmarshal(out, &got)
	must.That(t, err == nil, "%v: %s", err, out)
	types := must.File(t, filepath.Join(clientFolder, "index.d.ts"))
	var declared []any
	for _, m := range regexp.MustCompile(`(?m)^export (?:const|function) (\w+)`).FindAllSubmatch(types, -1) {
		declared = append(declared, string(m[1]))
	}
	slices.SortFunc(declared, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	for name, want := range map[string]any{
		"exports":          declared,
		"signIns":          1.0,
		"handles":          []any{p.handle, p.handle, p.handle, p.handle, p.handle},
		"changed":          true,
		"code":             "BAD_USER_INPUT",
		"refusedLogin":     "UNAUTHENTICATED",
		"proxied":          []any{"The gateway has not answered: HTTP 502.", "The gateway has not answered: HTTP 502."},
		"halfAMinuteLater": nil,
		"renewed":          true,
		"extended":         true,
		"told":             2.0, // the new token, and the end
		"last":             nil,
		"headers":          map[string]any{},
		"closed":           []any{nil, "UNAUTHENTICATED"},
		"unable":           []any{nil, "UNAUTHENTICATED", 1.0},
		"anonymous":        map[string]any{"viewer": nil},
		"apollo":           true,
		"attempts":         []any{true, true, false},
		"friends":          []any{[]any{0.0, 0.0}, []any{0.0, 0.0}, nil, nil, []any{0.0, 0.0}, nil, nil},
		"during":           []any{[]any{"3", "3"}, []any{"2,3", "2,3"}, []any{"2,3", nil}, []any{"EVERYTHING", "EVERYTHING"}, []any{4.0, 4.0}},
		"shown":            []any{[]any{following + 1.0, true}, []any{following + 0.0, false}, []any{following + 1.0, true}},
		"urls":             []any{strings.Replace(p.kith.URL, "http", "ws", 1) + "/graphql", p.kith.URL + "/graphql"},
	} {
		check.Equal(t, name, fmt.Sprint(got[name]), fmt.Sprint(want))
	}
	waits, _ := got["waits"].([]any)
	for i, bounds := range [][2]float64{{2_000, 4_000}, {15_000, 30_000}, {2_000, 4_000}, {15_000, 30_000}} {
		wait, _ := waits[i].(float64)
		check.That(t, wait >= bounds[0] && wait <= bounds[1], "wait %d is %v ms, want between %v", i, waits[i], bounds)
	}
	written, _ := got["written"].(string)
	if longest, _ := got["longest"].(float64); written == "" || longest < 2_000 || longest > 3_000 {
		t.Errorf("the first write has the token %q, and after 80 more %v characters are sent, want up to 3,000", written, longest)
	}
}

func runIn(t *testing.T, folder, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	must.That(t, err == nil, "%s %v: %v: %s", program, args, err, out)
}

func dirNames(t *testing.T, folder string) []os.DirEntry {
	t.Helper()
	list, err := os.ReadDir(folder)
	must.OK(t, err)
	return list
}
