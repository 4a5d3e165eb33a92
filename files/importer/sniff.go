package importer

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"kith/files/graphfile"
)

// sniff finds out by the first line that is not a comment or empty whether the file holds users,
// edges, rows beside edges, posts, comments, favorites or identities, which have their own headers. Users are recognised by their
// header. A .csv file without one is of the kind that most of its lines are, as far as they have been read ahead. Any other
// file is taken for an edge list, whose splitter reports each line it cannot read, except for a header.
func (in *input) sniff(s *stream) error {
	line, head, err := s.firstLine()
	if err != nil {
		return fmt.Errorf("read %s: %w", in.name, err)
	}
	in.kind = head
	if _, _, err := head.Row(); head != "" && err != nil {
		return fmt.Errorf("read the first line of %s: %w", in.name, err)
	}
	if columns, err := graphfile.ParseColumns(line); columns != nil || err != nil {
		in.kind, in.columns, in.headed = graphfile.Users, columns, true
		if err != nil {
			return fmt.Errorf("read the header of %s: %w", in.name, err)
		}
		return nil
	}
	if kind, ok := graphfile.ParseHeader(line); ok {
		in.kind, in.headed = kind, true
		return nil
	}
	h, ok, err := graphfile.ParseEdgeHeader(line)
	if ok && err == nil {
		in.header, in.heading = bytes.Clone(line), h
		return nil
	}
	if err = cmp.Or(err, graphfile.CheckHeader(line)); err != nil {
		return fmt.Errorf("read the header of %s: %w", in.name, err)
	}
	if len(line) == 0 || filepath.Ext(strings.TrimSuffix(strings.ToLower(in.name), ".gz")) != ".csv" {
		return nil
	}
	edges, users := s.count()
	switch {
	case users > edges:
		in.kind, in.columns = graphfile.Users, graphfile.DefaultColumns()
	case users == edges:
		return fmt.Errorf("read %s: it is not clear whether its lines are edges or users: begin it with the line from,to,time or id,handle,name,bio,avatar_url", in.name)
	}
	return nil
}

// count counts the lines that have been read ahead and are edges, and the records that are users and could not be meant as edges.
func (s *stream) count() (edges, users int) {
	text, _ := s.Peek(s.Buffered())
	columns := graphfile.DefaultColumns()
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		if _, found, err := graphfile.ParseLine(line); err == nil {
			if found {
				edges++
			}
			text = rest
			continue
		}
		reader := csv.NewReader(bytes.NewReader(text)) // the record may have more lines
		record, err := reader.Read()
		text = text[reader.InputOffset():]
		if err != nil {
			continue
		}
		if u, err := columns.User(record); err == nil && strings.Trim(u.User.Handle, "0123456789") != "" {
			users++
		}
	}
	return edges, users
}

// firstLine looks ahead to the first line that is neither empty nor a comment, without
// consuming it, and reads the relation that the line at the very beginning may name. A terminal is
// not read further than that.
func (s *stream) firstLine() (first []byte, head graphfile.Kind, err error) {
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
