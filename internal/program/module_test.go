package program_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

// TestModuleCanMove gives a copy of the tree another module path. Every import is found, and the old path is nowhere
// left. In the long form the copy is installed, as `go install PATH@VERSION` does.
func TestModuleCanMove(t *testing.T) {
	t.Parallel()
	const path = "example.org/team/kith"
	folder := t.TempDir()
	in := func(command string) string {
		t.Helper()
		c := exec.Command("bash", "-ec", "set -o pipefail; "+command)
		c.Dir, c.Env = folder, append(os.Environ(), "GOWORK=off")
		out, err := c.CombinedOutput()
		must.That(t, err == nil, "%s: %v\n%s", command, err, out)
		return string(out)
	}
	root, err := filepath.Abs("../..")
	must.OK(t, err)
	if err := exec.Command("git", "-C", root, "rev-parse", "HEAD").Run(); err != nil {
		testenv.Missing(t, "this is no git checkout: the script asks git for the files")
	}
	in("git -C '" + root + "' ls-files -z --cached --others --exclude-standard | (cd '" + root + "' && xargs -0 ls -d 2>/dev/null | tar -cf - -T -) | tar -xf - && git init -q && git add -A")
	was := strings.TrimSpace(in("go list -m"))
	in("scripts/module.sh " + path)
	check.Equal(t, "the module", strings.TrimSpace(in("go list -m")), path)
	for _, line := range strings.Fields(in(`GOWORK=$PWD/tests.work go list -test -f '{{.ImportPath}} {{join .Imports " "}}' work`)) {
		check.That(t, !strings.HasPrefix(line, was+"/"), "%s is still imported", line)
	}
	for _, file := range []string{"Makefile", ".goreleaser.yml", "deploy/Dockerfile"} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		check.That(t, err == nil && strings.Contains(string(text), "-X "+path+"/cli.version="), "%s links the version into another package; %v", file, err)
	}
	check.Lacks(t, "gqlgen.yml", in("cat gqlgen.yml"), "- "+was+"/")
	if testenv.AllTests() {
		in("go vet ./cli")
		installs(t, folder, path)
	}
}

// installs serves the tree as a version of its module, from a folder in the form of a proxy, and has the go command install that.
func installs(t *testing.T, folder, path string) {
	t.Helper()
	const version = "v1.2.3"
	proxy := t.TempDir()
	of := filepath.Join(proxy, path, "@v")
	must.OK(t, os.MkdirAll(of, 0o700))
	var archive bytes.Buffer
	must.OK(t, zip.CreateFromDir(&archive, module.Version{Path: path, Version: version}, folder))
	mod := must.File(t, filepath.Join(folder, "go.mod"))
	for name, text := range map[string][]byte{"list": []byte(version + "\n"), version + ".zip": archive.Bytes(), version + ".mod": mod, version + ".info": []byte(`{"Version": "` + version + `"}`)} {
		must.OK(t, os.WriteFile(filepath.Join(of, name), text, 0o600))
	}
	ask := func(name string) string {
		out, err := exec.Command("go", "env", name).Output()
		must.OK(t, err)
		return strings.TrimSpace(string(out))
	}
	elsewhere := t.TempDir()
	install := exec.Command("go", "install", path+"@"+version)
	install.Dir = elsewhere
	// The other modules come from what this machine has, or from where it has them from. -modcacherw: the folder can be removed.
	install.Env = append(os.Environ(), "GOPROXY=file://"+proxy+",file://"+ask("GOMODCACHE")+"/cache/download,"+ask("GOPROXY"), "GONOSUMDB="+path,
		"GOMODCACHE="+filepath.Join(elsewhere, "modules"), "GOBIN="+elsewhere, "GOFLAGS=-trimpath -modcacherw")
	out, err := install.CombinedOutput()
	must.That(t, err == nil, "%v\n%s", err, out)
	said, err := exec.Command(filepath.Join(elsewhere, filepath.Base(path)), "version").Output()
	check.That(t, err == nil && strings.HasPrefix(string(said), "kith "+strings.TrimPrefix(version, "v")+" (commit "), "the installed program says %s, %v", said, err)
}
