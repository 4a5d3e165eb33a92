package exporter

import (
	"bufio"
	"bytes"
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

	"kith/graphfile"
	"kith/storage"
)

// shardFiles are the files of one shard under way. A file is begun with its first row.
type shardFiles struct {
	dir     string
	ordinal int
	gzip    bool
	parts   map[graphfile.Kind]*part
	text    bytes.Buffer // of a user
	record  *csv.Writer  // to text
	line    []byte       // of an edge
}

func newShardFiles(dir string, ordinal int, gzip bool) *shardFiles {
	s := &shardFiles{dir: dir, ordinal: ordinal, gzip: gzip, parts: make(map[graphfile.Kind]*part)}
	s.record = csv.NewWriter(&s.text)
	return s
}

// user writes a user, whose digest is the beginning of its record's SHA-256.
func (s *shardFiles) user(u storage.UserWithState) error {
	p, err := s.part(graphfile.Users)
	if err != nil {
		return err
	}
	record, err := graphfile.Record(u)
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

func (s *shardFiles) encode(record []string) ([]byte, error) {
	s.text.Reset()
	if err := s.record.Write(record); err != nil {
		return nil, err
	}
	s.record.Flush()
	return s.text.Bytes(), s.record.Error()
}

// edge writes a row of a forward table.
func (s *shardFiles) edge(side storage.Side, e storage.Edge) error {
	relation, known := graphfile.RelationOf(side, e.Type)
	if !known || !graphfile.Writable(e) {
		return fmt.Errorf("the row %d → %d of %s is damaged (type %d, time %d): no file can hold it", e.From, e.To, side, e.Type, e.UpdateTime)
	}
	p, err := s.part(graphfile.Kind(relation))
	if err != nil {
		return err
	}
	p.add(storage.Mix(e))
	s.line = graphfile.AppendLine(s.line[:0], e)
	return p.write(s.line)
}

// part is the file of a kind, begun with the line that says what it holds.
func (s *shardFiles) part(kind graphfile.Kind) (*part, error) {
	if p, begun := s.parts[kind]; begun {
		return p, nil
	}
	p, err := newPart(filepath.Join(s.dir, fileName(kind, s.ordinal, s.gzip)), s.gzip)
	if err != nil {
		return nil, err
	}
	s.parts[kind] = p
	head := graphfile.AppendHead(nil, graphfile.Relation(kind))
	if kind == graphfile.Users {
		if head, err = s.encode(graphfile.Header()); err != nil {
			return nil, err
		}
	}
	return p, p.write(head)
}

// finish gives all files their names, and lists them by name.
func (s *shardFiles) finish() (files []graphfile.File, err error) {
	for kind, p := range s.parts {
		size, err := p.finish()
		if err != nil {
			return nil, err
		}
		files = append(files, graphfile.File{Name: filepath.Base(p.name), Kind: kind, Rows: p.rows, Bytes: size, Digest: graphfile.Mixed(p.mixed)})
	}
	slices.SortFunc(files, func(a, b graphfile.File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// abandon removes what is not whole.
func (s *shardFiles) abandon() {
	for _, p := range s.parts {
		p.abandon()
	}
}

// part is a file under way. It has another name until it is whole.
type part struct {
	name  string // when it is whole
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

func newPart(name string, zipped bool) (*part, error) {
	file, err := os.OpenFile(name+partSuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &part{name: name, file: file, disk: bufio.NewWriterSize(file, writeBuffer)}
	p.out = p.disk
	if zipped {
		if p.zip, err = gzip.NewWriterLevel(p.disk, gzip.BestSpeed); err != nil {
			return nil, err
		}
		p.out = p.zip
	}
	return p, nil
}

func (p *part) add(mixed uint64) {
	p.rows++
	p.mixed ^= mixed
}

func (p *part) write(text []byte) error {
	_, err := p.out.Write(text)
	return err
}

// finish sees that the file is on the disk, and then gives it its name.
func (p *part) finish() (size int64, err error) {
	if p.zip != nil {
		if err := p.zip.Close(); err != nil {
			return 0, err
		}
	}
	if err := p.disk.Flush(); err != nil {
		return 0, err
	}
	if err := p.file.Sync(); err != nil {
		return 0, err
	}
	info, err := p.file.Stat()
	if err != nil {
		return 0, err
	}
	if err := p.file.Close(); err != nil {
		return 0, err
	}
	p.over = true
	return info.Size(), os.Rename(p.name+partSuffix, p.name)
}

// abandon removes the file unless it is whole.
func (p *part) abandon() {
	if !p.over {
		p.over = true
		_ = p.file.Close()
		_ = os.Remove(p.name + partSuffix)
	}
}
