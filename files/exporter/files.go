package exporter

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kith/files/graphfile"
	"kith/storage"
)

// partFiles are the files of one part of an export under way. A file is created with its first row.
type partFiles struct {
	dir     string
	number  int            // of the part
	shard   int            // that it is of
	buckets storage.Choice // that it has
	gzip    bool
	files   map[graphfile.Kind]*file
	text    bytes.Buffer // of a record
	record  *csv.Writer  // to text
	line    []byte       // of an edge
	counted int64        // rows, see newRows
}

func newPartFiles(dir string, number, shard int, buckets storage.Choice, gzip bool) *partFiles {
	s := &partFiles{dir: dir, number: number, shard: shard, buckets: buckets, gzip: gzip, files: make(map[graphfile.Kind]*file)}
	s.record = csv.NewWriter(&s.text)
	return s
}

// newRows is how many rows have been written since it was last asked.
func (s *partFiles) newRows() int64 {
	rows := -s.counted
	for _, f := range s.files {
		rows += f.rows
	}
	s.counted += rows
	return rows
}

// write writes a record. Its digest is the beginning of its SHA-256.
func (s *partFiles) write(kind graphfile.Kind, record []string) error {
	p, err := s.file(kind)
	if err != nil {
		return err
	}
	text, err := s.encode(record)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	p.add(binary.BigEndian.Uint64(sum[:8]))
	return p.write(text)
}

func (s *partFiles) encode(record []string) ([]byte, error) {
	s.text.Reset()
	if err := s.record.Write(record); err != nil {
		return nil, err
	}
	s.record.Flush()
	return s.text.Bytes(), s.record.Error()
}

// edge writes a row of a forward table.
func (s *partFiles) edge(side storage.Side, e storage.Edge) error {
	relation, known := graphfile.RelationOf(side, e.Type)
	if !known || !graphfile.Writable(e) {
		return fmt.Errorf("%w: no file can hold %d → %d of %s (type %d, time %d)", graphfile.ErrDamaged, e.From, e.To, side, e.Type, e.UpdateTime)
	}
	p, err := s.file(relation)
	if err != nil {
		return err
	}
	p.add(e.Mix())
	s.line = graphfile.AppendLine(s.line[:0], e)
	return p.write(s.line)
}

// file is the file of a kind. It begins with the line that says what it holds.
func (s *partFiles) file(kind graphfile.Kind) (*file, error) {
	if p, begun := s.files[kind]; begun {
		return p, nil
	}
	p, err := newFile(filepath.Join(s.dir, fileName(kind, s.number, s.gzip)), s.gzip)
	if err != nil {
		return nil, err
	}
	s.files[kind] = p
	header := kind.Header()
	if header == nil {
		return p, p.write(graphfile.AppendHead(nil, kind))
	}
	head, err := s.encode(header)
	return p, cmp.Or(err, p.write(head))
}

// finish gives all files their names, and lists them by name.
func (s *partFiles) finish() (files []graphfile.File, err error) {
	for kind, p := range s.files {
		size, err := p.finish()
		if err != nil {
			return nil, err
		}
		files = append(files, graphfile.File{Name: filepath.Base(p.name), Kind: kind, Rows: p.rows, Bytes: size, Digest: graphfile.Mixed(p.mixed)})
	}
	slices.SortFunc(files, func(a, b graphfile.File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// abandon removes files that are not complete.
func (s *partFiles) abandon() {
	for _, p := range s.files {
		p.abandon()
	}
}

// file is a file that is being written. It has another name until it is complete.
type file struct {
	name  string // when it is complete
	file  *os.File
	disk  *bufio.Writer
	zip   *gzip.Writer // nil for a plain file
	out   io.Writer
	rows  int64
	mixed uint64 // the exclusive or of the rows' digests
	over  bool
}

// writeBuffer is how much is written to the disk at a time.
const writeBuffer = 256 << 10

func newFile(name string, zipped bool) (*file, error) {
	opened, err := os.OpenFile(name+partSuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &file{name: name, file: opened, disk: bufio.NewWriterSize(opened, writeBuffer)}
	p.out = p.disk
	if zipped {
		if p.zip, err = gzip.NewWriterLevel(p.disk, gzip.BestSpeed); err != nil {
			return nil, err
		}
		p.out = p.zip
	}
	return p, nil
}

func (p *file) add(mixed uint64) {
	p.rows++
	p.mixed ^= mixed
}

func (p *file) write(text []byte) error {
	_, err := p.out.Write(text)
	return err
}

// finish makes sure that the file is on the disk, and then gives it its name.
func (p *file) finish() (size int64, err error) {
	if p.zip != nil {
		err = p.zip.Close()
	}
	err = cmp.Or(err, p.disk.Flush(), p.file.Sync())
	info, unknown := p.file.Stat()
	if err = cmp.Or(err, unknown, p.file.Close()); err != nil {
		return 0, err
	}
	p.over = true
	return info.Size(), os.Rename(p.name+partSuffix, p.name)
}

// abandon removes the file unless it is complete.
func (p *file) abandon() {
	if !p.over {
		p.over = true
		_ = p.file.Close()
		_ = os.Remove(p.name + partSuffix)
	}
}
