package testenv

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"kith/internal/must"
)

// A process that wants the packages of a folder waits while another one installs them, and then takes what is there.
func TestPackagesAreInstalledByOneProcess(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(folder, filepath.FromSlash(name))
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("package.json", `{"name": "empty", "version": "1.0.0"}`)
	write("package-lock.json", `{"name": "empty", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": {"name": "empty", "version": "1.0.0"}}}`)
	lock, err := lockFile(filepath.Join(folder, "package-lock.json"), syscall.LOCK_EX) // as the other process has it
	must.OK(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		NPM(t, folder)
	}()
	select {
	case <-done:
		t.Error("it did not wait")
	case <-time.After(100 * time.Millisecond): // nothing tells that it waits
	}
	write("node_modules/theirs/index.js", "")
	write("node_modules/.package-lock.json", "{}")
	later := time.Now().Add(time.Minute)
	must.OK(t, os.Chtimes(filepath.Join(folder, "node_modules", ".package-lock.json"), later, later))
	lock.Close()
	<-done
	if _, err := os.Stat(filepath.Join(folder, "node_modules", "theirs", "index.js")); err != nil {
		t.Errorf("what the other process installed is gone: %v", err)
	}
}
