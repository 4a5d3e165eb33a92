// Package importer loads edge lists and users files into a store.
//
// Files are read in chunks of lines. A chunk is written to both tables of edges
// before the next one begins, and a checkpoint before each. So an import
// that was killed continues where it was when the same files are given again. Writes
// are guarded: existing rows win, and writing a chunk again changes nothing.
package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"kith/files/graphfile"
	"kith/storage"
	"kith/storage/sleep"
)

// window is how long before the import's start the times of untimed lines begin: with a microsecond
// for each line, it has room for 10^12 lines.
const window = storage.Micros(1e12)

// Config says what to import and how.
type Config struct {
	// Files are read in this order, users files ahead of edge lists, and these in the order of [graphfile.Relations] if they name
	// theirs, ahead of rows beside edges, posts, comments, favorites, identities and the moderation log. "-" is Stdin. A folder is an export, see
	// [graphfile.WholeExport]: its users are those of its users files.
	Files []string
	Stdin io.Reader

	// Start is when the import begins; lines without a time get one just before it.
	// An import that is continued keeps its first Start. Defaults to now.
	Start time.Time

	// Chunk is how many lines are written together, at most MaxChunk; of long records, fewer. Defaults to DefaultChunk.
	Chunk int

	// Relation is what the lines of edge lists mean if the lists do not name a relation. Defaults
	// to follows.
	Relation graphfile.Kind

	// Things says of declared kinds of relations, by their numbers, whether they lead to things.
	Things map[int64]bool

	// Strict ends the import at the first malformed line, with ErrMalformed. The
	// chunks before it stay.
	Strict bool

	// MaxLoad is the share of time in which rows may be written, above 0. If it is less than 1, transactions are small as well, so that
	// others wait for none of them for long. Defaults to 1, without pauses.
	MaxLoad float64

	// Problems is how many problems OnProblem gets; the others are only
	// counted.
	Problems int

	// OnProblem gets lines that could not be imported, OnProgress each
	// chunk and, at the beginning, none. Both may be nil.
	OnProblem  func(Problem)
	OnProgress func(Progress)
}

const (
	// DefaultChunk is how many lines are written together, see [Config.Chunk]. They are written in the order of the tables, so
	// the more they are, the more of them are neighbours there.
	DefaultChunk = 2_000_000
	// MaxChunk is how many lines a chunk may have: with the next one they take some 2.5 GB.
	MaxChunk = 10_000_000
	// mostKnown is how many users are known to exist without being looked up: they take some 0.3 GB.
	mostKnown = 10_000_000
)

// ErrInterrupted: the context ended before the import did. If the import can be continued, the last chunk may be half written, and
// continuing completes it. Otherwise every chunk that was begun is in the store.
var ErrInterrupted = errors.New("interrupted")

// ErrNothing: the files hold nothing that could be imported.
var ErrNothing = errors.New("there is nothing to import")

// Import is an import whose files have been examined, to be run once.
type Import struct {
	Config
	inputs []*input

	store       storage.Store
	checkpoints resumableStore
	key         string                  // of the checkpoint; empty: none is kept
	at          checkpoint              // as it would be saved now
	found       checkpoint              // as this run found it
	resumed     bool                    // whether an earlier run left a checkpoint
	users       map[storage.UserID]bool // true: exists; false: could not be made. Of who is not there nothing is known, or no more
	mostKnown   int                     // users at the beginning of a chunk
	began       time.Time               // of this run
	ending      func() error            // not nil when the import is interrupted
	refusals    int                     // how many users could not be made
	reported    int                     // problems so far

	pace          func(write func()) // pauses after what it has done, as MaxLoad has it, until the import is interrupted
	writing       *chunk             // nil: none
	written, toDo int64              // rows of that chunk: of users and records, and of both sides of edges
	edgeRows      int64              // of those written
}

// Open examines the files; the store need not be open yet. If a file does not exist or cannot be
// read, that is an error. The caller closes the import.
func Open(config Config) (*Import, error) {
	if config.Chunk = cmp.Or(config.Chunk, DefaultChunk); config.Chunk < 1 || config.Chunk > MaxChunk {
		return nil, fmt.Errorf("a chunk has 1 to %d lines, not %d", MaxChunk, config.Chunk)
	}
	config.Relation, config.MaxLoad = cmp.Or(config.Relation, graphfile.Follows), cmp.Or(config.MaxLoad, 1)
	if _, _, err := config.Relation.Row(); err != nil {
		return nil, err
	}
	inputs, err := probeAll(config.Files, config.Stdin, config.Relation)
	if err != nil {
		return nil, err
	}
	return &Import{Config: config, inputs: inputs, users: map[storage.UserID]bool{}, mostKnown: mostKnown}, nil
}

// Close closes files that can be read only once.
func (im *Import) Close() { closeStreams(im.inputs) }

// Run opens an import, and runs and closes it.
func Run(ctx context.Context, store storage.Store, config Config) (Report, error) {
	i, err := Open(config)
	if err != nil {
		return Report{}, err
	}
	defer i.Close()
	return i.Run(ctx, store)
}

// Run imports the files, once. It returns the outcome of their lines so far even if there is an
// error. When the context ends, it finishes the chunk that is being written, unless it can be continued, and returns
// [ErrInterrupted]. If the store afterwards holds nothing of what the files say, the error is
// [ErrNothing].
func (im *Import) Run(ctx context.Context, store storage.Store) (report Report, err error) {
	im.store, im.began, im.ending = store, time.Now(), ctx.Err
	im.pace = func(write func()) { _ = sleep.Throttle{Load: im.MaxLoad}.Do(ctx, func() error { write(); return nil }) }
	if im.Start.IsZero() {
		im.Start = im.began
	}
	if checkpoints, ok := store.(resumableStore); ok {
		im.checkpoints, im.key = checkpoints, checkpointKey(im.inputs, im.Relation)
	}
	im.found = checkpoint{Layout: checkpointLayout, Start: storage.MicrosOf(im.Start), Things: im.Things}
	if err := im.load(ctx); err != nil {
		return Report{}, err
	}
	im.found.Report.Resumable = im.key != ""
	im.at = im.found
	im.at.Report.Unnamed = unnamed(im.inputs)
	if err = im.all(ctx); err == nil && im.at.Report.empty() {
		err = fmt.Errorf("%w: of %d lines, %d are malformed, %d are follows of oneself and %d are refused",
			ErrNothing, im.at.Report.Lines, im.at.Report.Malformed, im.at.Report.SelfFollows, im.at.Report.Refused)
	}
	return im.at.Report, err
}

// all writes the chunks one after another, while the next one is being read.
func (im *Import) all(ctx context.Context) error {
	r := &splitter{inputs: im.inputs, things: im.Things, lines: im.Chunk, bytes: chunkBytes, strict: im.Strict, start: im.at.Start, room: im.Problems, pos: im.at.Next}
	reading, stop := context.WithCancel(ctx)
	chunks, failed := make(chan *chunk), make(chan error, 1)
	go func() {
		defer close(chunks)
		failed <- r.run(reading, chunks)
	}()
	defer im.await(stop, chunks)

	im.progress()
	for {
		select {
		case <-ctx.Done():
			return im.interrupted(ctx)
		case c, ok := <-chunks:
			if !ok {
				return im.finish(ctx, <-failed)
			}
			if ctx.Err() != nil { // select chooses at random when both are ready
				return im.interrupted(ctx)
			}
			if err := im.commit(ctx, c); errors.Is(err, errStopped) {
				return im.stopped()
			} else if err != nil {
				return err
			}
		}
	}
}

// await ends the reading. A read from a source that can be read only once, such as a terminal,
// may never return, so await does not wait for it.
func (im *Import) await(stop func(), chunks <-chan *chunk) {
	stop()
	for _, in := range im.inputs {
		if in.stream != nil {
			return
		}
	}
	for range chunks {
	}
}

func (im *Import) finish(ctx context.Context, err error) error {
	if err == nil && ctx.Err() != nil && im.at.Next.File < len(im.inputs) {
		return im.interrupted(ctx)
	}
	if err != nil {
		return errors.Join(err, im.pause(ctx))
	}
	return im.forget(context.WithoutCancel(ctx))
}

func (im *Import) interrupted(ctx context.Context) error {
	return errors.Join(im.stopped(), im.pause(ctx))
}

func (im *Import) stopped() error {
	return fmt.Errorf("%w after %d lines", ErrInterrupted, im.at.Report.Lines)
}

// canStop reports that the import has been interrupted and that its checkpoint says which chunk is to be completed.
func (im *Import) canStop() bool { return im.key != "" && im.ending() != nil }

// pause records what is done while no chunk is being written, so that no chunk is written again.
func (im *Import) pause(ctx context.Context) error {
	return im.save(context.WithoutCancel(ctx), im.at.Next.Ordinal)
}

// commit writes one chunk, and only stops before its end if the import can be continued.
func (im *Import) commit(ctx context.Context, c *chunk) error {
	ctx = context.WithoutCancel(ctx)
	if err := im.save(ctx, c.end.Ordinal); err != nil {
		return err
	}
	for _, p := range c.problems {
		im.report(p)
	}
	if len(im.users) > im.mostKnown {
		clear(im.users) // the store is asked again
	}
	im.writing, im.written, im.edgeRows = c, 0, 0
	im.toDo = int64(2 * len(c.edges))
	err := im.write(ctx, c)
	im.writing = nil
	if err != nil {
		return fmt.Errorf("import lines %d to %d of %s: %w", c.begin.Line+1, c.begin.Line+c.totals.Lines, im.inputs[c.begin.File].name, err)
	}
	im.at.Next, im.at.Bytes = c.end, c.read
	im.at.Report.add(c.totals)
	im.at.Report.Elapsed = im.found.Report.Elapsed + time.Since(im.began)
	im.progress()
	return nil
}

func (im *Import) progress() {
	if im.OnProgress == nil {
		return
	}
	total := int64(0)
	for _, in := range im.inputs {
		if in.stream != nil {
			total = 0
			break
		}
		total += in.size
	}
	p := Progress{Report: im.at.Report, Resumed: im.resumed, Bytes: im.at.Bytes, TotalBytes: total}
	if im.writing != nil {
		p.Edges += im.edgeRows / 2
		p.Bytes += int64(float64(im.writing.read-im.at.Bytes) * float64(im.written) / float64(im.toDo))
	}
	p.EdgesPerSecond = rate(p.Handled()-im.found.Report.Handled(), time.Since(im.began))
	im.OnProgress(p)
}

// wrote reports that rows of the chunk have been written.
func (im *Import) wrote(rows int) {
	if im.toDo > 0 {
		im.written += int64(rows)
		im.progress()
	}
}

// report reports a problem, as long as there is room for it.
func (im *Import) report(p Problem) {
	if im.OnProblem != nil && im.reported < im.Problems {
		im.reported++
		im.OnProblem(p)
	}
}
