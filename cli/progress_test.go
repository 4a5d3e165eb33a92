package cli

import (
	"bytes"
	"os"
	"testing"

	"kith/internal/check"
)

// Progress bars are for terminals that understand escape sequences, unless NO_COLOR turns them off.
func TestWhereBarsAreDrawn(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminal can be made here:", err)
	}
	defer terminal.Close()
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	check.That(t, drawsBars(terminal) && !drawsBars(new(bytes.Buffer)), "a terminal has no bars, or a file has")
	check.That(t, newProgress("", terminal).terminal, "progress is not drawn")
	t.Setenv("TERM", "dumb")
	check.That(t, !drawsBars(terminal), "TERM=dumb is not heeded")
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	check.That(t, !newProgress("", terminal).terminal, "NO_COLOR is not heeded")
}
