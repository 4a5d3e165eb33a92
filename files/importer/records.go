package importer

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"kith/files/graphfile"
)

const (
	// maxRecord is how many bytes a record may have: as many as the longest post, if every character that can be
	// escaped is.
	maxRecord = 1 << 20

	// chunkBytes is how much text of records is kept at a time, however many lines a chunk may have.
	chunkBytes = 32 << 20
)

// bounded reads records of which none is too long.
type bounded struct {
	io.Reader
	left int // of the record under way
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, graphfile.ErrLongRecord
	}
	n, err := b.Reader.Read(p)
	b.left -= n
	return n, err
}

// records reads the records of a file.
type records struct {
	csv    *csv.Reader
	source *bounded
	offset int64 // of where the splitter began
	line   int64 // lines before that
}

// readRecords reads the records of one chunk. It returns io.EOF when the file ends with it.
func (r *splitter) readRecords(c *chunk) error {
	in := r.inputs[r.pos.File]
	c.rows = in.newRows(r.things, r.start)
	add := c.rows.reader(c)
	if err := r.openRecords(); err != nil {
		return err
	}
	records := r.records
	for range r.lines {
		if r.pos.Offset-c.begin.Offset > r.bytes {
			return nil
		}
		records.source.left = maxRecord
		record, err := records.csv.Read()
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		var bad *csv.ParseError
		if err != nil && !errors.As(err, &bad) {
			return fmt.Errorf("read %s behind line %d: %w", in.name, r.pos.Line, err)
		}
		r.pos.Ordinal++
		r.pos.Offset = records.offset + records.csv.InputOffset()
		r.stream.offset = r.pos.Offset
		var line int64
		if bad != nil {
			line, err = records.line+int64(bad.StartLine), bad.Err
			r.pos.Line = records.line + int64(bad.Line)
			if bad.Line > bad.StartLine {
				err = fmt.Errorf("%w: the quote takes the lines up to %d, which are left out", err, r.pos.Line)
			}
		} else {
			last := len(record) - 1
			begins, _ := records.csv.FieldPos(0)
			ends, _ := records.csv.FieldPos(last)
			line, r.pos.Line = records.line+int64(begins), records.line+int64(ends+strings.Count(record[last], "\n"))
			err = add(record, line, r.pos.Ordinal-1)
		}
		if err != nil {
			if err := r.malformed(c, line, []byte(strings.Join(record, ",")), err); err != nil {
				return err
			}
		}
	}
	return nil
}

// openRecords begins to read records at the stream's position.
func (r *splitter) openRecords() error {
	if r.records != nil {
		return nil
	}
	in := r.inputs[r.pos.File]
	r.records = &records{offset: r.pos.Offset, line: r.pos.Line}
	r.records.source = &bounded{r.stream.Reader, maxRecord}
	r.records.csv = csv.NewReader(r.records.source)
	r.records.csv.Comment = '#'
	r.records.csv.FieldsPerRecord = -1
	r.records.csv.ReuseRecord = true
	if in.headed && r.pos.Line == 0 {
		if _, err := r.records.csv.Read(); err != nil {
			return fmt.Errorf("read the header of %s: %w", in.name, err)
		}
		r.pos.Offset = r.records.offset + r.records.csv.InputOffset()
		r.stream.offset = r.pos.Offset
		line, _ := r.records.csv.FieldPos(0)
		r.pos.Line = int64(line)
	}
	if in.columns.BeginWithText() {
		r.records.csv.Comment = 0
	}
	return nil
}
