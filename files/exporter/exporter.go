// Package exporter writes a store into files that an import reads.
//
// Each shard is read as of one moment, in pages, and written to files of its own, one
// for each kind of rows. A file gets its name when it is complete and on the disk, and the manifest
// names the files of a shard when all of them are. So an export that was killed continues with the
// shards that are missing, and never takes half of a shard for all of it.
//
// Buckets may move from shard to shard meanwhile. What a shard had at its moment is a part of the
// export, without the buckets that other parts have. Shards are read until no bucket is missing, so
// each user's rows come once, and are as of one moment.
package exporter

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/files/graphfile"
	"kith/storage"
	"kith/storage/contents"
	"kith/storage/sides"
	"kith/storage/sleep"
)

// Store is the store that is exported.
type Store interface {
	contents.Reader

	// UUID is the store's identity: an export continues only in a folder of the same store.
	UUID() string
}

// Config says where an export goes.
type Config struct {
	Dir   string // made if missing; it holds only exports of one store
	Plain bool   // files are not compressed

	// Page is how many rows are read and kept at a time. Defaults to DefaultPage.
	Page int

	// Cursor is asked for the cursor of the manifest, by each run that has no part yet, before the first row is read; "" if there is
	// none. It may be nil.
	Cursor func() string

	// OnProgress is called when a shard begins, and after each page. It may be nil.
	OnProgress func(Progress)
}

// DefaultPage is how many rows are read at a time, see [Config.Page].
const DefaultPage = 5000

// ErrInterrupted: the context ended before the export did.
var ErrInterrupted = errors.New("interrupted")

// Report is what an export has written.
type Report struct {
	Rows    int64         `json:"rows"`   // written by this run, of all kinds
	Bytes   int64         `json:"bytes"`  // of the files of all whole parts
	Shards  int           `json:"shards"` // of the store
	Done    int           `json:"-"`      // shards that have been read
	Kept    int           `json:"kept"`   // of these, shards that an earlier run has read
	First   time.Time     `json:"first"`  // when the first whole part was read
	Last    time.Time     `json:"last"`   // and when the last one was: they are far apart if an interrupted export was continued late
	Elapsed time.Duration `json:"-"`

	// Totals are the rows of all whole parts by kind, with their digests, which are equal for
	// equal stores, whatever their numbers of shards.
	Totals map[graphfile.Kind]sides.Digest `json:"-"`
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
	Shard int // the shard that is being read
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
	config.Page = cmp.Or(config.Page, DefaultPage)
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

// Close unlocks the folder.
func (e *Export) Close() { e.folder.close() }

// Run exports the shards that the folder does not have yet, once. It also returns what the folder
// holds if there is an error, such as [ErrFolder] if the folder holds the export of another store,
// or [ErrInterrupted].
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
	e.report.Kept = e.shardsDone()
	for lonely := time.Now(); ; {
		missing := e.manifest.Missing()
		if !slices.Contains(missing, '1') {
			return nil
		}
		for i := 0; i < store.Shards(); i++ {
			if err := e.shard(ctx, store, i); err != nil {
				return err
			}
		}
		e.report.Shards = store.Shards()
		if now := e.manifest.Missing(); !bytes.Equal(now, missing) {
			lonely = time.Now()
			continue
		}
		// Between two steps of a move neither shard has the buckets, or one has got them after we read
		// it.
		if time.Since(lonely) > handedOver {
			return fmt.Errorf("%w: no shard has bucket %d", storage.ErrUnavailable, bytes.IndexByte(missing, '1'))
		}
		if err := sleep.For(ctx, lookAgain); err != nil {
			return err
		}
	}
}

const (
	// handedOver is how long buckets may be moving without a shard that has them. A switch takes less
	// than a second; if the mover dies in it, a write that waits ends it after some seconds.
	handedOver = 30 * time.Second

	lookAgain = 100 * time.Millisecond
)

// begin checks that the manifest is of this store and not of a whole export, keeps those of its parts whose files exist, and
// removes what an earlier run has left incomplete. A whole export is not touched: to say that nothing was left to do would take
// the old rows for a new backup.
func (e *Export) begin(store Store) error {
	want := graphfile.Manifest{Format: graphfile.ManifestFormat, Store: store.UUID(), Gzip: !e.config.Plain}
	e.report.Shards = store.Shards()
	if !e.found {
		e.manifest = want
	}
	switch is := e.manifest; {
	case is.Store != want.Store:
		return fmt.Errorf("%w: %s holds the export of another store: choose another folder", ErrFolder, e.config.Dir)
	case is.Gzip != want.Gzip:
		how := "plain: go on with --plain"
		if is.Gzip {
			how = "gzipped: go on without --plain"
		}
		return fmt.Errorf("%w: the files in %s are %s, or choose another folder", ErrFolder, e.config.Dir, how)
	}
	e.manifest.Done = slices.DeleteFunc(e.manifest.Done, func(p graphfile.ExportPart) bool { return p.Check(e.config.Dir) != nil })
	if !slices.Contains(e.manifest.Missing(), '1') {
		e.sum()
		return fmt.Errorf("%w: %s holds a whole export, made %s: choose another folder", ErrFolder, e.config.Dir, e.report.Last.Format(time.RFC3339))
	}
	if len(e.manifest.Done) == 0 && e.config.Cursor != nil { // perhaps the logs did not answer an earlier run
		e.manifest.Cursor = cmp.Or(e.config.Cursor(), e.manifest.Cursor)
	}
	if err := e.folder.save(e.manifest); err != nil {
		return err
	}
	return e.folder.removeBut(e.manifest)
}

// shard exports those buckets of one shard that are missing, if it has any.
func (e *Export) shard(ctx context.Context, store Store, shard int) error {
	e.progress(shard)
	done := graphfile.ExportPart{Part: e.freePart(shard), Shard: shard, At: time.Now().UTC()}
	var files *partFiles
	err := store.ReadShard(ctx, shard, func(at contents.Moment) error {
		buckets := e.missingOf(at)
		if done.Buckets = buckets.Ranges(); len(done.Buckets) == 0 {
			return nil
		}
		files = newPartFiles(e.config.Dir, done.Part, shard, buckets, !e.config.Plain)
		return e.rows(ctx, at, files)
	})
	if files == nil {
		return err
	}
	defer files.abandon()
	if err != nil {
		return err
	}
	if done.Files, err = files.finish(); err != nil {
		return err
	}
	if err := e.folder.sync(); err != nil {
		return err
	}
	e.manifest.Done = append(e.manifest.Done, done)
	slices.SortFunc(e.manifest.Done, func(a, b graphfile.ExportPart) int { return cmp.Compare(a.Part, b.Part) })
	return e.folder.save(e.manifest)
}

// missingOf are the buckets that a shard has and that no part has.
func (e *Export) missingOf(at contents.Moment) storage.Choice {
	missing := e.manifest.Missing()
	return missing.Without(missing.Without(at.Served()))
}

// mostPosts is how many posts are read at a time: a post has up to 30 KB of text and media.
const mostPosts = 500

// rows writes the rows of a shard that are of the part, kind by kind.
func (e *Export) rows(ctx context.Context, at contents.Moment, files *partFiles) error {
	p := &pager{e: e, files: files}
	most := e.config.Page
	records(p, graphfile.UserFormat, most, func(last contents.Account, limit int) ([]contents.Account, error) {
		return at.Users(ctx, last.User.ID, limit)
	}, func(u contents.Account) int { return u.User.ID.Bucket() })
	edges := func(side storage.Side) func(storage.Edge, int) ([]storage.Edge, error) {
		return func(last storage.Edge, limit int) ([]storage.Edge, error) {
			return at.Rows(ctx, side, last.Pair(), limit)
		}
	}
	bucketOfEdge := func(row storage.Edge) int { return row.From.Bucket() }
	for _, side := range []storage.Side{storage.Forward, storage.Requests} {
		pages(p, most, edges(side), bucketOfEdge, func(row storage.Edge) error { return files.edge(side, row) })
	}
	for _, kind := range storage.AnnotationKinds {
		records(p, graphfile.AnnotationFormat(kind), most, func(last storage.Annotation, limit int) ([]storage.Annotation, error) {
			return at.Annotations(ctx, kind, last.Pair, limit)
		}, func(row storage.Annotation) int { return row.From.Bucket() })
	}
	records(p, graphfile.PostFormat, min(most, mostPosts), func(last storage.PostRow, limit int) ([]storage.PostRow, error) {
		return at.Posts(ctx, last.PostID, limit)
	}, func(p storage.PostRow) int { return p.Author.Bucket() })
	records(p, graphfile.CommentFormat, most, func(last storage.Comment, limit int) ([]storage.Comment, error) {
		return at.Comments(ctx, last.CommentID, limit)
	}, func(c storage.Comment) int { return c.Author.Bucket() })
	records(p, graphfile.FavoriteFormat, most, edges(storage.Favorites), bucketOfEdge)
	records(p, graphfile.ListFormat, most, func(last storage.UserList, limit int) ([]storage.UserList, error) {
		return at.Lists(ctx, last.ListID, limit)
	}, func(l storage.UserList) int { return l.Owner.Bucket() })
	records(p, graphfile.RelationFormat(nil), most, func(last storage.RelationRow, limit int) ([]storage.RelationRow, error) {
		return at.Relations(ctx, last.Pair(), limit)
	}, func(row storage.RelationRow) int { return row.From.Bucket() })
	records(p, graphfile.IdentityFormat, most, func(last storage.LinkedIdentity, limit int) ([]storage.LinkedIdentity, error) {
		if last.Issuer == "" {
			return at.Identities(ctx, "", limit)
		}
		return at.Identities(ctx, last.Digest(), limit)
	}, func(l storage.LinkedIdentity) int { return storage.BucketOfHandle(l.Digest()) })
	records(p, graphfile.ModerationFormat, most, func(last storage.ModerationEntry, limit int) ([]storage.ModerationEntry, error) {
		return at.Moderation(ctx, last, limit)
	}, func(e storage.ModerationEntry) int { return e.Owner.Bucket() })
	return p.err
}

// pager reads rows page by page until the first error.
type pager struct {
	e     *Export
	files *partFiles
	err   error
}

// records writes all rows of a kind as records.
func records[T any](p *pager, format graphfile.Format[T], limit int, read func(last T, limit int) ([]T, error), bucketOf func(T) int) {
	pages(p, limit, read, bucketOf, func(row T) error {
		record, err := format.Record(row)
		if err != nil {
			return err
		}
		return p.files.write(format.Kind, record)
	})
}

// pages reads rows from the zero row on, and writes those whose buckets are of the part.
func pages[T any](p *pager, limit int, read func(last T, limit int) ([]T, error), bucketOf func(T) int, write func(T) error) {
	var last T
	for more := p.err == nil; more; {
		var page []T
		page, p.err = read(last, limit)
		for _, row := range page {
			if last = row; p.err == nil && p.files.buckets.Has(bucketOf(row)) {
				p.err = write(row)
			}
		}
		if more = p.err == nil && len(page) >= limit; p.err == nil {
			p.e.report.Rows += p.files.newRows()
			p.e.progress(p.files.shard)
		}
	}
}

func (e *Export) progress(shard int) {
	if e.config.OnProgress == nil {
		return
	}
	e.report.Elapsed, e.report.Done = time.Since(e.began), e.shardsDone()
	e.config.OnProgress(Progress{Report: e.report, Shard: shard})
}

// sum fills in what the folder holds.
func (e *Export) sum() {
	e.report.Elapsed, e.report.Done, e.report.Totals = time.Since(e.began), e.shardsDone(), e.manifest.Totals()
	e.report.Bytes = 0
	for i, s := range e.manifest.Done {
		if i == 0 || s.At.Before(e.report.First) {
			e.report.First = s.At
		}
		if s.At.After(e.report.Last) {
			e.report.Last = s.At
		}
		for _, f := range s.Files {
			e.report.Bytes += f.Bytes
		}
	}
}

// shardsDone is the number of shards that have parts.
func (e *Export) shardsDone() int {
	shards := make(map[int]bool)
	for _, p := range e.manifest.Done {
		shards[p.Shard] = true
	}
	return len(shards)
}

// freePart is the number of a new part: the shard's number if that is free, otherwise the first
// free one.
func (e *Export) freePart(shard int) int {
	taken := func(n int) bool {
		return slices.ContainsFunc(e.manifest.Done, func(p graphfile.ExportPart) bool { return p.Part == n })
	}
	for n := 0; taken(shard); n++ {
		shard = n
	}
	return shard
}
