package importer

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// sniff tells by the first line that is not a comment or empty whether the file holds users
// or edges. Users are recognised by their header, or, in a .csv file without one, by
// a line that is not an edge but begins with an id. Any other file is taken for an
// edge list, whose reader reports each line it cannot read.
func (in *input) sniff(s *stream) error {
	in.kind = edgesFile
	line, err := s.firstLine()
	if err != nil {
		return fmt.Errorf("read %s: %w", in.name, err)
	}
	if columns, err := parseHeader(line); columns != nil || err != nil {
		in.kind, in.columns, in.headed = usersFile, columns, true
		if err != nil {
			return fmt.Errorf("read the header of %s: %w", in.name, err)
		}
		return nil
	}
	first, _, listed := bytes.Cut(line, []byte(","))
	if _, err := parseID(bytes.Trim(first, `" `)); err != nil || !listed || !in.namedCSV() {
		return nil //nolint:nilerr // the line is no user, which is no fault
	}
	if _, _, err := parseLine(line); err != nil {
		in.kind, in.columns = usersFile, defaultColumns
	}
	return nil
}

func (in *input) namedCSV() bool {
	name := strings.TrimSuffix(strings.ToLower(in.name), ".gz")
	return filepath.Ext(name) == ".csv"
}

// firstLine looks ahead to the first line that is neither empty nor a comment,
// without consuming it. A terminal is not asked for more than that line.
func (s *stream) firstLine() ([]byte, error) {
	for want := 1; ; want = s.Buffered() + 1 {
		if _, err := s.Peek(min(want, s.Size())); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		text, _ := s.Peek(s.Buffered())
		ended := len(text) < want || len(text) == s.Size()
		for line := range bytes.Lines(text) {
			whole := ended || bytes.HasSuffix(line, []byte("\n"))
			bare := bytes.TrimSpace(line)
			if whole && len(bare) > 0 && bare[0] != '#' {
				return bare, nil
			}
		}
		if ended {
			return nil, nil
		}
	}
}

// columns tells at which place of a record each field of a user is, −1 for
// none.
type columns []int

// columnNames are the columns of a users file, in the order they have in a file
// without a header.
var columnNames = []string{"id", "handle", "name", "bio", "avatar_url"}

var defaultColumns = columns{0, 1, 2, 3, 4}

// parseHeader reads the header of a users file. It returns nil for a line that is
// none: one without the columns id and handle.
func parseHeader(line []byte) (columns, error) {
	names, err := csv.NewReader(bytes.NewReader(line)).Read()
	if err != nil {
		return nil, nil //nolint:nilerr // the line is no header, which is no fault
	}
	for i := range names {
		names[i] = strings.ToLower(strings.TrimSpace(names[i]))
	}
	if !slices.Contains(names, "id") || !slices.Contains(names, "handle") {
		return nil, nil
	}
	places := make(columns, len(columnNames))
	for i, name := range columnNames {
		places[i] = slices.Index(names, name)
	}
	for i, name := range names {
		if !slices.Contains(columnNames, name) {
			return nil, fmt.Errorf("unknown column %q; the columns are %s", name, strings.Join(columnNames, ","))
		}
		if slices.Index(names, name) != i {
			return nil, fmt.Errorf("the column %q occurs twice", name)
		}
	}
	return places, nil
}
