package program_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/testenv"
)

// TestModuleCanMove gives a copy of the tree another module path. Every import is found, and the old path is nowhere
// left. In the long form the copy is built.
func TestModuleCanMove(t *testing.T) {
	t.Parallel()
	const path = "example.org/team/product"
	folder := t.TempDir()
	in := func(command string) string {
		t.Helper()
		c := exec.Command("bash", "-ec", "set -o pipefail; "+command)
		c.Dir = folder
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("git", "-C", root, "rev-parse", "HEAD").Run(); err != nil {
		testenv.Missing(t, "this is no git checkout: the script asks git for the files")
	}
	in("git -C '" + root + "' ls-files -z --cached --others --exclude-standard | (cd '" + root + "' && xargs -0 ls -d 2>/dev/null | tar -cf - -T -) | tar -xf - && git init -q && git add -A")
	was := strings.TrimSpace(in("go list -m"))
	in("scripts/module.sh " + path)
	if is := strings.TrimSpace(in("go list -m")); is != path {
		t.Errorf("the module is %s", is)
	}
	for _, line := range strings.Fields(in(`go list -test -f '{{.ImportPath}} {{join .Imports " "}}' ./...`)) {
		if strings.HasPrefix(line, was+"/") {
			t.Errorf("%s is still imported", line)
		}
	}
	for _, file := range []string{"Makefile", ".goreleaser.yml", "deploy/Dockerfile"} {
		if text, err := os.ReadFile(filepath.Join(folder, file)); err != nil || !strings.Contains(string(text), "-X "+path+"/cli.version=") {
			t.Errorf("%s links the version into another package; %v", file, err)
		}
	}
	if strings.Contains(in("cat gqlgen.yml"), "- "+was+"/") {
		t.Error("gqlgen.yml has the old path")
	}
	if os.Getenv("KITH_TEST_LONG") == "1" {
		in("go build -o program . && ./program version && go vet ./cli")
	}
}
