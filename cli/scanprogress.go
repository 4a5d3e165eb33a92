package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"kith/reconcile"
)

// scanProgress shows how far a full scan is: as a bar on a terminal, as lines
// elsewhere.
type scanProgress struct {
	out      io.Writer
	terminal bool
	every    time.Duration // between lines
	bar      *progressbar.ProgressBar
	begun    bool
	last     time.Time
}

func newScanProgress(out io.Writer) *scanProgress {
	file, ok := out.(*os.File)
	return &scanProgress{out: out, terminal: ok && term.IsTerminal(int(file.Fd())), every: 2 * time.Second}
}

func (p *scanProgress) show(s reconcile.Progress) {
	now := time.Now()
	if !p.begun {
		p.begun, p.last = true, now
		if s.Resumed {
			fmt.Fprintf(p.out, "reconcile: going on after %s rows\n", humanize.Comma(s.Rows))
		}
		if p.terminal {
			p.bar = newBar(p.out, s.Total)
		}
	}
	if p.terminal {
		p.bar.ChangeMax64(s.Total)
		p.bar.Describe(scanStatus(s))
		_ = p.bar.Set64(s.Done) // a bar that cannot be drawn is no reason to stop
		return
	}
	if now.Sub(p.last) >= p.every {
		p.last = now
		fmt.Fprintf(p.out, "reconcile: %3d %%, %s\n", 100*s.Done/max(s.Total, 1), scanStatus(s))
	}
}

func (p *scanProgress) done() {
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
	}
}

// scanStatus is one line about a scan under way.
func scanStatus(s reconcile.Progress) string {
	line := fmt.Sprintf("%s, %s rows, %s found", s.Doing, humanize.Comma(s.Rows), humanize.Comma(int64(s.Found)))
	if s.Left > 0 {
		line += fmt.Sprintf(", %s left", s.Left.Round(time.Second))
	}
	return line
}
