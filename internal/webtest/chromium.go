package webtest

import (
	"os"
	"os/exec"
	"testing"
)

// Chromium returns the path of a Chromium or Chrome on this machine. If there is none, it skips the
// test, or fails it under CI=true.
func Chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(t, "chromium is not installed")
	return ""
}

// Missing ends a test that cannot run here: skipped with the reason, failed under CI=true.
func Missing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}
