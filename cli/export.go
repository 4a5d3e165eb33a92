package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"

	"kith/files/changes"
	"kith/files/exporter"
	"kith/files/graphfile"
	"kith/replication/binlog"
	"kith/storage/sqlstore"
)

// ExportCmd is `kith export DIR`.
type ExportCmd struct {
	Dir   string `arg:"" help:"Folder for the files and nothing else, created if missing."`
	Plain bool   `help:"Do not compress the files."`
	Output
}

// Run exports the store. Progress goes to the standard error, the summary to the standard output.
func (c *ExportCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	progress := newProgress("export", k.Stderr)
	export, err := exporter.Open(exporter.Config{Dir: c.Dir, Plain: c.Plain, OnProgress: progress.exporting, Cursor: func() string {
		asking, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		logger := settings.Logger(k.Stderr)
		cursor, err := changes.Now(asking, store, logger)
		if err != nil && !errors.Is(err, binlog.ErrNoLog) {
			logger.WarnContext(ctx, "the manifest gets no cursor, from which kith changes would go on: the logs cannot be read", "error", err)
		}
		return cursor
	}})
	if err != nil {
		return unusable{err}
	}
	defer export.Close()
	report, err := export.Run(ctx, store)
	progress.done()
	if err != nil {
		return adviseExport(err)
	}
	return c.summarise(k.Stdout, report)
}

// adviseExport adds to an export's error how to continue, if that is of use.
func adviseExport(err error) error {
	switch {
	case errors.Is(err, exporter.ErrFolder):
		return unusable{err}
	case errors.Is(err, graphfile.ErrDamaged):
		return fmt.Errorf("%w; correct it or remove it in the database, then run the same command again", err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("%w; make room and run the same command again: it goes on after what is whole", err)
	}
	return fmt.Errorf("%w; run the same command again: it goes on after what is whole", err)
}

// exportReport is the report for programs.
type exportReport struct {
	exporter.Report
	Seconds       float64                       `json:"seconds"`
	RowsPerSecond float64                       `json:"rowsPerSecond"`
	Totals        map[graphfile.Kind]exportKind `json:"totals"`
}

type exportKind struct {
	Rows   int64  `json:"rows"`
	Digest string `json:"digest"` // 16 hexadecimal digits
}

// summarise writes what the folder holds, with the digests by which two exports are compared.
func (c *ExportCmd) summarise(out io.Writer, r exporter.Report) error {
	if c.JSON() {
		report := exportReport{r, r.Elapsed.Seconds(), r.RowsPerSecond(), map[graphfile.Kind]exportKind{}}
		for kind, total := range r.Totals {
			report.Totals[kind] = exportKind{total.Rows, fmt.Sprintf("%016x", total.Mixed)}
		}
		return WriteJSON(out, report)
	}
	shards := fmt.Sprintf("%d shards", r.Shards)
	if r.Kept > 0 {
		shards = fmt.Sprintf("%d of %d shards", r.Shards-r.Kept, r.Shards)
	}
	fmt.Fprintf(out, "exported %s rows of %s in %s (%s rows/s), %s in all\n",
		humanize.Comma(r.Rows), shards, seconds(r.Elapsed), humanize.Comma(int64(r.RowsPerSecond())), humanize.Bytes(uint64(r.Bytes)))
	for _, kind := range graphfile.Kinds() {
		if total := r.Totals[kind]; total.Rows > 0 {
			fmt.Fprintf(out, "  %-18s%12s  digest %016x\n", kind, humanize.Comma(total.Rows), total.Mixed)
		}
	}
	if r.Kept > 0 {
		fmt.Fprintf(out, "went on with an interrupted export: its shards are as of %s to %s\n", r.First.Format(time.RFC3339), r.Last.Format(time.RFC3339))
	}
	return nil
}
