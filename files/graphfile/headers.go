package graphfile

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
)

// added is a column at the end that files of versions before do not have.
const added = "attributes"

// headers are the kinds of files, behind users files and edge lists, whose headers have exactly these
// columns, in the order in which an import reads them.
var headers = []header{
	{Marks, []string{"from", "to", "special", "remark", added}},
	{Messages, []string{"from", "to", "message"}},
	{Firsts, []string{"from", "to", "first_followed_at"}},
	{Posts, []string{"author", "post", "key", "created_at", "edited_at", "deleted", "text", "media", added}},
	{Comments, []string{"author", "post", "comment", "user", "key", "created_at", "text"}},
	{Favorites, []string{"user", "author", "post", "at", "favorited"}},
	{Lists, []string{"owner", "list", "name", "public"}}, // ahead of their members
	{Related, []string{"from", "to", "kind", "at", "related", "ends_at", "attributes"}},
	{Identities, []string{"user", "issuer", "subject", "linked_at"}},
	{Moderation, []string{"owner", "at", "user", "action", "by", "reason", "until", "number"}},
}

type header struct {
	kind    Kind
	columns []string
}

// IsRecords reports whether files of a kind are CSV with a header; the others are edge lists.
func (k Kind) IsRecords() bool { return k.Header() != nil }

// Header is the first record of a file of a kind; nil for an edge list.
func (k Kind) Header() []string {
	if k == Users {
		return slices.Clone(columnNames)
	}
	for _, h := range headers {
		if h.kind == k {
			return slices.Clone(h.columns)
		}
	}
	return nil
}

// ParseHeader reads the header of a file of records that are no users; false if the line is none.
func ParseHeader(line []byte) (Kind, bool) {
	names := columnsOf(line)
	for _, h := range headers {
		if slices.Equal(names, h.columns) || slices.Equal(append(names, added), h.columns) {
			return h.kind, true
		}
	}
	return "", false
}

// columnsOf are the names of columns that a line may be; none if it is no record.
func columnsOf(line []byte) []string {
	names, err := csv.NewReader(bytes.NewReader(line)).Read()
	if err != nil {
		return nil
	}
	for i := range names {
		names[i] = strings.ToLower(strings.TrimSpace(names[i]))
	}
	return names
}
