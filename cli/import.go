package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"

	"kith/files/graphfile"
	"kith/files/importer"
	"kith/graph/declared"
	"kith/storage"
	"kith/storage/sqlstore"
)

// ImportCmd is `kith import FILE…`.
type ImportCmd struct {
	Files     []string       `arg:"" name:"file" help:"Edge lists (from, to and optionally a time per line, separated by blanks, tabs or commas) and users files (CSV with the header id,handle,name,bio,avatar_url), plain or gzipped; - for standard input; or the folder of an export."`
	Relation  graphfile.Kind `enum:"${relations}" default:"following" placeholder:"RELATION" help:"What 'from' does to 'to', in edge lists that do not say: ${enum}. Default: ${default}."`
	Relations string         `env:"KITH_RELATIONS" placeholder:"FILE" help:"File of your product's kinds of relations, by which a number in a file of relations is a user's or a thing's. Default: none."`
	User      string         `placeholder:"HANDLE" help:"The files are lists of accounts of this user. Default: none."`
	Accounts  string         `enum:"follows,blocks,mutes,lists" default:"follows" placeholder:"KIND" help:"What they are of: ${enum}. Default: ${default}."`
	Strict    bool           `help:"Exit with 1 at the first malformed line."`
	Chunk     int            `bound:"chunk" default:"${import_chunk}" placeholder:"LINES" help:"Lines written together: more is faster, but more is redone after a kill. Default: ${default}."`
	MaxLoad   float64        `bound:"share" default:"1" placeholder:"SHARE" help:"Share of time spent writing, above 0, to spare gateways in use; 1: no pauses. Default: ${default}."`
	Output

	files    *importer.Import
	lists    []string // the texts of Files, if they are a user's
	progress *progress
}

// Vars are the variables that the help texts of this package name.
var Vars = kong.Vars{
	"import_chunk": fmt.Sprint(importer.DefaultChunk),
	"relations":    strings.Join(storage.Each(graphfile.Relations(), func(k graphfile.Kind) string { return string(k) }), ","),
}

// shownProblems is how many lines that could not be imported are shown.
const shownProblems = 20

// Prepare implements [Preparer]: it opens the files.
func (c *ImportCmd) Prepare(_ *Settings, k *kong.Context) (err error) {
	c.progress = newProgress("import", k.Stderr)
	of, err := declared.Read(c.Relations)
	if err != nil {
		return Misset("relations", err)
	}
	things := make(map[int64]bool)
	for _, kind := range of.Kinds() {
		things[kind.Number] = kind.To != ""
	}
	switch {
	case c.User == "" && c.Accounts != "follows":
		return unusable{errors.New("--accounts: it needs --user")}
	case c.User != "" && c.Relation != graphfile.Follows:
		return unusable{errors.New("--relation: --accounts is in its place with --user")}
	case c.User != "" && (c.Chunk != importer.DefaultChunk || c.MaxLoad != 1):
		return unusable{errors.New("--chunk and --max-load: with --user, lines are written as a gateway writes them")}
	case c.User != "":
		for _, name := range c.Files {
			text, err := readAccounts(name)
			if err != nil {
				return err
			}
			c.lists = append(c.lists, text)
		}
		return nil
	}
	c.files, err = importer.Open(importer.Config{
		Files:      c.Files,
		Stdin:      os.Stdin,
		Chunk:      c.Chunk,
		Relation:   c.Relation,
		Things:     things,
		Strict:     c.Strict,
		MaxLoad:    c.MaxLoad,
		Problems:   shownProblems,
		OnProblem:  c.progress.problem,
		OnProgress: c.progress.importing,
	})
	return err
}

// Run imports the files into the store. Progress and problems go to the standard
// error, the summary to the standard output. When the context ends, the error says how to continue.
func (c *ImportCmd) Run(ctx context.Context, settings *Settings, store storage.Store, k *kong.Context) error {
	if c.files != nil {
		defer c.files.Close()
	}
	served, ok := store.(*sqlstore.Store)
	if ok {
		defer settings.cluster().ChangingAll(ctx, served)()
	}
	run := c.run
	if c.User != "" {
		run = func(ctx context.Context, store storage.Store, out io.Writer) error {
			return c.bring(ctx, settings, store, out)
		}
	}
	err := run(ctx, store, k.Stdout)
	if !ok {
		return err // no other process can have it open
	}
	switch failed := err != nil && !errors.As(err, new(malformed)); {
	case served.Made() && failed:
		err = fmt.Errorf("%w; there was no store, and %s was made", err, settings.StoreName(served.Shards()))
	case served.Made():
		fmt.Fprintf(k.Stderr, "there was no store: %s was made\n", settings.StoreName(served.Shards()))
	}
	if failed := settings.forgetAll(context.WithoutCancel(ctx), served); failed != nil {
		if errors.As(err, new(malformed)) { // the exit code is that of the failure
			err = nil
		}
		err = errors.Join(err, fmt.Errorf("what gateways have in their caches may be old for ten minutes: %w", failed))
	}
	return err
}

func (c *ImportCmd) run(ctx context.Context, store storage.Store, out io.Writer) error {
	report, err := c.files.Run(ctx, store)
	c.progress.done()
	failed := advise(err, report)
	if err == nil || report.Lines > 0 {
		failed = errors.Join(failed, c.summarise(out, report))
	}
	if failed == nil && report.Malformed > 0 {
		return malformed(report.Malformed)
	}
	return failed
}

// malformed is how many lines of an import could not be read. The others are in the store.
type malformed int64

// Error implements error.
func (m malformed) Error() string {
	return fmt.Sprintf("malformed lines: %s, which were left out; the rest is imported", humanize.Comma(int64(m)))
}

// ExitCode tells scripts apart from failures what is only incomplete.
func (m malformed) ExitCode() int { return 2 }

// advise adds to an import's error how to continue.
func advise(err error, report importer.Report) error {
	switch {
	case err == nil || errors.Is(err, importer.ErrNothing), report.Lines == 0 && !(report.Resumable && errors.Is(err, importer.ErrInterrupted)):
		return err
	case report.Resumable:
		return fmt.Errorf("%w; run the same command again to go on from there", err)
	case errors.Is(err, importer.ErrInterrupted):
		return fmt.Errorf("%w; run the same command again to begin anew: what is in then counts as existed", err)
	}
	return err
}

// importReport is the report for programs.
type importReport struct {
	importer.Report
	Elapsed        *struct{} `json:"elapsed,omitempty"` // in seconds instead
	Seconds        float64   `json:"seconds"`
	EdgesPerSecond float64   `json:"edgesPerSecond"`
}

// summarise writes the outcome of the lines.
func (c *ImportCmd) summarise(out io.Writer, r importer.Report) error {
	if c.JSON() {
		return WriteJSON(out, importReport{Report: r, Seconds: r.Elapsed.Seconds(), EdgesPerSecond: r.EdgesPerSecond()})
	}
	fmt.Fprintf(out, "imported %s edges and %s users in %s (%s edges/s)\n",
		humanize.Comma(r.Edges), humanize.Comma(r.UsersMade), seconds(r.Elapsed), humanize.Comma(int64(r.EdgesPerSecond())))
	for _, row := range []struct {
		name   string
		n      int64
		always bool
		note   string
	}{
		{"beside edges", r.Beside, false, "marks, messages of requests, lists and entries of the moderation log"},
		{"posts", r.Posts, false, "deleted ones included, whose keys stay taken"},
		{"future posts", r.FuturePosts, false, "dated later than now: home feeds show them when their time has come"},
		{"comments", r.Comments, false, ""},
		{"favorites", r.Favorites, false, "those taken back included"},
		{"relations", r.Relations, false, "those that have ended included"},
		{"identities", r.Identities, false, "of identity providers"},
		{"duplicates", r.Duplicates, true, "the pair came earlier in this import"},
		{"existed", r.Existed, true, "the row was there before, and stays"},
		{"self-follows", r.SelfFollows, true, ""},
		{"malformed", r.Malformed, true, ""},
		{"users existed", r.UsersExisted, false, "listed in a users file, and unchanged"},
		{"refused", r.Refused, false, "lines of users whose handle is taken, or of what belongs to nobody"},
	} {
		if !row.always && row.n == 0 {
			continue
		}
		note := ""
		if row.n > 0 && row.note != "" {
			note = "  (" + row.note + ")"
		}
		fmt.Fprintf(out, "  %-14s%12s%s\n", row.name, humanize.Comma(row.n), note)
	}
	if r.Unnamed != "" {
		fmt.Fprintf(out, "  unknown columns, taken for from, to and time in this order: %s\n", r.Unnamed)
	}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
