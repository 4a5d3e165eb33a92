package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// suite is a package's tests in two parts. The quickest tests, which together take a quarter of the time, run
// first: most changes fail there, and the slow tests are left to the others.
type suite struct {
	dir    string
	binary string
	parts  []part
}

type part struct {
	choice []string // flags of the test binary
	within time.Duration
}

// measured is the suite of a package, after one run of it. The package's tests have to pass as the package is:
// otherwise they would seem to notice every change.
func measured(dir, scratch string) (suite, error) {
	s := suite{dir: dir, binary: filepath.Join(scratch, "tests")}
	if out, err := s.compile(); err != nil {
		return s, fmt.Errorf("%w\n%s", err, out)
	}
	began := time.Now()
	out, err := s.run(time.Hour, "-test.v")
	if err != nil {
		return s, fmt.Errorf("the tests fail without a change: %w\n%s", err, out)
	}
	quick := quickest(out)
	// What takes four times as long hangs: machines are busier at one time than at another.
	whole, most := time.Since(began), 30*time.Second
	s.parts = []part{{[]string{"-test.run", quick}, most + whole}, {[]string{"-test.skip", quick}, most + 4*whole}}
	return s, nil
}

var passed = regexp.MustCompile(`(?m)^ *--- PASS: (\w+)\S* \((\d+\.\d+)s\)$`)

// quickest is a pattern for the names of the tests that together take a quarter of the time of all.
func quickest(verbose []byte) string {
	took := map[string]float64{}
	for _, m := range passed.FindAllSubmatch(verbose, -1) {
		seconds, _ := strconv.ParseFloat(string(m[2]), 64)
		// A test whose subtests are parallel is shorter than they are.
		took[string(m[1])] = max(took[string(m[1])], seconds)
	}
	all := 0.0
	for _, seconds := range took {
		all += seconds
	}
	names, sum := []string{}, 0.0
	for _, name := range slices.SortedFunc(maps.Keys(took), func(a, b string) int {
		return cmp.Or(cmp.Compare(took[a], took[b]), strings.Compare(a, b))
	}) {
		if sum += took[name]; sum <= all/4 {
			names = append(names, name)
		}
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// compile builds the tests.
func (s suite) compile(flags ...string) ([]byte, error) {
	args := append([]string{"test", "-c", "-o", s.binary}, flags...)
	return exec.Command("go", append(args, s.dir)...).CombinedOutput()
}

var failed = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)

// verdict reports whether a test fails, and which.
func (s suite) verdict() (noticed bool, by string) {
	for _, p := range s.parts {
		out, err := s.run(p.within, append(p.choice, "-test.failfast")...)
		if err == nil {
			continue
		}
		if bytes.Contains(out, []byte("panic: test timed out")) {
			return true, "it hangs"
		}
		if first := failed.FindSubmatch(out); first != nil {
			return true, string(first[1])
		}
		return true, err.Error()
	}
	return false, ""
}

// run runs the tests in the package's folder, as go test does.
func (s suite) run(within time.Duration, flags ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, append(flags, "-test.timeout", within.String())...)
	cmd.Dir = s.dir
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}
