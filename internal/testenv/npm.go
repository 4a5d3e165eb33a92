package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"kith/internal/must"
)

// NPM installs the packages that folder's package-lock.json names into folder/node_modules, which git ignores,
// unless they are there. No package runs a script of its own while it is installed. Other processes that want the
// same packages wait: npm ci begins by removing what another one is writing.
func NPM(t testing.TB, folder string) {
	t.Helper()
	lock, err := lockFile(filepath.Join(folder, "package-lock.json"), syscall.LOCK_EX)
	must.OK(t, err)
	defer lock.Close()
	program(t, "node")
	npm := program(t, "npm")
	// npm writes its own list last, so a folder whose list is newer than the lock file is complete.
	wanted, installed := modified(folder, "package-lock.json"), modified(folder, "node_modules/.package-lock.json")
	if installed.After(wanted) {
		return
	}
	install := exec.CommandContext(t.Context(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = folder
	if out, err := install.CombinedOutput(); err != nil {
		Missing(t, "npm ci: "+err.Error()+": "+string(out))
	}
}

// modified returns when a file was last written, or the zero time for a file that does not exist.
func modified(folder, name string) time.Time {
	info, err := os.Stat(filepath.Join(folder, filepath.FromSlash(name)))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
