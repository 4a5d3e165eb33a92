package program_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// TestBenchIsAProgramBesideKith: the gateway's program contains nothing that measures. It starts
// another program for that, or says in one line that this program is missing.
func TestBenchIsAProgramBesideKith(t *testing.T) {
	t.Parallel()
	linked, err := exec.Command("go", "list", "-deps", "kith").Output()
	must.That(t, err == nil && strings.Contains(string(linked), "kith/gateway\n"), "%v", err)
	for _, name := range strings.Fields(string(linked)) {
		check.That(t, !strings.HasPrefix(name, "kith/bench"), "%s is in the program", name)
	}

	kithtest.BenchBinary(t)
	end := kithtest.Run(t, kithtest.Args("bench", "generate", "--users", "300", "-"))
	check.That(t, end.Code == 0 && strings.Count(end.Stdout, "\n") >= 300, "%d, %d bytes, %s", end.Code, len(end.Stdout), end.Stderr)
	refused(t, kithtest.Run(t, kithtest.Args("bench", "generate", "--users", "3", "-")), "--users: ")
	kithtest.Ends(t, 78, kithtest.Args("bench", "--userz", "3")) // the exit codes are those of all commands
	check.Has(t, "its help", kithtest.Ends(t, 0, kithtest.Args("bench", "--help")).Stdout, "bench guard")

	program := must.File(t, kithtest.Binary(t))
	alone := filepath.Join(t.TempDir(), "kith")
	must.OK(t, os.WriteFile(alone, program, 0o700))
	refused(t, kithtest.Run(t, func(c *exec.Cmd) { c.Path = alone }, kithtest.Args("bench")), "bench: ", alone+"-bench", "go build")
}
