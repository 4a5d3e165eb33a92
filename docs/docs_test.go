// Package docs_test compares the documents with the program.
package docs_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/accounts"
	"kith/cli"
	"kith/cluster"
	"kith/gateway"
	"kith/gateway/exchange"
	"kith/gateway/trusted"
	"kith/graph/fields"
	"kith/graph/limits"
	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/reconcile"
	"kith/replication"
	"kith/replication/stream"
	"kith/storage/cache/localcache"
	"kith/storage/cache/rediscache"
	"kith/storage/events"
	"kith/storage/feed/inbox"
	"kith/storage/feed/recent"
	"kith/storage/sqlstore"
)

const root = ".."

// pages are the paths of all documents, from the root.
func pages(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(root, "*.md"))
	must.OK(t, err)
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			list = append(list, path)
		}
		return err
	})
	must.That(t, err == nil && len(list) >= 10, "only %v: %v", list, err)
	return list
}

func read(t *testing.T, path string) string { return string(must.File(t, path)) }

// submatches returns the first group of every match.
func submatches(pattern, text string) []string {
	var list []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// Every link inside the repository leads to a file, and to a heading if it names one.
func TestLinksLeadSomewhere(t *testing.T) {
	results, err := filepath.Glob(filepath.Join(root, "bench", "results", "*.md"))
	must.That(t, err == nil && len(results) > 0, "%v, %v", results, err)
	others := append(results, filepath.Join(root, "bench", "README.md"), filepath.Join(root, "deploy", "README.md"), filepath.Join(root, "web", "client", "README.md"))
	for _, page := range slices.Concat(pages(t), others) {
		for _, link := range submatches(`\]\(([^)\s]+)\)`, read(t, page)) {
			if strings.Contains(link, "://") {
				continue
			}
			path, heading, named := strings.Cut(link, "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(path))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: %v", page, link, err)
			} else if named && !slices.Contains(headings(read(t, target)), heading) {
				t.Errorf("%s: link to %s: no such heading", page, link)
			}
		}
	}
}

// headings are the anchors that GitHub makes.
func headings(text string) []string {
	var list []string
	for _, h := range submatches(`(?m)^#+ (.+)$`, text) {
		h = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(h), "")
		list = append(list, strings.ReplaceAll(h, " ", "-"))
	}
	return list
}

// The README's queries give the README's answers on the demo graph, one after another, with the
// demo's token.
func TestReadmeQueriesHaveTheirAnswers(t *testing.T) {
	readme := read(t, filepath.Join(root, "README.md"))
	queries := submatches("(?s)```graphql\n(.*?)```", readme)
	answers := submatches("(?s)```json\n(.*?)```", readme)
	must.That(t, len(queries) == 3 && len(answers) == len(queries), "%d queries, %d answers", len(queries), len(answers))
	g := kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1)))
	for i, query := range queries {
		comparePrinted(t, "README.md", answers[i], askAsDemo(t, g, query))
	}
}

// fenced is a block of a page: its language and its text.
var fenced = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// elsewhere are the answers that do not stand below a query in GraphQL, by something that is in them: what tests them instead.
var elsewhere = map[string]string{
	`"name": "Ada Lovelace"`: "TestTutorial, on the tutorial's own graph",
	`"estimated": 87`:        "TestPrintedCost: most of it is left out",
	`data: {"data"`:          "TestPrintedEvent",
	`"type":"kith.follows"`:  "files/changes' TestEveryKindOfChangeIsTold",
	`"users": [null, {`:      "a shard has to fail: resolvers' TestNothingGoesOnRunningForARequestThatGaveUp and gateway's TestErrorCodes",
}

// Each answer that stands below its query on a page is the answer on the demo graph, to one after another. Each other one
// has a test elsewhere.
func TestPrintedAnswers(t *testing.T) {
	g := kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1)))
	known := maps.Clone(elsewhere)
	for _, page := range pages(t) {
		if page == filepath.Join(root, "README.md") {
			continue // see the test of it
		}
		left, query := strings.Count(read(t, page), `"data"`), ""
		for _, block := range fenced.FindAllStringSubmatch(read(t, page), -1) {
			language, text := block[1], block[2]
			if language == "json" && query != "" && strings.Contains(text, `"data"`) {
				left--
				comparePrinted(t, page, text, askAsDemo(t, g, query))
			}
			if query = ""; language == "graphql" {
				query = text
			}
			for part := range known {
				if strings.Contains(text, part) {
					left--
					delete(known, part)
				}
			}
		}
		check.That(t, left == 0, "%s: %d answers have no test", page, left)
	}
	check.That(t, len(known) == 0, "not there: %v", known)
}

func comparePrinted(t *testing.T, page, printed string, answer []byte) {
	t.Helper()
	var want, got map[string]any
	err := errors.Join(json.Unmarshal([]byte(printed), &want), json.Unmarshal(answer, &got))
	must.That(t, err == nil, "%s: %v", page, err)
	opaque(t, want["extensions"], got["extensions"])
	check.That(t, reflect.DeepEqual(got, want), "%s: the answer is now\n%v\nthe page has\n%v", page, got, want)
}

// The example of docs/reference/limits.md costs what the page says, and the answer has it where the page says.
func TestPrintedCost(t *testing.T) {
	page := read(t, "reference/limits.md")
	g := kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1)))
	var got map[string]any
	must.OK(t, json.Unmarshal(askAsDemo(t, g, submatches("For example, `(.*?)` costs", page)[0], "Kith-Cost", "1"), &got))
	got["data"] = nil
	text, err := json.Marshal(got)
	must.OK(t, err)
	comparePrinted(t, "reference/limits.md", strings.Replace(submatches("(?m)^(.*\"estimated\".*)$", page)[0], "…", "null", 1), text)
}

// The subscription of docs/reference/api.md shows the event of the page when the demo user follows.
func TestPrintedEvent(t *testing.T) {
	page := read(t, "reference/api.md")
	g := kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1)))
	want := submatches("(?m)^(data: .*)$", page)[0]
	ask := submatches(`(?s)event-stream'.*?-d '(.*?)'`, page)[0]
	response := postAsDemo(t, g, []byte(ask), "Accept", "text/event-stream")
	defer response.Body.Close()
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for stream := bufio.NewScanner(response.Body); stream.Scan(); {
			lines <- stream.Text()
		}
	}()
	began := time.Now()
	for tries := 0; time.Since(began) < time.Minute; {
		select {
		case line, open := <-lines:
			if line == want {
				return
			} else if !open {
				t.Fatal("the stream has ended")
			}
		case <-time.After(100 * time.Millisecond): // what changes before the subscription has begun is not shown
			askAsDemo(t, g, "mutation { "+[]string{"follow", "unfollow"}[tries%2]+"(userId: 1283) { changed } }")
			tries++
		}
	}
	t.Errorf("no event is %s", want)
}

// askAsDemo asks as user 1.
func askAsDemo(t *testing.T, g *kithtest.Gateway, query string, headers ...string) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	must.OK(t, err)
	response := postAsDemo(t, g, body, headers...)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must.OK(t, err)
	return answer
}

func postAsDemo(t *testing.T, g *kithtest.Gateway, body []byte, headers ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.URL+"/graphql", bytes.NewReader(body))
	must.OK(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+g.DemoToken(t))
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	must.OK(t, err)
	return response
}

// opaque makes the consistency tokens of two answers equal, because each write has a different one.
func opaque(t *testing.T, want, got any) {
	t.Helper()
	w, _ := want.(map[string]any)
	g, _ := got.(map[string]any)
	if w["consistencyToken"] != nil && g["consistencyToken"] != nil {
		_, err := base64.RawURLEncoding.DecodeString(w["consistencyToken"].(string))
		check.That(t, err == nil, "%v: %v", w["consistencyToken"], err)
		g["consistencyToken"] = w["consistencyToken"]
	}
}

// docs/reference/api.md lists all error codes, and no others.
func TestErrorCodesAreDocumented(t *testing.T) {
	want := submatches(`Code = "(\w+)"`, regexp.MustCompile(" +").ReplaceAllString(read(t, filepath.Join(root, "graph/apierr/apierr.go")), " "))
	got := submatches("(?m)^\\| `([A-Z_]+)` \\|", read(t, "reference/api.md"))
	check.That(t, slices.Equal(got, want) && len(want) >= 10, "documented %v, the program has %v", got, want)
}

// metric is what the program says of a metric.
type metric struct {
	name, kind, help string
	labels           []string
}

// metrics are all metrics of Kith's own, in the order of their parts.
func metrics(t *testing.T) []metric {
	t.Helper()
	var r registered
	cli.NewMetrics(&r)
	exchange.NewMetrics(&r)
	pages := gateway.Config{Gatherer: prometheus.NewRegistry()}.Admin(t.Context()).Metrics
	r.MustRegister(pages.(prometheus.Gatherers)[1].(prometheus.Collector))
	accounts.NewMetrics(&r)
	sqlstore.NewMetrics(&r)
	cluster.NewMetrics(&r)
	events.NewMetrics(&r)
	replication.NewSynchronous(nil, nil, &r, nil).Close()
	stream.NewMetrics(&r)
	replication.NewMetrics(&r)
	reconcile.NewMetrics(&r)
	reconcile.NewWatch(reconcile.WatchConfig{Metrics: &r})
	reconcile.NewRuns(&r, nil)
	rediscache.New(nil, nil, nil, &r)
	localcache.NewMetrics(&r)
	(&recent.Follower{}).Register(&r)
	inbox.New(inbox.Config{Recent: recent.New(0, time.Now)}, &r)
	(*trusted.Documents)(nil).Register(&r)
	return r.metrics
}

// Every constructor of metrics is used in the test above.
func TestAllMetricsAreLookedAt(t *testing.T) {
	test := read(t, "docs_test.go")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "node_modules":
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && strings.Contains(read(t, path), "\nfunc NewMetrics(") {
			call := filepath.Base(filepath.Dir(path)) + ".NewMetrics(&r)"
			check.That(t, strings.Contains(test, call), "%s: no %s in the test", path, call)
		}
		return nil
	})
	must.OK(t, err)
}

// registered collects the descriptions of metrics instead of the metrics.
type registered struct {
	prometheus.Registerer
	metrics []metric
}

var description = regexp.MustCompile(`fqName: ("\w+"), help: (".*"), unit: .*variableLabels: \{([^}]*)\}`)

func (r *registered) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		descriptions := make(chan *prometheus.Desc, 10)
		c.Describe(descriptions)
		close(descriptions)
		for d := range descriptions {
			said := description.FindStringSubmatch(d.String())
			m := metric{kind: "gauge"}
			name, bad := strconv.Unquote(said[1])
			help, worse := strconv.Unquote(said[2])
			if m.name, m.help = name, help; bad != nil || worse != nil {
				panic(d.String())
			}
			if said[3] != "" {
				m.labels = strings.Split(said[3], ",")
			}
			switch { // a test compares with what a gateway serves
			case strings.Contains(strings.ToLower(fmt.Sprintf("%T", c)), "histogram"):
				m.kind = "histogram"
			case strings.HasSuffix(m.name, "_total"):
				m.kind = "counter"
			}
			r.metrics = append(r.metrics, m)
		}
	}
}

// The types of metrics in docs/reference/metrics.md are those that a gateway serves.
func TestTypesOfMetrics(t *testing.T) {
	_, served := kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1))).Get(t, "/metrics")
	compared := 0
	for _, m := range metrics(t) {
		if said := submatches(`(?m)^# TYPE `+m.name+` (\w+)$`, served); len(said) > 0 {
			if compared++; said[0] != m.kind {
				t.Errorf("%s is a %s, not a %s", m.name, said[0], m.kind)
			}
		}
	}
	check.That(t, compared >= 40, "%d metrics compared", compared)
}

// docs/reference/guarantees.md names the times for which caches keep what no event reports, and how late an answer may be.
func TestTimesOfGuarantees(t *testing.T) {
	page := regexp.MustCompile(`<!--[\w,]+-->`).ReplaceAllString(read(t, "reference/guarantees.md"), "")
	for _, c := range []struct{ file, source, said string }{
		{"storage/cache/localcache/cache.go", `keep = 10 \* time\.Minute`, "| otherwise, a user or a post changed by hand | 10 minutes |"},
		{"storage/cache/localcache/cache.go", `keepUnchanged = time\.Hour`, "| 1 hour, or 10 minutes if"},
		{"storage/cache/rediscache/rediscache.go", `keep += 10 \* time\.Minute +// how long a value is kept, ± 20 %`, "12 minutes in the cache in Redis"},
		{"internal/faults/cachehistory_test.go", `lateAtMost +=\s+100 \* time\.Millisecond`, "| 100 ms later at most |"},
		{"internal/faults/cachehistory_test.go", `lateInOutage = 3100 \* time\.Millisecond`, "3.1 s and the lag"},
		{"graph/consistency/tokens.go", `Wait: 500 \* time\.Millisecond`, "for 500 ms"},
	} {
		if !regexp.MustCompile(c.source).MatchString(read(t, filepath.Join(root, c.file))) || !strings.Contains(page, c.said) {
			t.Errorf("%s: %s, and the page says %q: one of them has changed", c.file, c.source, c.said)
		}
	}
}

// docs/reference/limits.md names the default of every limit.
func TestLimitsAreDocumented(t *testing.T) {
	source := read(t, filepath.Join(root, "graph/limits/limits.go"))
	page := read(t, "reference/limits.md")
	defaults := submatches(`(?s)Defaults to\s+(?://\s+)?([\d,]+)`, source)
	n := reflect.TypeFor[limits.Limits]().NumField()
	must.That(t, len(defaults) == n, "%d limits, %d defaults in their comments", n, len(defaults))
	for _, value := range defaults {
		value = strings.TrimRight(value, ",")
		check.That(t, strings.Contains(page, "| "+value+" |") || strings.Contains(page, "limit of "+value), "limits.md has no limit of %s", value)
	}
}

// The defaults in SECURITY.md are those of the program.
func TestDefaultsOfSecurity(t *testing.T) {
	compact := strings.NewReplacer(",", "", " ", "").Replace
	compared := 0
	flags := append(slices.Clone(program(t).Flags), program(t).DefaultCmd.Flags...)
	_, table, _ := strings.Cut(read(t, filepath.Join(root, "SECURITY.md")), "## Defaults")
	for _, row := range regexp.MustCompile("(?m)^\\| [^|]+ \\| ([^|]+) \\| (`--[^|]+) \\|$").FindAllStringSubmatch(table, -1) {
		for _, name := range submatches("`--([a-z-]+)`", row[2]) {
			for _, flag := range flags {
				if flag.Name != name || !regexp.MustCompile(`^\d+h?$`).MatchString(flag.Default) {
					continue
				}
				compared++
				if !slices.Contains(regexp.MustCompile(`\d+h?`).FindAllString(compact(row[1]), -1), flag.Default) {
					t.Errorf("SECURITY.md says %q of --%s, which is %s", row[1], name, flag.Default)
				}
			}
		}
	}
	costly := submatches(`CostlyFrom += ([\d_]+)`, read(t, filepath.Join(root, "gateway/quota/admission.go")))
	check.That(t, len(costly) == 1 && strings.Contains(table, "cost more than "+strings.ReplaceAll(costly[0], "_", ",")), "what costs more than %v takes turns", costly)
	check.That(t, compared >= 8, "%d defaults compared", compared)
}

// docs/reference/limits.md lists every weight.
func TestWeightsAreDocumented(t *testing.T) {
	want, got := map[string]string{}, map[string]string{}
	for _, t := range fields.Types {
		for name, field := range t.Fields {
			if field.Weight > 0 {
				want[name] = fmt.Sprint(field.Weight)
			}
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| ((?:`\\w+`(?:, )?)+) \\| ([\\d,]+) \\|").FindAllStringSubmatch(read(t, "reference/limits.md"), -1) {
		for _, field := range submatches("`(\\w+)`", row[1]) {
			got[field] = strings.ReplaceAll(row[2], ",", "")
		}
	}
	check.That(t, maps.Equal(got, want) && len(want) >= 10, "documented %v, the program has %v", got, want)
}

// docs/reference/api.md names every mutation and every subscription.
func TestOperationsAreDocumented(t *testing.T) {
	page := read(t, "reference/api.md")
	for _, kind := range []string{"Mutation", "Subscription"} {
		schema := read(t, filepath.Join(root, "graph/schema", strings.ToLower(kind)+".graphqls"))
		bodies := submatches(`(?s)type `+kind+` \{(.*?)\n\}`, schema)
		must.That(t, len(bodies) == 1, "%d types %s", len(bodies), kind)
		for _, field := range submatches(`(?m)^  (\w+)[(:]`, bodies[0]) {
			check.That(t, strings.Contains(page, "`"+field), "api.md does not mention %s %s", kind, field)
		}
	}
}

// docs/inside/data-model.md lists every table with its columns, in their order.
func TestTablesAreDocumented(t *testing.T) {
	want := map[string]string{}
	files, err := filepath.Glob(filepath.Join(root, "storage/sqlstore/internal/db/migrations/*/*.sql"))
	must.OK(t, err)
	for _, file := range files {
		for _, m := range regexp.MustCompile(`(?s)CREATE TABLE IF NOT EXISTS (\w+) \(\n(.*?)\n\)`).FindAllStringSubmatch(read(t, file), -1) {
			want[m[1]] = strings.Join(submatches(`(?m)^  ([a-z_]+) `, m[2]), ", ")
		}
		for _, m := range regexp.MustCompile(`ALTER TABLE (\w+) ADD COLUMN (\w+)`).FindAllStringSubmatch(read(t, file), -1) {
			want[m[1]] += ", " + m[2] // behind those that the files before have made
		}
	}
	got := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)`[^|]* \\| (\\w+, [a-z_, ]+) \\|").FindAllStringSubmatch(read(t, "inside/data-model.md"), -1) {
		got[row[1]] = row[2]
	}
	check.That(t, maps.Equal(got, want) && len(want) >= 7, "documented\n%v\nthe migrations make\n%v", got, want)
}

// The workflows of the forge, and .ci/run, call targets that the Makefile has. Targets that run tests install what tests need, and
// take the settings that a workflow gives.
func TestWorkflowsCallTargets(t *testing.T) {
	makefile := read(t, filepath.Join(root, "Makefile"))
	targets := submatches(`(?m)^([a-z-]+):`, makefile)
	for _, recipe := range regexp.MustCompile(`(?m)^([a-z-]+):.*\n((?:\t.*\n)+)`).FindAllStringSubmatch(makefile, -1) {
		if regexp.MustCompile(`scripts/test(-engines)?\.sh`).MatchString(recipe[2]) && !strings.Contains(recipe[0], "scripts/install-test-deps.sh") && !strings.Contains(recipe[0], ": ready") {
			t.Errorf("make %s does not install the servers that its tests start", recipe[1])
		}
	}
	check.That(t, regexp.MustCompile(`(?m)^ready:\n(\t.*\n)*\t.*scripts/install-test-deps\.sh`).MatchString(makefile), "make ready does not install the servers that tests start")
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	must.That(t, err == nil && len(files) > 0, "%v, %v", files, err)
	for _, file := range append(files, filepath.Join(root, ".ci/run")) {
		called := submatches(`(?m)^\s*(?:- run: |run: )?make ([a-z-]+)`, read(t, file))
		check.That(t, len(called) > 0, "%s calls no target", file)
		for _, given := range regexp.MustCompile(`make ([a-z-]+) ([A-Z]+)=`).FindAllStringSubmatch(read(t, file), -1) {
			without, err := exec.Command("make", "-n", "-C", root, given[1]).Output()
			with, failed := exec.Command("make", "-n", "-C", root, given[1], given[2]+"=given").Output()
			if err != nil || failed != nil || bytes.Equal(with, without) {
				t.Errorf("%s: make %s does the same with %s: %v, %v", file, given[1], given[2], err, failed)
			}
		}
		for _, target := range called {
			check.That(t, slices.Contains(targets, target), "%s: there is no target %s", file, target)
		}
		// A tag can be moved to other code, which would have the release's credentials.
		for _, action := range submatches(`uses: (.*)`, read(t, file)) {
			if !regexp.MustCompile(`^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+`).MatchString(action) {
				t.Errorf("%s uses %s, which is not one commit with its version", file, action)
			}
		}
	}
}

// Every decision is on the list of decisions.
func TestDecisionsAreListed(t *testing.T) {
	index := read(t, "inside/adr/README.md")
	decisions, err := filepath.Glob("inside/adr/0*.md")
	must.That(t, err == nil && len(decisions) > 0, "%v, %v", decisions, err)
	for _, d := range decisions {
		check.That(t, strings.Contains(index, "("+filepath.Base(d)+")"), "inside/adr/README.md does not list %s", d)
	}
}
