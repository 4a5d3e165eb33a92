package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"kith/files/graphfile"
	"kith/storage"
)

// position is a point between two chunks.
type position struct {
	File    int   `json:"file"`    // index of the file, users files first
	Offset  int64 `json:"offset"`  // into its uncompressed text
	Line    int64 `json:"line"`    // how many of its lines have been read
	Ordinal int64 `json:"ordinal"` // how many lines of all files have been read
}

// chunk is the unit of writing and of checkpoints: a part of one file.
type chunk struct {
	begin, end position
	read       int64     // bytes of all files, as they are on disk, up to end
	edges      []edgeRow // ascending by (from, to), each pair once
	rows       rows      // of records; nil: it has edges
	totals     Report    // what reading and writing it count
	problems   []Problem
}

// edgeRow is a line of an edge list that is to be written to the store. A chunk has millions of them.
type edgeRow struct {
	from, to storage.UserID
	time     storage.Micros
	line     int64 // its ordinal; the complement of that if the line has no time
}

func newEdgeRow(p graphfile.Line, ordinal int64, untimed storage.Micros) edgeRow {
	if p.Timed {
		return edgeRow{p.From, p.To, p.Time, ordinal}
	}
	return edgeRow{p.From, p.To, untimed, ^ordinal}
}

// isTimed reports whether the line has a time. Otherwise the row's time is the line's own.
func (e edgeRow) isTimed() bool { return e.line >= 0 }

// ordinal is how many lines come before it, in all files.
func (e edgeRow) ordinal() int64 { return max(e.line, ^e.line) }

// pack orders the edges as the tables do and keeps the first line of each pair.
func (c *chunk) pack() {
	slices.SortFunc(c.edges, func(a, b edgeRow) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.ordinal(), b.ordinal()))
	})
	before := len(c.edges)
	c.edges = slices.CompactFunc(c.edges, func(a, b edgeRow) bool { return a.from == b.from && a.to == b.to })
	c.totals.Duplicates += int64(before - len(c.edges))
}

// splitter cuts the files into chunks.
type splitter struct {
	inputs  []*input
	lines   int            // of a chunk
	bytes   int64          // of a chunk of records, about
	strict  bool           // whether the first malformed line ends it
	start   storage.Micros // of the import, see [checkpoint]
	room    int            // how many more problems are kept to be reported
	pos     position
	things  map[int64]bool // see [Config.Things]
	behind  int64          // bytes of the files before pos.File
	stream  *stream
	records *records // of the file that is open, if it has records
}

// run sends chunks until the files or the context end. It returns nil at the end
// of the last file.
func (r *splitter) run(ctx context.Context, out chan<- *chunk) error {
	defer r.close()
	for i := range r.pos.File {
		r.behind += r.inputs[i].size
	}
	for r.pos.File < len(r.inputs) {
		c, err := r.next()
		if err != nil {
			return err
		}
		select {
		case out <- c:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// next reads a chunk; the last one of a file ends at the beginning of the next.
func (r *splitter) next() (*chunk, error) {
	in := r.inputs[r.pos.File]
	if r.stream == nil {
		if err := r.open(in); err != nil {
			return nil, err
		}
	}
	c := &chunk{begin: r.pos}
	read := r.readEdges
	if in.kind.IsRecords() {
		read = r.readRecords
	}
	err := read(c)
	c.read = r.behind + r.stream.consumed()
	switch {
	case errors.Is(err, io.EOF):
		r.close()
		r.behind += in.size
		r.pos = position{File: r.pos.File + 1, Ordinal: r.pos.Ordinal}
		c.read = r.behind
	case err != nil:
		return nil, err
	}
	c.totals.Lines = r.pos.Ordinal - c.begin.Ordinal
	c.end = r.pos
	c.pack()
	return c, nil
}

func (r *splitter) open(in *input) (err error) {
	if r.stream, err = in.open(r.pos.Offset); err != nil {
		return err
	}
	r.pos.Offset = r.stream.offset
	return nil
}

func (r *splitter) close() {
	if r.stream != nil {
		r.stream.Close()
		r.stream, r.records = nil, nil
	}
}

// malformed counts a line that cannot be read, and ends the import if it is strict.
func (r *splitter) malformed(c *chunk, line int64, text []byte, reason error) error {
	p := Problem{File: r.inputs[r.pos.File].name, Line: line, Reason: reason, Text: excerpt(text)}
	if r.strict {
		return fmt.Errorf("%w: %s", ErrMalformed, p)
	}
	c.totals.Malformed++
	if r.room > 0 {
		r.room--
		c.problems = append(c.problems, p)
	}
	return nil
}
