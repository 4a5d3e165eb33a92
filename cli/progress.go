package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"kith/files/exporter"
	"kith/files/importer"
	"kith/reconcile"
	"kith/storage/sqlstore"
)

// progress shows how far a command is: as a bar on a terminal, as a line every two seconds elsewhere.
type progress struct {
	name     string // of the command
	out      io.Writer
	terminal bool
	every    time.Duration // between lines
	bar      *progressbar.ProgressBar
	last     time.Time
	began    time.Time // when [progress.left] was first asked
	first    int64     // how much was done then
	problems int
}

func newProgress(name string, out io.Writer) *progress {
	return &progress{name: name, out: out, terminal: drawsBars(out), every: 2 * time.Second}
}

// drawsBars reports whether bars may be drawn, which takes escape sequences: on a terminal that knows them,
// unless NO_COLOR (https://no-color.org) asks for text without.
func drawsBars(out io.Writer) bool {
	return onTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func onTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// show shows how much of a total is done, 0 if the total is not known; resumed says what an earlier run has done, or is "".
func (p *progress) show(resumed string, done, total int64, status string) {
	now := time.Now()
	if p.last.IsZero() {
		p.last = now
		if resumed != "" {
			fmt.Fprintf(p.out, "%s: going on after %s\n", p.name, resumed)
		}
		if p.terminal {
			p.bar = progressbar.NewOptions64(-1,
				progressbar.OptionSetWriter(p.out),
				progressbar.OptionSetWidth(30),
				progressbar.OptionUseANSICodes(true),
				progressbar.OptionShowDescriptionAtLineEnd(),
				progressbar.OptionSetElapsedTime(false),
				progressbar.OptionSetPredictTime(false), // it does not take a resumed run into account; the status shows the time left
				progressbar.OptionSetSpinnerChangeInterval(0),
				progressbar.OptionClearOnFinish(),
			)
		}
	}
	switch {
	case p.bar != nil:
		p.bar.ChangeMax64(cmp.Or(total, -1)) // −1 is drawn as a spinner
		p.bar.Describe(status)
		_ = p.bar.Set64(done) // a bar that cannot be drawn is no reason to stop
	case now.Sub(p.last) < p.every:
	case total > 0:
		p.last = now
		fmt.Fprintf(p.out, "%s: %3d %%, %s\n", p.name, 100*done/total, status)
	default:
		p.last = now
		fmt.Fprintf(p.out, "%s: %s\n", p.name, status)
	}
}

func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
	}
}

// problem shows a line that could not be imported.
func (p *progress) problem(problem importer.Problem) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	p.problems++
	fmt.Fprintln(p.out, printable(problem.String()))
	if p.problems == shownProblems {
		fmt.Fprintln(p.out, "import: further lines that cannot be imported are only counted")
	}
}

// importing shows an import, by the bytes read, as they are on disk.
func (p *progress) importing(s importer.Progress) {
	status := fmt.Sprintf("%s edges, %s edges/s", humanize.Comma(s.Handled()), humanize.Comma(int64(s.EdgesPerSecond)))
	p.show(after(s.Resumed, s.Lines, "lines"), s.Bytes, s.TotalBytes, status+p.left(s.Bytes, s.TotalBytes))
}

// comparing shows a full reconcile scan.
func (p *progress) comparing(s reconcile.Progress) {
	status := fmt.Sprintf("%s, %s rows, %s found", s.Doing, humanize.Comma(s.Rows), humanize.Comma(int64(s.Found)))
	p.show(after(s.Resumed, s.Rows, "rows"), s.Done, s.Total, status+p.left(s.Done, s.Total))
}

// exporting shows an export. The number of rows of a shard is not known in advance.
func (p *progress) exporting(s exporter.Progress) {
	status := fmt.Sprintf("shard %d of %d, %s rows, %s rows/s", s.Shard, s.Shards, humanize.Comma(s.Rows), humanize.Comma(int64(s.RowsPerSecond())))
	p.show(after(s.Kept > 0, int64(s.Kept), fmt.Sprintf("of %d shards", s.Shards)), int64(s.Done), int64(s.Shards), status)
}

// moving shows a move of buckets.
func (p *progress) moving(s sqlstore.MoveProgress, expected int64) {
	status := fmt.Sprintf("%s %s, %s rows", s.Phase, s.Table, humanize.Comma(s.Rows))
	if s.Again > 0 {
		status += fmt.Sprintf(", %s again", humanize.Comma(s.Again))
	}
	p.show("", min(s.Rows, expected), expected, status)
}

func after(resumed bool, n int64, what string) string {
	if !resumed {
		return ""
	}
	return humanize.Comma(n) + " " + what
}

// left is the time until the end at the pace of this run, behind a status; "" if it is not known, or over.
func (p *progress) left(done, total int64) string {
	if p.began.IsZero() {
		p.began, p.first = time.Now(), done
	}
	if done <= p.first || done >= total {
		return ""
	}
	left := time.Duration(float64(time.Since(p.began)) * float64(total-done) / float64(done-p.first))
	return fmt.Sprintf(", %s left", left.Round(time.Second))
}
