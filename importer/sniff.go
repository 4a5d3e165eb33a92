package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"kith/graphfile"
)

// sniff finds out by the first line that is not a comment or empty whether the file holds users,
// edges, rows beside edges, posts, comments, favorites or identities, which have their own headers. Users are recognised by their
// header, or, in a .csv file without one, by a line that is not an edge but begins with an id. Any other file is taken for an
// edge list, whose splitter reports each line it cannot read, except for a header.
func (in *input) sniff(s *stream) error {
	in.kind = edgesFile
	line, head, err := s.firstLine()
	if err != nil {
		return fmt.Errorf("read %s: %w", in.name, err)
	}
	if in.relation = head; head != "" && head.Rank() < 0 {
		_, _, err := head.Row()
		return fmt.Errorf("read the first line of %s: %w", in.name, err)
	}
	if columns, err := graphfile.ParseColumns(line); columns != nil || err != nil {
		in.kind, in.columns, in.headed = usersFile, columns, true
		if err != nil {
			return fmt.Errorf("read the header of %s: %w", in.name, err)
		}
		return nil
	}
	if kind, ok := graphfile.ParseHeader(line); ok {
		in.headed = true
		switch kind {
		case graphfile.Posts:
			in.kind = postsFile
		case graphfile.Comments:
			in.kind = commentsFile
		case graphfile.Favorites:
			in.kind = favoritesFile
		case graphfile.Identities:
			in.kind = identitiesFile
		default:
			in.kind = besideFile
			in.beside, _ = kind.Beside()
		}
		return nil
	}
	if graphfile.IsHeader(line) {
		in.header = bytes.Clone(line)
		return nil
	}
	first, _, listed := bytes.Cut(line, []byte(","))
	if _, err := graphfile.ParseID(bytes.Trim(first, `" `)); err != nil || !listed || !in.namedCSV() {
		return nil //nolint:nilerr // the line is no user, which is no fault
	}
	if _, _, err := graphfile.ParseLine(line); err != nil {
		in.kind, in.columns = usersFile, graphfile.DefaultColumns()
	}
	return nil
}

func (in *input) namedCSV() bool {
	name := strings.TrimSuffix(strings.ToLower(in.name), ".gz")
	return filepath.Ext(name) == ".csv"
}

// firstLine looks ahead to the first line that is neither empty nor a comment, without
// consuming it, and reads the relation that the line at the very beginning may name. A terminal is
// not read further than that.
func (s *stream) firstLine() (first []byte, head graphfile.Relation, err error) {
	for want := 1; ; want = s.Buffered() + 1 {
		if _, err := s.Peek(min(want, s.Size())); err != nil && !errors.Is(err, io.EOF) {
			return nil, "", err
		}
		text, _ := s.Peek(s.Buffered())
		ended := len(text) < want || len(text) == s.Size()
		begin := true
		for line := range bytes.Lines(text) {
			whole := ended || bytes.HasSuffix(line, []byte("\n"))
			bare := bytes.TrimSpace(line)
			if begin && whole {
				head = graphfile.ParseHead(bare)
			}
			if begin = false; whole && len(bare) > 0 && bare[0] != '#' {
				return bare, head, nil
			}
		}
		if ended {
			return nil, head, nil
		}
	}
}
