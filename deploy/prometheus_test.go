package deploy_test

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

	"github.com/goccy/go-yaml"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

type rule struct {
	Alert, Expr, For    string
	Annotations, Labels map[string]string
}

// alerts are the rules of alerts.yaml.
func alerts(t *testing.T) (list []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	must.OK(t, yaml.Unmarshal([]byte(read(t, "prometheus/alerts.yaml")), &file))
	for _, group := range file.Groups {
		list = append(list, group.Rules...)
	}
	must.That(t, len(list) >= 20, "only %d alerts", len(list))
	return list
}

// Every alert has a test in which it fires, and a section of its name on the page to which it links. The page has no
// other sections of alerts.
func TestAlertsHaveTestsAndPages(t *testing.T) {
	tests, page := read(t, "prometheus/tests.yaml"), read(t, "../docs/how-to/incidents.md")
	var names []string
	for _, a := range alerts(t) {
		names = append(names, a.Alert)
		check.That(t, regexp.MustCompile(`alertname: `+a.Alert+`\n\s+exp_alerts:\n\s+- exp_labels`).MatchString(tests), "tests.yaml never sees %s fire", a.Alert)
		want := "https://example.org/kith/docs/how-to/incidents.md#" + strings.ToLower(a.Alert)
		check.That(t, a.Annotations["runbook_url"] == want && a.Annotations["summary"] != "", "%s: annotations %v, want the runbook %s", a.Alert, a.Annotations, want)
	}
	var sections []string
	for _, s := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(page, -1) {
		sections = append(sections, s[1])
	}
	check.That(t, slices.Equal(sections, names), "incidents.md has the sections\n%v\nthe alerts are\n%v", sections, names)
	for _, part := range []string{"**It means:** ", "**Users see:** ", "**Look at:** ", "**Do:** "} {
		check.Equal(t, fmt.Sprint("sections that say ", part), strings.Count(page, "\n"+part), len(names))
	}
}

// As Prometheus sees a process that starts, no series of a test is there at first.
func TestAlertsBeginWithoutSeries(t *testing.T) {
	for _, series := range regexp.MustCompile(`\{series: .*`).FindAllString(read(t, "prometheus/tests.yaml"), -1) {
		check.That(t, strings.Contains(series, "values: '_x2 ") || strings.Contains(series, "'-1300000x70'"), "there from the first moment: %s", series)
	}
}

// Alertmanager's rules name alerts that exist. An alert silences none that is more severe, and none that fires before it.
func TestInhibitRules(t *testing.T) {
	severity, fires := map[string]string{}, map[string]time.Duration{}
	for _, a := range alerts(t) {
		severity[a.Alert] = a.Labels["severity"]
		fires[a.Alert], _ = time.ParseDuration(a.For)                                            // 0 without
		if m := regexp.MustCompile(`_seconds\) > (\d+)$`).FindStringSubmatch(a.Expr); m != nil { // an age
			age, _ := time.ParseDuration(m[1] + "s")
			fires[a.Alert] += age
		}
	}
	var file struct {
		Rules []struct {
			Source, Target []string
		} `yaml:"inhibit_rules"`
	}
	text := strings.NewReplacer("source_matchers", "source", "target_matchers", "target").Replace(read(t, "prometheus/alertmanager.yaml"))
	err := yaml.Unmarshal([]byte(text), &file)
	must.That(t, err == nil && len(file.Rules) >= 5, "%v %v", err, file)
	for _, r := range file.Rules {
		source := regexp.MustCompile(`Kith\w+`).FindString(r.Source[0])
		targets := regexp.MustCompile(`Kith\w+`).FindAllString(r.Target[0], -1)
		for _, target := range append(targets, source) {
			if severity[target] == "" || severity[target] == "critical" && severity[source] != "critical" {
				t.Errorf("%s (%s) silences %s (%s)", source, severity[source], target, severity[target])
			}
			check.That(t, fires[source] <= fires[target], "%s fires after %s and silences %s, which fires after %s", source, fires[source], target, fires[target])
		}
	}
}

// promtool runs promtool in the folder of Prometheus' files.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	testenv.Needs(t, "promtool")
	command := exec.Command("promtool", args...)
	command.Dir = "prometheus"
	out, err := command.CombinedOutput()
	check.That(t, err == nil, "promtool %v: %v\n%s", args, err, out)
}

func TestPrometheusTakesItsFiles(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "config", "prometheus.yaml") // this also checks the rules that it names
	promtool(t, "test", "rules", "tests.yaml", "weeks.yaml")
}

// queries are the expressions of the dashboard.
func queries(t *testing.T) (list []string) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	must.OK(t, json.Unmarshal([]byte(read(t, "grafana/kith.json")), &dashboard))
	seen := map[int]bool{}
	for _, p := range dashboard.Panels {
		check.That(t, !seen[p.ID] && p.Title != "", "panel %d %q has no number or title of its own", p.ID, p.Title)
		seen[p.ID] = true
		for _, target := range p.Targets {
			// These are the values by which Grafana replaces its variables.
			list = append(list, strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*").Replace(target.Expr))
		}
	}
	must.That(t, len(list) >= 30, "only %d queries", len(list))
	return list
}

// promtool parses rules, so the queries of the dashboard are written as rules.
func TestDashboardQueriesParse(t *testing.T) {
	t.Parallel()
	var rules []map[string]string
	for i, q := range queries(t) {
		rules = append(rules, map[string]string{"record": fmt.Sprintf("query_%d", i), "expr": q})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	must.OK(t, err)
	path := filepath.Join(t.TempDir(), "rules.yaml")
	must.OK(t, os.WriteFile(path, text, 0o600))
	promtool(t, "check", "rules", path)
}

// exported are the metrics of docs/reference/metrics.md, with their labels, which a test in docs makes from those of the
// program. Metrics of libraries that are used here are added.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{
		"up": {}, "process_open_fds": {}, "process_max_fds": {}, "process_cpu_seconds_total": {}, "process_resident_memory_bytes": {},
		"go_sql_open_connections": {"db_name"}, "go_sql_wait_duration_seconds_total": {"db_name"},
	}
	quoted := regexp.MustCompile("`(\\w+)`")
	for _, row := range regexp.MustCompile("(?m)^\\|`(kith_\\w+)`\\|([^|]*)\\|").FindAllStringSubmatch(read(t, "../docs/reference/metrics.md"), -1) {
		var labels []string
		for _, label := range quoted.FindAllStringSubmatch(row[2], -1) {
			labels = append(labels, label[1])
		}
		all[row[1]] = labels
	}
	must.That(t, len(all) >= 80, "only %d metrics are documented", len(all))
	return all
}

// The dashboard, the alerts and their tests use only metrics and labels that exist.
func TestQueriesNameWhatIsExported(t *testing.T) {
	all := exported(t)
	check := func(expr string) {
		labels := []string{"instance", "job", "le"}
		for _, name := range regexp.MustCompile(`\b(?:kith|go|process)_\w+|\bup\b`).FindAllString(expr, -1) {
			of, ok := all[regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")]
			if !ok {
				of, ok = all[name]
				check.That(t, ok, "%s: nothing exports %s", expr, name)
			}
			labels = append(labels, of...)
		}
		for _, group := range regexp.MustCompile(`\bby \(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
			for label := range strings.SplitSeq(group[1], ", ") {
				check.That(t, slices.Contains(labels, label), "%s: no metric in it has the label %s", expr, label)
			}
		}
		for _, matcher := range regexp.MustCompile(`[{,](\w+)(?:=|=~|!=|!~)["']`).FindAllStringSubmatch(expr, -1) {
			if !slices.Contains(labels, matcher[1]) {
				t.Errorf("%s: no metric in it has the label %s", expr, matcher[1])
			}
		}
	}
	for _, q := range queries(t) {
		check(q)
	}
	for _, a := range alerts(t) {
		check(a.Expr)
	}
	for _, series := range regexp.MustCompile(`series: '([^']+)'`).FindAllStringSubmatch(read(t, "prometheus/tests.yaml"), -1) {
		check(series[1])
	}
}
