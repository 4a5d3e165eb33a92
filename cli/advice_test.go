package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"kith/files/graphfile"
	"kith/internal/check"
	"kith/internal/must"
)

// TestNobodyIsToldToRepeatWhatFailsAgain: an error says that the same command goes on only if it does.
func TestNobodyIsToldToRepeatWhatFailsAgain(t *testing.T) {
	folder, edges := t.TempDir(), graph(t, "1 2\n")
	sqlite := func(name string) string { return "sqlite:" + filepath.Join(folder, name) }
	run := func(args ...string) (int, string) {
		code, _, complaints := ran(t, append(args, "--store", sqlite("a"))...)
		return code, complaints
	}
	for _, args := range [][]string{{"import", edges}, {"copy", sqlite("b"), "--max-load", "1"}} {
		code, complaints := run(args...)
		must.That(t, code == 0, "%v", complaints)
	}
	const one = "the source and the target are one store"
	for says, args := range map[string][]string{
		edges + ": not a directory": {"export", edges},
		one:                         {"copy", sqlite("a")},
		"the store has been copied to another one":               {"copy", sqlite("b")},
		"to another one: give that up first (kith shards abort)": {"copy", sqlite("c")},
	} {
		if code, complaints := run(args...); code == 0 || says == one && code != 78 || !strings.Contains(complaints, says) || strings.Contains(complaints, "again") || strings.Contains(complaints, "the same command") {
			t.Errorf("kith %v ends with %d: %s", args, code, complaints)
		}
	}
	_, out, _ := ran(t, "shards", "readmit", "0", "--store", sqlite("a"))
	check.That(t, strings.Contains(out, "is readmitted") && !strings.Contains(out, "takes writes"), "a shard of the store that has been copied: %s", out)
	err := adviseExport(fmt.Errorf("shard 0: %w", graphfile.ErrDamaged))
	check.That(t, !strings.Contains(err.Error(), "run the same command again: it goes on"), "a damaged row: %v", err)
	var complaints bytes.Buffer
	code := Run(t.Context(), []string{"import", edges, "--output", "json", "--store", sqlite("d")}, fullDisk{}, &complaints)
	check.That(t, code == 1 && !strings.Contains(complaints.String(), "go on"), "an import whose report is lost ends with %d: %s", code, complaints.String())
}
