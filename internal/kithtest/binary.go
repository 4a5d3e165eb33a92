// Package kithtest runs Kith as its users do: the program, built from this tree,
// as a child process, asked over HTTP.
//
//	p := kithtest.Start(t, kithtest.Args("--store", "sqlite:"+path, "--demo"))
//	p.Query(t, `{ user(id: 1) { handle } }`, nil, &answer)
//	end := p.Stop(t)
package kithtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// built is a program that is built once per test binary.
type built struct {
	name, folder string // of its main package
	once         sync.Once
	path         string
	err          error
}

var kith, kithBench = &built{name: "kith", folder: "."}, &built{name: "kith-bench", folder: "./bench/kith-bench"}

// Binary builds the program and returns its path.
func Binary(t testing.TB) string { t.Helper(); return kith.binary(t) }

// BenchBinary builds the program that `kith bench` starts, and returns its path, beside the
// program's.
func BenchBinary(t testing.TB) string { t.Helper(); return kithBench.binary(t) }

func (b *built) binary(t testing.TB) string {
	t.Helper()
	b.once.Do(func() { b.path, b.err = b.build() })
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.path
}

// Without makes an Option that runs a program that was built as if some files of the module did not
// exist.
func Without(t testing.TB, files ...string) Option {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	replaced := map[string]string{}
	for _, file := range files {
		replaced[filepath.Join(root, file)] = ""
	}
	return Program(overlaid(t, root, replaced))
}

// overlaid builds the program with other contents for some files, and returns its path.
func overlaid(t testing.TB, root string, replaced map[string]string, flags ...string) string {
	t.Helper()
	text, err := json.Marshal(struct{ Replace map[string]string }{replaced})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	list, program := filepath.Join(folder, "overlay.json"), filepath.Join(folder, "kith")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := compile(root, program, ".", append(flags, "-overlay", list)...); err != nil {
		t.Fatal(err)
	}
	return program
}

// Skewed makes Options that run the program with a wall clock that is some seconds ahead, or behind if they are negative. The
// program is built with another time.Now, from nothing, which takes minutes: for long tests.
func Skewed(t testing.TB) (ahead func(seconds int) []Option) {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	std, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(std)), "src", "time", "time.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	const reads = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if !bytes.Contains(text, []byte(reads)) {
		t.Fatalf("%s reads the clock in another way than this test knows", source)
	}
	text = bytes.Replace(text, []byte(reads), []byte(reads+"\tsec += skew\n"), 1)
	text = append(text, `
var skew = func() int64 {
	text, _ := syscall.Getenv("KITH_TEST_SKEW")
	n, _ := atoi(text)
	return int64(n)
}()
`...)
	text = bytes.Replace(text, []byte("import (\n"), []byte("import (\n\t\"syscall\"\n"), 1)
	changed := filepath.Join(t.TempDir(), "time.go")
	if err := os.WriteFile(changed, text, 0o600); err != nil {
		t.Fatal(err)
	}
	// The reader of binlogs asks the system for the time, and compares it with time.Now.
	find := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/go-mysql-org/go-mysql")
	find.Dir = root
	reader, err := find.Output()
	if err != nil {
		t.Fatal(err)
	}
	now := filepath.Join(t.TempDir(), "now.go")
	if err := os.WriteFile(now, []byte("package utils\n\nimport \"time\"\n\nvar Now = time.Now\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := filepath.Join(strings.TrimSpace(string(reader)), "utils", "now_unix.go")
	if _, err := os.Stat(asked); err != nil {
		t.Fatal(err)
	}
	program := Program(overlaid(t, root, map[string]string{source: changed, asked: now}))
	return func(seconds int) []Option {
		return []Option{program, Env("KITH_TEST_SKEW=" + strconv.Itoa(seconds))}
	}
}

// Program makes an Option that runs another program, such as an older one.
func Program(path string) Option { return func(c *exec.Cmd) { c.Path = path } }

// build leaves the program in the tree's bin folder, which git ignores. It is moved
// there when it is complete: other tests may be building, or running, the same. The program that
// another test binary has left is the draft: go build links it again only if its source has
// changed, and linking takes 3 s of processor time.
func (b *built) build() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(root, "bin", "test")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	draft, err := os.MkdirTemp(folder, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(draft)
	path, made := filepath.Join(folder, b.name), filepath.Join(draft, b.name)
	if before, err := os.ReadFile(path); err == nil {
		if err := os.WriteFile(made, before, 0o755); err != nil {
			return "", err
		}
	}
	if err := compile(root, made, b.folder); err != nil {
		return "", err
	}
	return path, os.Rename(made, path)
}

func compile(root, program, folder string, flags ...string) error {
	args := append([]string{"build", "-buildvcs=false", "-ldflags=-s", "-o", program}, flags...) // -s: linked in half the time
	build := exec.Command("go", append(args, folder)...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", folder, err, out)
	}
	return nil
}

// moduleRoot is the folder of go.mod.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}
