package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"kith/files/importer"
)

// progress shows how far an import is.
type progress interface {
	show(importer.Progress)
	problem(importer.Problem)
	done()
}

// newProgress is a bar on a terminal and a line every two seconds elsewhere.
func newProgress(out io.Writer) progress {
	if drawsBars(out) {
		return &barProgress{out: out}
	}
	return &plainProgress{out: out, every: 2 * time.Second}
}

// drawsBars reports whether bars may be drawn, which takes escape sequences: on a terminal that knows them,
// unless NO_COLOR (https://no-color.org) asks for text without.
func drawsBars(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// plainProgress writes lines, as logs want them.
type plainProgress struct {
	out   io.Writer
	every time.Duration
	last  time.Time
	shown int
}

func (p *plainProgress) show(s importer.Progress) {
	now := time.Now()
	if p.last.IsZero() {
		p.last = now
		begin(p.out, s)
		return
	}
	if now.Sub(p.last) < p.every {
		return
	}
	p.last = now
	line := status(s)
	if s.TotalBytes > 0 {
		line = fmt.Sprintf("%3d %%, %s", 100*s.Bytes/s.TotalBytes, line)
	}
	fmt.Fprintln(p.out, "import:", line)
}

func (p *plainProgress) problem(problem importer.Problem) {
	p.shown++
	showProblem(p.out, problem, p.shown)
}

func (p *plainProgress) done() {}

// barProgress draws a bar of the bytes read, as they are on disk.
type barProgress struct {
	out   io.Writer
	bar   *progressbar.ProgressBar
	shown int
}

func (p *barProgress) show(s importer.Progress) {
	if p.bar == nil {
		begin(p.out, s)
		p.bar = newBar(p.out, s.TotalBytes)
	}
	p.bar.Describe(status(s))
	_ = p.bar.Set64(s.Bytes) // a bar that cannot be drawn is no reason to stop
}

func newBar(out io.Writer, total int64) *progressbar.ProgressBar {
	if total == 0 {
		total = -1 // unknown: drawn as a spinner
	}
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetWidth(30),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false), // it does not take a resumed import into account; status shows the time left
		progressbar.OptionSetSpinnerChangeInterval(0),
		progressbar.OptionClearOnFinish(),
	)
}

func (p *barProgress) problem(problem importer.Problem) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	p.shown++
	showProblem(p.out, problem, p.shown)
}

func (p *barProgress) done() {
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
	}
}

// begin says that an import is continued.
func begin(out io.Writer, s importer.Progress) {
	if s.Resumed {
		fmt.Fprintf(out, "import: going on after %s lines\n", humanize.Comma(s.Lines))
	}
}

// status is one line about an import under way.
func status(s importer.Progress) string {
	line := fmt.Sprintf("%s edges, %s edges/s", humanize.Comma(s.Handled()), humanize.Comma(int64(s.EdgesPerSecond)))
	if s.Left > 0 {
		line += fmt.Sprintf(", %s left", s.Left.Round(time.Second))
	}
	return line
}

// showProblem shows the n-th line that could not be imported.
func showProblem(out io.Writer, problem importer.Problem, n int) {
	fmt.Fprintln(out, printable(problem.String()))
	if n == shownProblems {
		fmt.Fprintln(out, "import: further lines that cannot be imported are only counted")
	}
}
