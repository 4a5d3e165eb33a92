package graphfile

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"

	"kith/storage"
)

// Kind is what a file holds: the edges of one type of a forward table, as an edge list, or records with a header.
type Kind string

// The kinds.
const (
	Users Kind = "users"

	Follows Kind = "following"
	Blocks  Kind = "blocking"
	Waiting Kind = "follow_request"          // a follow that waits for the approval of To
	Ended   Kind = "ended"                   // a follow, a request for one, or a block that has ended
	Denied  Kind = "declined_follow_request" // of a user who is locked, and has declined it

	Requests  Kind = "friend_request" // for friendship, pending
	Accepted  Kind = "accepted_request"
	Declined  Kind = "declined_request"
	Cancelled Kind = "cancelled_request"
	Removed   Kind = "removed_request" // From has ended the friendship
	NoRequest Kind = "ended_request"   // of a user who has been deleted

	Marks    Kind = "marks" // this and the next two lie beside edges
	Messages Kind = "messages"
	Firsts   Kind = "first_follows"

	Posts      Kind = "posts"
	Comments   Kind = "comments"
	Favorites  Kind = "favorites"
	Lists      Kind = "lists"
	Related    Kind = "relations"
	Identities Kind = "identities" // as whom people sign in by identity providers
	Moderation Kind = "moderation" // what operators have done
)

// kinds are all of them, in the order in which an import reads them: so that nothing follows
// from a row but what is in the files. Blocks go ahead of follows, which they forbid; all follows go
// ahead of requests, which would make or end some that are missing; pending requests come last of the edge lists,
// because an old accepted one would accept one that is pending in return. Lists go ahead of their members, which are relations.
var kinds = []kindOfFile{
	{Kind: Users, columns: userColumns},
	{Kind: Blocks, side: storage.Forward, edge: storage.Blocking},
	{Kind: Follows, side: storage.Forward, edge: storage.Following},
	{Kind: Waiting, side: storage.Forward, edge: storage.Requested},
	{Kind: Ended, side: storage.Forward, edge: storage.None},
	{Kind: Denied, side: storage.Forward, edge: storage.Denied},
	{Kind: NoRequest, side: storage.Requests, edge: storage.None},
	{Kind: Declined, side: storage.Requests, edge: storage.Declined},
	{Kind: Cancelled, side: storage.Requests, edge: storage.Cancelled},
	{Kind: Removed, side: storage.Requests, edge: storage.Removed},
	{Kind: Accepted, side: storage.Requests, edge: storage.Accepted},
	{Kind: Requests, side: storage.Requests, edge: storage.Pending},
	{Kind: Marks, columns: AnnotationFormat(storage.AnnotationMark).names()},
	{Kind: Messages, columns: AnnotationFormat(storage.AnnotationMessage).names()},
	{Kind: Firsts, columns: AnnotationFormat(storage.AnnotationFirst).names()},
	{Kind: Posts, columns: PostFormat.names()},
	{Kind: Comments, columns: CommentFormat.names()},
	{Kind: Favorites, columns: FavoriteFormat.names()},
	{Kind: Lists, columns: ListFormat.names()},
	{Kind: Related, columns: RelationFormat(nil).names()},
	{Kind: Identities, columns: IdentityFormat.names()},
	{Kind: Moderation, columns: ModerationFormat.names()},
}

type kindOfFile struct {
	Kind
	side    storage.Side // of the edges of an edge list
	edge    storage.EdgeType
	columns []string // of records; nil: it is an edge list
}

// Kinds are all kinds, in the order in which an import reads them.
func Kinds() []Kind { return storage.Each(kinds, func(k kindOfFile) Kind { return k.Kind }) }

// Relations are the kinds of edge lists, in the same order: they say what From is to To.
func Relations() []Kind {
	return slices.DeleteFunc(Kinds(), Kind.IsRecords)
}

// RelationOf is the kind of the rows of one type of a forward table; false for a damaged row.
func RelationOf(side storage.Side, edge storage.EdgeType) (Kind, bool) {
	i := slices.IndexFunc(kinds, func(k kindOfFile) bool { return k.columns == nil && k.side == side && k.edge == edge })
	if i < 0 {
		return "", false
	}
	return kinds[i].Kind, true
}

// Rank is the place of a kind in [Kinds], −1 for an unknown one.
func (k Kind) Rank() int {
	return slices.IndexFunc(kinds, func(known kindOfFile) bool { return known.Kind == k })
}

// Row is the forward table and the type of the rows that the lines of an edge list become.
func (k Kind) Row() (storage.Side, storage.EdgeType, error) {
	i := k.Rank()
	if i < 0 || kinds[i].columns != nil {
		return 0, 0, fmt.Errorf("there is no relation %q: it is one of %q", string(k), Relations())
	}
	return kinds[i].side, kinds[i].edge, nil
}

// IsPast reports whether the lines of an edge list are only of what is over. It may name users who have been deleted.
func (k Kind) IsPast() bool {
	switch k {
	case Follows, Blocks, Waiting, Requests, Accepted:
		return false
	}
	return true
}

// IsRecords reports whether files of a kind are CSV with a header; the others are edge lists.
func (k Kind) IsRecords() bool { return k.Header() != nil }

// Header is the first record of a file of a kind; nil for an edge list. It is shared.
func (k Kind) Header() []string {
	if i := k.Rank(); i >= 0 {
		return kinds[i].columns
	}
	return nil
}

// ParseHeader reads the header of a file of records that are no users; false if the line is none.
func ParseHeader(line []byte) (Kind, bool) {
	names := columnsOf(line)
	for _, k := range kinds {
		if k.columns != nil && k.Kind != Users && slices.Equal(names, k.columns) {
			return k.Kind, true
		}
	}
	return "", false
}

// CheckHeader refuses a line that is nearly the header of a file of records, with columns missing, renamed, in another order, or too many: it has
// three names of one.
func CheckHeader(line []byte) error {
	names, most, like := columnsOf(line), 2, kindOfFile{}
	for _, k := range kinds {
		shared := 0
		for _, column := range k.columns {
			if slices.Contains(names, column) {
				shared++
			}
		}
		if k.Kind != Users && shared > most { // users need two columns only
			most, like = shared, k
		}
	}
	if like.columns == nil {
		return nil
	}
	return fmt.Errorf("%s have the columns %s, and it has %s", like.Kind, strings.Join(like.columns, ","), strings.Join(names, ","))
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

var headLine = []byte("# relation: ")

// AppendHead appends the first line of an edge list that says itself what its lines mean.
func AppendHead(text []byte, k Kind) []byte {
	return append(append(append(text, headLine...), k...), '\n')
}

// ParseHead reads the first line of an edge list. It returns "" for one that does not say what the
// lines mean. The kind may be unknown.
func ParseHead(line []byte) Kind {
	name, ok := bytes.CutPrefix(bytes.TrimSpace(line), headLine)
	if !ok {
		return ""
	}
	return Kind(bytes.TrimSpace(name))
}
