package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"kith/files/graphfile"
	"kith/storage"
)

// shortLine is how many bytes of a file a line takes, at least about: of two ids of three digits, or compressed.
const shortLine = 8

// readEdges reads the lines of one chunk from an edge list. It returns io.EOF
// when the file ends with it.
func (r *splitter) readEdges(c *chunk) error {
	c.edges = make([]edgeRow, 0, min(int64(r.lines), r.inputs[r.pos.File].size/shortLine+1))
	for range r.lines {
		line, err := r.stream.ReadSlice('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			return io.EOF
		}
		length, long := len(line), errors.Is(err, bufio.ErrBufferFull)
		if long {
			line = bytes.Clone(line[:maxExcerpt*4]) // the buffer is used again
			var rest int
			rest, err = r.skipLine()
			length += rest
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %s behind line %d: %w", r.inputs[r.pos.File].name, r.pos.Line, err)
		}
		if err := r.addEdge(c, line, long); err != nil {
			return err
		}
		r.pos.Line++
		r.pos.Ordinal++
		r.pos.Offset += int64(length)
		r.stream.offset = r.pos.Offset
	}
	return nil
}

// skipLine drops the rest of a line that is longer than the buffer, and returns
// how long that was.
func (r *splitter) skipLine() (length int, err error) {
	for {
		part, err := r.stream.ReadSlice('\n')
		length += len(part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return length, err
		}
	}
}

func (r *splitter) addEdge(c *chunk, line []byte, long bool) error {
	p, found, err := graphfile.ParseLine(line)
	if long && !graphfile.IsComment(line) {
		err = graphfile.ErrLong
	}
	if header := r.inputs[r.pos.File].header; err != nil && header != nil && bytes.Equal(bytes.TrimSpace(line), header) {
		return nil // also if files with headers were joined
	}
	if err != nil {
		return r.malformed(c, r.pos.Line+1, line, err)
	}
	if !found {
		return r.checkHead(line)
	}
	if p.From == p.To {
		c.totals.SelfFollows++
		return nil
	}
	if r.inputs[r.pos.File].heading.Reversed {
		p.From, p.To = p.To, p.From
	}
	c.edges = append(c.edges, newEdgeRow(p, r.pos.Ordinal, r.start-window+storage.Micros(r.pos.Ordinal)))
	return nil
}

// checkHead ends the import at a line that says that another list begins, as in files that were joined: blocks would be taken for follows.
func (r *splitter) checkHead(line []byte) error {
	in := r.inputs[r.pos.File]
	if kind := graphfile.ParseHead(line); kind != "" && kind != in.kind {
		return fmt.Errorf("read %s: line %d begins a list of %s, and this is one of %s: give each list a file of its own", in.name, r.pos.Line+1, kind, in.kind)
	}
	return nil
}
