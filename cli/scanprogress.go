package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"

	"kith/files/exporter"
	"kith/reconcile"
	"kith/storage/sqlstore"
)

// scanProgress shows how far a scan of the store is: as a bar on a terminal, as lines
// elsewhere.
type scanProgress struct {
	name     string // of the command
	out      io.Writer
	terminal bool
	every    time.Duration // between lines
	bar      *progressbar.ProgressBar
	begun    bool
	last     time.Time
}

func newScanProgress(name string, out io.Writer) *scanProgress {
	return &scanProgress{name: name, out: out, terminal: drawsBars(out), every: 2 * time.Second}
}

// full shows a full reconcile scan.
func (p *scanProgress) full(s reconcile.Progress) {
	resumed := ""
	if s.Resumed {
		resumed = humanize.Comma(s.Rows) + " rows"
	}
	p.show(resumed, s.Done, s.Total, scanStatus(s))
}

// export shows an export. The number of rows of a shard is not known in advance.
func (p *scanProgress) export(s exporter.Progress) {
	resumed := ""
	if s.Kept > 0 {
		resumed = fmt.Sprintf("%d of %d shards", s.Kept, s.Shards)
	}
	status := fmt.Sprintf("shard %d of %d, %s rows, %s rows/s", s.Shard, s.Shards, humanize.Comma(s.Rows), humanize.Comma(int64(s.RowsPerSecond())))
	p.show(resumed, int64(s.Done), int64(s.Shards), status)
}

// move shows a move of buckets.
func (p *scanProgress) move(s sqlstore.MoveProgress, expected int64) {
	status := fmt.Sprintf("%s %s, %s rows", s.Phase, s.Table, humanize.Comma(s.Rows))
	if s.Again > 0 {
		status += fmt.Sprintf(", %s again", humanize.Comma(s.Again))
	}
	p.show("", min(s.Rows, expected), expected, status)
}

// show shows how much of a total is done; resumed says what an earlier run has done, or is "".
func (p *scanProgress) show(resumed string, done, total int64, status string) {
	now := time.Now()
	if !p.begun {
		p.begun, p.last = true, now
		if resumed != "" {
			fmt.Fprintf(p.out, "%s: going on after %s\n", p.name, resumed)
		}
		if p.terminal {
			p.bar = newBar(p.out, total)
		}
	}
	if p.terminal {
		p.bar.ChangeMax64(total)
		p.bar.Describe(status)
		_ = p.bar.Set64(done) // a bar that cannot be drawn is no reason to stop
		return
	}
	if now.Sub(p.last) >= p.every {
		p.last = now
		fmt.Fprintf(p.out, "%s: %3d %%, %s\n", p.name, 100*done/max(total, 1), status)
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
