package docs_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/storage"
)

// What pages say of the program's parts is what these have.
func TestPagesNameWhatThereIs(t *testing.T) {
	examined := submatches(`walkExamined = (\d+)`, read(t, filepath.Join(root, "social/suggestbest.go")))
	said := submatches(`newest ([\d,]+) followers`, read(t, "inside/architecture.md"))
	if len(examined) != 1 || len(said) != 1 || strings.ReplaceAll(said[0], ",", "") != examined[0] {
		t.Errorf("the page has the newest %v followers, the program %v", said, examined)
	}
	// Whoever copies, puts back or reads rows has to know of all pairs of tables.
	for _, file := range []string{"replication/doc.go", "replication/binlog/doc.go", "replication/binlog/transaction.go", "cli/replicate.go", "cli/reconcile.go", "docs/inside/writes.md", "docs/reference/cli.md"} {
		text := read(t, filepath.Join(root, file))
		for _, table := range [len(storage.Truths)]string{"following", "friend_request", "favorite", "relation"} {
			check.That(t, strings.Contains(strings.ReplaceAll(strings.ReplaceAll(text, "`", ""), "\n// ", " "), table), "%s does not name %s", file, table)
		}
		if strings.Contains(text, "friend_request and favorite") || strings.Contains(text, "`friend_request` and `favorite`") {
			t.Errorf("%s names three pairs of tables", file)
		}
	}
	ended := submatches(`connections_ended_total.*reason \(([\w, ]+)\)`, read(t, "reference/metrics.md"))
	var labels []string
	files, err := filepath.Glob(filepath.Join(root, "gateway/live/*.go"))
	for _, file := range files {
		labels = append(labels, submatches(`ending\{(?:label: )?"(\w+)"`, read(t, file))...)
	}
	slices.Sort(labels)
	if labels = slices.Compact(labels); err != nil || len(ended) != 1 || !slices.Equal(slices.Sorted(slices.Values(strings.Split(ended[0], ", "))), labels) {
		t.Errorf("connections end for %v, and the page has %v (%v)", labels, ended, err)
	}
	registers := submatches(`register\(handle: "(\w+)", name: "\w+", password`, read(t, "how-to/sign-in.md")+read(t, "how-to/connect-a-front-end.md"))
	check.That(t, len(registers) == 2 && registers[0] != registers[1], "two pages register %v", registers)
}

// A token of the demo is printed on a terminal alone, and whoever opens the pages of a container gets none from them: its connection is not local.
func TestContainersStartAsTheReadmeSays(t *testing.T) {
	run := submatches(`(?m)^docker run (.*) ghcr`, read(t, filepath.Join(root, "README.md")))
	check.That(t, len(run) == 1 && strings.Contains(run[0], " -it "), "the container is started by %q, without a terminal", run)
	for _, page := range []string{"README.md", "deploy/README.md"} { // Compose starts nothing without passwords
		lines := submatches("(?m)^(.*compose.yaml up.*)$", read(t, filepath.Join(root, page)))
		check.That(t, len(lines) == 1 && strings.Contains(lines[0], "deploy/.env"), "%s starts Compose by %q", page, lines)
	}
}

// The table of slow tests is written by scripts/slowtests.sh; these tests are still there.
func TestSlowTestsAreThere(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| \\d+ \\| `(Test\\w+)` \\| `([\\w/-]+)` \\|$").FindAllStringSubmatch(read(t, "inside/testing.md"), -1)
	check.That(t, len(rows) >= 10, "there are %d: TABLE=1 make test writes them", len(rows))
	for _, row := range rows {
		text := ""
		files, _ := filepath.Glob(filepath.Join(root, row[2], "*_test.go"))
		for _, file := range files {
			text += read(t, file)
		}
		check.That(t, strings.Contains(text, "\nfunc "+row[1]+"("), "%s has no %s", row[2], row[1])
	}
}
