package kithtest

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"kith/internal/must"
)

// Covered makes an Option that runs a program that counts how often each block of its code runs, except generated code, see [Counters].
func Covered(t testing.TB) Option {
	t.Helper()
	root, err := moduleRoot()
	must.OK(t, err)
	source := filepath.Join(t.TempDir(), "counters.go")
	must.OK(t, os.WriteFile(source, []byte(counters), 0o600))
	// A file that is not in the tree cannot be counted, so a package has to take it that is not counted at all. Generated code is
	// not counted, either: nobody reads it, and to compile it with counters takes longer than all the rest.
	const uncounted, generated = "kith/storage/sleep", "kith/graph/generated"
	list := exec.Command("go", "list", "./...")
	list.Dir = root
	packages, err := list.Output()
	must.OK(t, err)
	covered := slices.DeleteFunc(strings.Fields(string(packages)), func(path string) bool { return path == uncounted || path == generated })
	added := map[string]string{filepath.Join(root, strings.TrimPrefix(uncounted, "kith/"), "counters.go"): source}
	// Without optimisation and data for debuggers it is compiled in half the time.
	return Program(overlaid(t, root, "kith-covered", added, "-gcflags=kith/...=-N -l -dwarf=false", "-cover", "-covermode=atomic", "-coverpkg="+strings.Join(covered, ",")))
}

// counters makes the program write its counters whenever it gets a signal.
const counters = `package sleep

import (
	"os"
	"os/signal"
	"runtime/coverage"
	"strconv"
	"syscall"
)

func init() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR2)
	go func() {
		for n := 1; ; n++ {
			<-asked
			folder := os.Getenv("KITH_TEST_COUNTERS") + "/" + strconv.Itoa(n)
			err := os.Mkdir(folder+".part", 0o755)
			if err == nil {
				err = coverage.WriteMetaDir(folder + ".part")
			}
			if err == nil {
				err = coverage.WriteCountersDir(folder + ".part")
			}
			if err == nil {
				err = os.Rename(folder+".part", folder)
			}
			if err != nil {
				panic(err)
			}
		}
	}()
}
`

// Counters are where a covered program writes how often its blocks have run.
type Counters struct {
	folder string
	asked  int
}

// NewCounters makes an Option for a [Covered] program.
func NewCounters(t testing.TB) (*Counters, Option) {
	folder := t.TempDir()
	return &Counters{folder: folder}, Env("KITH_TEST_COUNTERS="+folder, "GOCOVERDIR="+folder)
}

// A Snapshot is what the counters were at one time.
type Snapshot string // its folder

// Take lets a running program write its counters.
func (c *Counters) Take(t testing.TB, of *Command) Snapshot {
	t.Helper()
	c.asked++
	folder := filepath.Join(c.folder, strconv.Itoa(c.asked))
	of.Signal(syscall.SIGUSR2)
	of.Until(t, "write its counters", func() bool {
		_, err := os.Stat(folder)
		return err == nil
	})
	return Snapshot(folder)
}

// Blocks returns how often each block had run, by file:lines. It takes a second.
func (s Snapshot) Blocks(t testing.TB) map[string]int {
	t.Helper()
	tool, err := covdata()
	must.OK(t, err)
	list := filepath.Join(string(s), "profile.txt")
	out, err := exec.Command(tool, "textfmt", "-i="+string(s), "-o="+list).CombinedOutput()
	must.That(t, err == nil, "%v: %s", err, out)
	return profile(t, list)
}

// covdata is the path of Go's tool for counters. To ask go for it takes more processor time than the tool, which runs a dozen times.
var covdata = sync.OnceValues(func() (string, error) {
	path, err := exec.Command("go", "tool", "-n", "covdata").Output()
	return strings.TrimSpace(string(path)), err
})

// profile reads lines such as "kith/server.go:10.2,12.3 2 17": a block, its statements, and how often it ran.
func profile(t testing.TB, file string) map[string]int {
	t.Helper()
	f, err := os.Open(file)
	must.OK(t, err)
	defer f.Close()
	counts := map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			continue // the first line
		}
		n, err := strconv.Atoi(fields[2])
		must.OK(t, err)
		counts[fields[0]] += n
	}
	must.That(t, len(counts) >= 1000, "%s has %d blocks", file, len(counts))
	return counts
}
