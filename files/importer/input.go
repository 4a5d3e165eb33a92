package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kith/files/graphfile"
)

// bufferSize is how much of a file is read at a time, and also the longest line
// that an edge list may have.
const bufferSize = 256 << 10

// input is one FILE of the command, before it is opened for reading.
type input struct {
	name     string               // as the user gave it
	kind     graphfile.Kind       // of an edge list, its relation
	columns  graphfile.Columns    // of a users file
	exported bool                 // a file of an export that is imported as a whole
	headed   bool                 // whether a file of records begins with its header
	header   []byte               // of an edge list, if its first line is one
	heading  graphfile.EdgeHeader // what it says
	size     int64                // bytes as they are on disk; 0 when unknown
	identity []byte               // the same for the same content elsewhere; nil for what can be read only once
	stream   *stream              // of a source that can be read only once
}

// probeAll examines every file, so that a missing one is found before anything is
// written, and puts users files first, then edge lists in the order of their relations, then rows
// beside edges, posts, comments, favorites and identities. The order is otherwise kept. Edge lists
// that do not name a relation have the given one.
func probeAll(names []string, stdin io.Reader, relation graphfile.Kind) (inputs []*input, err error) {
	for _, name := range names {
		if inputs, err = addProbed(inputs, name, stdin); err != nil {
			closeStreams(inputs)
			return nil, err
		}
	}
	for _, in := range inputs {
		in.kind = cmp.Or(in.kind, relation)
	}
	slices.SortStableFunc(inputs, func(a, b *input) int { return cmp.Compare(a.rank(), b.rank()) })
	return inputs, nil
}

func unnamed(inputs []*input) string {
	var all []string
	for _, in := range inputs {
		if names := in.heading.Unknown; len(names) > 0 {
			all = append(all, in.name+": "+strings.Join(names, ", "))
		}
	}
	return strings.Join(all, "; ")
}

// rank is the place of a file's kind in the order of an import. Files of what lies beside edges keep the order in which they are given.
func (in *input) rank() int {
	kind := in.kind
	if _, beside := kind.Annotation(); beside {
		kind = graphfile.Marks
	}
	return kind.Rank()
}

// addProbed adds a file, or all files of an export.
func addProbed(inputs []*input, name string, stdin io.Reader) ([]*input, error) {
	names, exported := []string{name}, false
	if info, err := os.Stat(name); err == nil && name != "-" && info.IsDir() {
		if names, err = graphfile.WholeExport(name); err != nil {
			return inputs, err
		}
		exported = true
	}
	for _, name := range names {
		if filepath.Base(name) == graphfile.ManifestName {
			return inputs, fmt.Errorf("%s is the manifest of an export: give its folder instead, or only the other files", name)
		}
		in, err := probe(name, stdin)
		if err != nil {
			return inputs, err
		}
		in.exported = exported
		inputs = append(inputs, in)
	}
	return inputs, nil
}

func probe(name string, stdin io.Reader) (*input, error) {
	in := &input{name: name}
	if name == "-" {
		return in, in.probeStream(io.NopCloser(stdin))
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		file.Close()
		return nil, err
	case !info.Mode().IsRegular(): // a pipe: it cannot be opened twice
		return in, in.probeStream(file)
	}
	defer file.Close()
	in.size = info.Size()
	if in.identity, err = identify(file, info.Size()); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	s, err := newStream(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return in, in.sniff(s)
}

func (in *input) probeStream(source io.ReadCloser) error {
	s, err := newStream(source)
	if err != nil {
		source.Close()
		return fmt.Errorf("read %s: %w", in.name, err)
	}
	in.stream = s
	if err := in.sniff(s); err != nil {
		source.Close()
		return err
	}
	return nil
}

// identify hashes the base name, the size and the first 64 KiB of a file.
func identify(file *os.File, size int64) ([]byte, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%d\n", filepath.Base(file.Name()), size)
	if _, err := io.Copy(hash, io.NewSectionReader(file, 0, 64<<10)); err != nil {
		return nil, err
	}
	return hash.Sum(nil), nil
}

// open begins to read the file at an offset of its uncompressed text.
func (in *input) open(offset int64) (*stream, error) {
	if in.stream != nil {
		return in.stream, nil
	}
	file, err := os.Open(in.name)
	if err != nil {
		return nil, err
	}
	s, err := newStream(file)
	if err == nil {
		err = s.skip(offset)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("read %s: %w", in.name, err)
	}
	return s, nil
}

func closeStreams(inputs []*input) {
	for _, in := range inputs {
		if in.stream != nil {
			in.stream.Close()
		}
	}
}

// stream is the uncompressed text of an open file.
type stream struct {
	*bufio.Reader
	source  io.ReadCloser
	counter counter
	raw     *bufio.Reader // of the file as it is on disk
	gzipped bool
	offset  int64 // of the text not yet read; kept by the readers
}

// newStream recognises gzip by its first bytes, whatever the file's name.
func newStream(source io.ReadCloser) (*stream, error) {
	s := &stream{source: source, counter: counter{Reader: source}}
	raw := bufio.NewReaderSize(&s.counter, bufferSize)
	magic, err := raw.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	s.Reader, s.raw = raw, raw
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		text, err := gzip.NewReader(raw)
		if err != nil {
			return nil, err
		}
		s.gzipped = true
		s.Reader = bufio.NewReaderSize(text, bufferSize)
	}
	return s, s.skipMark()
}

// skipMark drops the byte order mark that some programs begin a text with.
func (s *stream) skipMark() error {
	mark := []byte("\xef\xbb\xbf")
	head, err := s.Peek(1) // not 3: a terminal has only what was typed
	if err == nil && head[0] == mark[0] {
		if head, _ = s.Peek(len(mark)); bytes.Equal(head, mark) {
			s.offset += int64(len(mark))
			_, err = s.Discard(len(mark))
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// skip moves to an offset of the text: by a seek in a plain file, by reading in
// a compressed one.
func (s *stream) skip(offset int64) error {
	if offset <= s.offset {
		return nil
	}
	if seeker, ok := s.source.(io.Seeker); ok && !s.gzipped {
		if _, err := seeker.Seek(offset, io.SeekStart); err != nil {
			return err
		}
		s.Reset(&s.counter)
	} else if _, err := io.CopyN(io.Discard, s.Reader, offset-s.offset); err != nil {
		return err
	}
	s.offset = offset
	return nil
}

// consumed is how much of the file, as it is on disk, has been read.
func (s *stream) consumed() int64 {
	if s.gzipped {
		return s.counter.n - int64(s.raw.Buffered())
	}
	return s.offset
}

// Close closes the file below.
func (s *stream) Close() error { return s.source.Close() }

type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}
