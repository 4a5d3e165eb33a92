// Package kithtest runs Kith as its users do: the program, built from this tree,
// as a child process, asked over HTTP.
//
//	p := kithtest.Start(t, kithtest.Args("--store", "sqlite:"+path, "--demo"))
//	p.Query(t, `{ user(id: 1) { handle } }`, nil, &answer)
//	end := p.Stop(t)
package kithtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var built struct {
	sync.Once
	path string
	err  error
}

// Binary builds the program, once per test binary, and returns its path.
func Binary(t testing.TB) string {
	t.Helper()
	built.Do(func() { built.path, built.err = build() })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// build leaves the program in the tree's bin folder, which git ignores. It is moved
// there when it is complete: other tests may be building, or running, the same.
func build() (string, error) {
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
	compile := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(draft, "kith"), ".")
	compile.Dir = root
	if out, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build kith: %w\n%s", err, out)
	}
	path := filepath.Join(folder, "kith")
	return path, os.Rename(filepath.Join(draft, "kith"), path)
}

// moduleRoot is the folder of go.mod.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}
