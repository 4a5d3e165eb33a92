// Package kithtest runs Kith as its users do: the program, built from this tree,
// as a child process, asked over HTTP.
//
//	p := kithtest.Start(t, kithtest.Args("--store", "sqlite:"+path, "--demo"))
//	p.Query(t, `{ user(by: {id: 1}) { handle } }`, nil, &answer)
//	end := p.Stop(t)
package kithtest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"kith/internal/must"
)

// built is a program that is built once per test binary.
type built struct {
	name, module, folder string // of its main package, in its module
	once                 sync.Once
	path                 string
	err                  error
}

var kith, kithBench = &built{name: "kith", module: ".", folder: "."}, &built{name: "kith-bench", module: "bench", folder: "./kith-bench"}

// Binary builds the program and returns its path.
func Binary(t testing.TB) string { t.Helper(); return kith.binary(t) }

// BenchBinary builds the program that `kith bench` starts, and returns its path, beside the
// program's.
func BenchBinary(t testing.TB) string { t.Helper(); return kithBench.binary(t) }

func (b *built) binary(t testing.TB) string {
	t.Helper()
	b.once.Do(func() { b.path, b.err = b.build() })
	must.OK(t, b.err)
	return b.path
}

// Next makes an Option that runs an artificial next version of the program: its tables are at version 3, to which it comes by a
// migration that adds a table and a column, and by one that fills the table. The files are in the folder next.
func Next(t testing.TB) Option {
	t.Helper()
	root, err := moduleRoot()
	must.OK(t, err)
	next := filepath.Join(root, "internal/kithtest/next")
	files := map[string]string{filepath.Join(root, "next.go"): filepath.Join(next, "next.go.txt")}
	for _, dialect := range []string{"mysql", "sqlite"} {
		folder := filepath.Join("migrations", dialect)
		tables, err := filepath.Glob(filepath.Join(root, "storage/sqlstore/internal/db", folder, "*.sql"))
		must.OK(t, err)
		for _, file := range tables {
			files[filepath.Join(root, folder, filepath.Base(file))] = file
		}
		files[filepath.Join(root, folder, "00002_next.sql")] = filepath.Join(next, dialect+".sql")
	}
	return Program(overlaid(t, root, "kith-next", files, "-ldflags=-s -X kith/cli.version=9.9.9"))
}

// overlaid builds the program with other contents for some files, under a name of its own, and returns its path.
func overlaid(t testing.TB, root, name string, replaced map[string]string, flags ...string) string {
	t.Helper()
	text, err := json.Marshal(struct{ Replace map[string]string }{replaced})
	must.OK(t, err)
	list := filepath.Join(t.TempDir(), "overlay.json")
	must.OK(t, os.WriteFile(list, text, 0o600))
	program, err := (&built{name: name, module: ".", folder: "."}).build(append(flags, "-overlay", list)...)
	must.OK(t, err)
	return program
}

// Skewed makes Options that run the program with a wall clock that is some seconds ahead, or behind if they are negative. The
// program is built with another time.Now, from nothing, which takes minutes: for long tests. The reader of binlogs asks the
// system for the time, and compares it with time.Now.
func Skewed(t testing.TB) (ahead func(seconds int) []Option) {
	t.Helper()
	root, err := moduleRoot()
	must.OK(t, err)
	const skew = `
var skew = func() (n int64) {
	text, _ := %sGetenv("KITH_TEST_SKEW")
	digits := text
	if text != "" && text[0] == '-' {
		digits = text[1:]
	}
	for _, c := range digits {
		n = 10*n + int64(c-'0')
	}
	if digits != text {
		n = -n
	}
	return n
}()
`
	replaced := map[string]string{}
	change := func(pattern, reads, then, imports, getenv string) {
		source, text := standardFile(t, pattern, reads)
		text = strings.Replace(text, reads, reads+then, 1)
		text = strings.Replace(text, "import (\n", imports, 1) + fmt.Sprintf(skew, getenv)
		changed := filepath.Join(t.TempDir(), filepath.Base(source))
		must.OK(t, os.WriteFile(changed, []byte(text), 0o600))
		replaced[source] = changed
	}
	change("time/time.go", "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n", "\tsec += skew\n", "import (\n\t\"syscall\"\n", "syscall.")
	change("syscall/*linux_"+runtime.GOARCH+".go", "func Gettimeofday(tv *Timeval) (err error) {\n", "\tdefer func() { tv.Sec += skew }()\n", "import (\n", "")
	program := Program(overlaid(t, root, "kith-skewed", replaced))
	return func(seconds int) []Option { return []Option{program, Env("KITH_TEST_SKEW=" + strconv.Itoa(seconds))} }
}

// standardFile finds the file of the standard library that has a text.
func standardFile(t testing.TB, pattern, has string) (path, text string) {
	t.Helper()
	std, err := exec.Command("go", "env", "GOROOT").Output()
	must.OK(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(std)), "src", pattern))
	must.OK(t, err)
	for _, path := range files {
		text := must.File(t, path)
		if strings.Contains(string(text), has) {
			return path, string(text)
		}
	}
	t.Fatalf("no file %s has %q", pattern, has)
	return "", ""
}

// Program makes an Option that runs another program, such as an older one.
func Program(path string) Option { return func(c *exec.Cmd) { c.Path = path } }

// build returns the path of the program. scripts/test.sh names a folder for the length of its run (KITH_TEST_RUN): the first test
// binary that builds the program notes the path there, and the others do not ask the go command, which takes half a second of
// processor time even if nothing has changed.
func (b *built) build(flags ...string) (string, error) {
	run := os.Getenv("KITH_TEST_RUN")
	if run == "" {
		return b.link(flags...)
	}
	note, err := os.OpenFile(filepath.Join(run, b.name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer note.Close() // and others no longer wait
	if err := syscall.Flock(int(note.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if noted, err := io.ReadAll(note); err != nil || len(noted) > 0 {
		return string(noted), err
	}
	path, err := b.link(flags...)
	if err == nil {
		_, err = note.WriteString(path)
	}
	return path, err
}

// link leaves the program in the tree's bin folder, which git ignores. It is moved
// there when it is complete: other tests may be building, or running, the same. The program that
// another test binary has left is the draft: go build links it again only if its source has
// changed, and linking takes 3 s of processor time.
func (b *built) link(flags ...string) (string, error) {
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
	if err := compile(filepath.Join(root, b.module), made, b.folder, flags...); err != nil {
		return "", err
	}
	return path, os.Rename(made, path)
}

func compile(module, program, folder string, flags ...string) error {
	args := append([]string{"build", "-buildvcs=false", "-ldflags=-s", "-o", program}, flags...) // -s: linked in half the time
	build := exec.Command("go", append(args, folder)...)
	build.Dir, build.Env = module, append(os.Environ(), "GOWORK=off") // as users build it
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", folder, err, out)
	}
	return nil
}

// moduleRoot is the folder of the product's go.mod, seen from a test of any module.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Module.Dir}}", "kith/internal/kithtest").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
