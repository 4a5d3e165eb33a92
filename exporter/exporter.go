// Package exporter writes a store into files that an import reads.
//
// Each shard is read as of one moment, in pages, and written to files of its own, one
// for each kind of rows. A file gets its name when it is whole and on the disk, and
// the manifest names the files of a shard when all of them are. So an export that was
// killed goes on with the shards that are missing, and never takes half of one for
// the whole.
package exporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/graphfile"
	"kith/storage"
)

// Store is the store that is exported.
type Store interface {
	storage.ShardReader

	// UUID is the store's identity: an export goes on in a folder of the same store only.
	UUID() string
}

// Config says where an export goes.
type Config struct {
	Dir   string // made where missing; it holds nothing but exports of one store
	Plain bool   // files are not compressed

	// Page is how many rows are read and kept at a time. Defaults to DefaultPage.
	Page int

	// OnProgress is called when a shard begins, and after each page. It may be nil.
	OnProgress func(Progress)
}

// DefaultPage is how many rows are read at a time, see [Config.Page].
const DefaultPage = 5000

// ErrInterrupted: the context ended before the export did.
var ErrInterrupted = errors.New("interrupted")

// Report is what an export has written.
type Report struct {
	Rows    int64 // written by this run, users and edges
	Bytes   int64 // of the files of all whole shards
	Shards  int   // of the store
	Done    int   // shards that are whole
	Kept    int   // of these, shards that an earlier run has written
	Elapsed time.Duration

	// Totals are the rows of all whole shards by kind, with their digests, which are equal for
	// equal stores, whatever their numbers of shards.
	Totals map[graphfile.Kind]storage.Digest
}

// RowsPerSecond is the rate of this run.
func (r Report) RowsPerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Rows) / r.Elapsed.Seconds()
}

// Progress is how far an export is.
type Progress struct {
	Report
	Shard int // the one under way
}

// Export is an export ready to run: its folder is locked against others.
type Export struct {
	config   Config
	folder   *folder
	manifest graphfile.Manifest
	found    bool // an earlier run has left the manifest
	report   Report
	began    time.Time
}

// Open makes or examines the folder; the store need not be open yet. [ErrFolder]. The caller closes
// the export.
func Open(config Config) (*Export, error) {
	if config.Page == 0 {
		config.Page = DefaultPage
	}
	f, err := openFolder(config.Dir)
	if err != nil {
		return nil, err
	}
	e := &Export{config: config, folder: f}
	if e.manifest, e.found, err = f.examine(); err != nil {
		f.close()
		return nil, err
	}
	return e, nil
}

// Close gives the folder free.
func (e *Export) Close() { e.folder.close() }

// Run exports the shards that the folder does not have yet, once. It returns what the folder holds
// also with an error, such as [ErrFolder] if it holds the export of another store, or
// [ErrInterrupted].
func (e *Export) Run(ctx context.Context, store Store) (Report, error) {
	e.began = time.Now()
	err := e.all(ctx, store)
	e.sum()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w after %d of %d shards", ErrInterrupted, e.report.Done, e.report.Shards)
	}
	return e.report, err
}

func (e *Export) all(ctx context.Context, store Store) error {
	if err := e.begin(store); err != nil {
		return err
	}
	whole := e.wholeShards()
	e.report.Kept = len(whole)
	for shard := range store.Shards() {
		if whole[shard] {
			continue
		}
		e.progress(shard)
		done, err := e.shard(ctx, store, shard)
		if err != nil {
			return err
		}
		e.manifest.Done = insert(e.manifest.Done, done)
		if err := e.folder.save(e.manifest); err != nil {
			return err
		}
	}
	return nil
}

// begin sees that the manifest is of this store, and removes what an earlier run has left half done.
func (e *Export) begin(store Store) error {
	want := graphfile.Manifest{Format: graphfile.ManifestFormat, Store: store.UUID(), Shards: store.Shards(), Gzip: !e.config.Plain}
	e.report.Shards = want.Shards
	if !e.found {
		e.manifest = want
		return e.folder.save(want)
	}
	switch is := e.manifest; {
	case is.Store != want.Store || is.Shards != want.Shards:
		return fmt.Errorf("%w: %s holds the export of another store, of %d shards: choose another folder", ErrFolder, e.config.Dir, is.Shards)
	case is.Gzip != want.Gzip:
		how := "plain: go on with --plain"
		if is.Gzip {
			how = "gzipped: go on without --plain"
		}
		return fmt.Errorf("%w: the files in %s are %s, or choose another folder", ErrFolder, e.config.Dir, how)
	}
	return nil
}

// wholeShards keeps those shards in the manifest whose files are there, and removes the files of the others.
func (e *Export) wholeShards() map[int]bool {
	whole := make(map[int]bool)
	kept := e.manifest.Done[:0]
	for _, s := range e.manifest.Done {
		if s.Check(e.config.Dir) == nil {
			whole[s.Shard] = true
			kept = append(kept, s)
		}
	}
	e.manifest.Done = kept
	return whole
}

// shard exports one shard.
func (e *Export) shard(ctx context.Context, store Store, shard int) (graphfile.ExportShard, error) {
	done := graphfile.ExportShard{Shard: shard, At: time.Now().UTC()}
	if err := e.folder.removeOf(shard); err != nil {
		return done, err
	}
	files := newShardFiles(e.config.Dir, shard, !e.config.Plain)
	defer files.abandon()
	err := store.ReadShard(ctx, shard, func(at storage.ShardMoment) error {
		if err := e.users(ctx, at, files); err != nil {
			return err
		}
		for _, side := range []storage.Side{storage.Forward, storage.Requests} {
			if err := e.edges(ctx, at, side, files); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return done, err
	}
	done.Files, err = files.finish()
	if err != nil {
		return done, err
	}
	return done, e.folder.sync()
}

func (e *Export) users(ctx context.Context, at storage.ShardMoment, files *shardFiles) error {
	for after := storage.UserID(0); ; {
		page, err := at.Users(ctx, after, e.config.Page)
		if err != nil {
			return err
		}
		for _, u := range page {
			if err := files.user(u); err != nil {
				return err
			}
			after = u.User.ID
		}
		e.wrote(len(page), files.ordinal)
		if len(page) < e.config.Page {
			return nil
		}
	}
}

func (e *Export) edges(ctx context.Context, at storage.ShardMoment, side storage.Side, files *shardFiles) error {
	for after := (storage.Pair{}); ; {
		page, err := at.Rows(ctx, side, after, e.config.Page)
		if err != nil {
			return err
		}
		for _, edge := range page {
			if err := files.edge(side, edge); err != nil {
				return err
			}
			after = edge.Pair()
		}
		e.wrote(len(page), files.ordinal)
		if len(page) < e.config.Page {
			return nil
		}
	}
}

func (e *Export) wrote(rows, shard int) {
	e.report.Rows += int64(rows)
	e.progress(shard)
}

func (e *Export) progress(shard int) {
	if e.config.OnProgress == nil {
		return
	}
	e.report.Elapsed, e.report.Done = time.Since(e.began), len(e.manifest.Done)
	e.config.OnProgress(Progress{Report: e.report, Shard: shard})
}

// sum fills in what the folder holds.
func (e *Export) sum() {
	e.report.Elapsed, e.report.Done, e.report.Totals = time.Since(e.began), len(e.manifest.Done), e.manifest.Totals()
	for _, s := range e.manifest.Done {
		for _, f := range s.Files {
			e.report.Bytes += f.Bytes
		}
	}
}

// insert keeps shards ascending.
func insert(shards []graphfile.ExportShard, s graphfile.ExportShard) []graphfile.ExportShard {
	at, _ := slices.BinarySearchFunc(shards, s, func(a, b graphfile.ExportShard) int { return cmp.Compare(a.Shard, b.Shard) })
	return slices.Insert(shards, at, s)
}
