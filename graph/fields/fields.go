// Package fields defines for every field of the schema what is read for it, what it costs, and how
// it is written if its value is in memory. A new field is added here: the planner and the writer
// ([kith/graph/selections], [kith/resolvers]) and the limits ([kith/graph/limits]) have no list of
// their own. A test compares the tables with the schema.
package fields

import (
	"maps"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/model"
	"kith/storage"
)

// Type is an object type or an interface, and the table of its fields. Without a table, its objects are complete when they are made: each
// of its fields is the zero [Field].
type Type struct {
	Name     string
	Is       []string // the type and its interfaces, as fragments name them
	Possible []string // the object types that it may be: itself, or those that implement it
	Fields   map[string]*Field

	declared bool // its fields are those that a product declares
}

// IsAttributes reports whether a type is one of attributes: its fields are those that a product declares.
func IsAttributes(typeName string) bool {
	t := Types[typeName]
	return t != nil && t.declared
}

// Value is how a field is written; nil if gqlgen writes it.
func (t *Type) Value(f *ast.Field) *Value {
	if t.declared && f.Name != "__typename" {
		return declared(f.Name, f.Definition.Type.Name())
	}
	if known := t.Fields[f.Name]; known != nil {
		return known.Value
	}
	return nil
}

// Field is the definition of one field. The zero value is a value that has been read
// with the object, costs 1, and is written by gqlgen.
type Field struct {
	Needs Needs
	Part  Part // of a page

	Weight uint64 // its cost; 0 means 1, for a value of a row in memory
	Each   uint64 // what each element of its list costs, if it has a list that does not set its length; 0 means 1
	Chosen uint64 // what it costs more if an argument of [ChosenBy] is given
	Queued bool   // its work has a queue of its own
	Length uint64 // of a list that has no argument for its length, but is not longer than this
	Value  *Value // nil: gqlgen writes it, because it has a resolver or there is no need for speed
}

// ChosenBy are the arguments, and fields of arguments, for which a field with Chosen reads more.
var ChosenBy = []string{"filter", "orderBy", "only.list"}

// Given are the fields of input objects for which more is read, and what that costs each time that they are given: up to 5,000 rows, in 6 ms,
// of a list that a user has made, or of the edges of a declared kind.
var Given = map[string]uint64{"PeopleFilter.list": 5000, "PeopleFilter.relatedTo": 5000}

// Needs is what has to be read of an object before one of its fields can be answered.
type Needs uint32

const (
	Row      Needs = 1 << iota // of a user: its row
	Counts                     // of a user: its counts
	Edge                       // of a relationship: the edge from its first user to its second
	Back                       // of a relationship: the edge from its second user to its first
	Mark                       // of a relationship: the first user's note on the second
	Mute                       // of a relationship: whether the first user mutes the second
	Friends                    // of a user: how many friends it has, if both lists are open
	Favorite                   // of a post: whether the viewer has favorited it
	Rows                       // of a page: the users on it
	Total                      // of a page: how long the list is
	Cursors                    // of a page: the positions of the users on it
	Around                     // of a page: where it begins and ends, and what is before and behind it
	Details                    // of a page of edges: what a row of its own says of each

	OpenFollowings // whether the user's followings are open to the viewer
	OpenFollowers  // whether its followers are

	// Inverse: something is read from an inverse side, or counted there. It is set for an object if
	// it is set for anything below.
	Inverse
	// SignedIn: nothing of this is needed if nobody is signed in.
	SignedIn
)

// Part is what a field is of a page, or of an edge on it.
type Part uint8

const (
	Edges Part = iota + 1
	Item       // what is on the page
)

// Of is a field by its type's name and its own; nil if the type has a table without it.
func Of(typeName, name string) *Field {
	if t := Types[typeName]; t != nil && t.Fields != nil {
		return t.Fields[name]
	}
	return new(Field)
}

// Named is a type by its name.
func Named(name string) *Type {
	t, known := Types[name]
	if !known {
		one := []string{name}
		made, _ := tableless.LoadOrStore(name, &Type{Name: name, Is: one, Possible: one})
		t = made.(*Type)
	}
	return t
}

var tableless sync.Map // types, by their names

// Types are all types with a table, and those that they are, by name.
var Types = byName(
	&query, &mutation, &subscription,
	&viewer, &userAttributes, &followAttributes, &postAttributes, &user, &listVisibility, &relationship, &edgesAmong,
	&userConnection, &followConnection, &matchConnection, &blockConnection, &userEdge, &followEdge, &matchEdge, &blockEdge, &pageInfo, &searchConnection, &searchEdge,
	&suggestionConnection, &suggestionEdge, &request, &requestConnection, &requestEdge,
	&post, &media, &postConnection, &postEdge, &feedConnection, &comment, &commentConnection, &commentEdge,
	&activity, &activityConnection, &activityEdge, &favoriteConnection, &favoriteEdge, &favoritedByConnection, &favoritedByEdge,
	&changeEvent, &consistency, &reconcileStatus, &moderationConnection, &moderationEdge, &moderationEntry, &relationConnection, &relationEdge, &edgeAttributes,
	&listType, &listConnection, &listEdge, &accountsImport,
)

func byName(types ...*Type) map[string]*Type {
	all := make(map[string]*Type, len(types))
	for _, t := range types {
		all[t.Name] = t
		for _, name := range t.Is {
			if all[name] == nil {
				all[name] = &Type{Name: name, Is: []string{name}}
			}
			all[name].Possible = append(all[name].Possible, t.Name)
		}
		t.Is, t.Possible = append([]string{t.Name}, t.Is...), []string{t.Name}
	}
	return all
}

// made is a type of whose fields some are zero.
func made(name string, names ...string) Type { return alike(name, Field{}, names...) }

// alike is a type whose fields are all the same.
func alike(name string, each Field, names ...string) Type {
	t := Type{Name: name, Fields: make(map[string]*Field, len(names))}
	for _, field := range names {
		t.Fields[field] = &each
	}
	return t
}

// pageOf is a connection, by its page.
func pageOf[C, E, N any](name string, page func(*C) *model.Page[E, N]) Type {
	return Type{Name: name, Fields: map[string]*Field{
		"edges":    {Part: Edges, Needs: Rows, Value: list(func(c *C) []*E { return page(c).Edges })},
		"nodes":    {Part: Item, Needs: Rows, Value: list(func(c *C) []*N { return page(c).Nodes })},
		"pageInfo": {Needs: Rows | Around, Value: object(func(c *C) *model.PageInfo { return page(c).PageInfo })},
	}}
}

// countedPageOf is a connection that knows how long its list is.
func countedPageOf[C, E, N any](name string, page func(*C) *model.CountedPage[E, N]) Type {
	return with(pageOf(name, func(c *C) *model.Page[E, N] { return &page(c).Page }), map[string]*Field{
		"totalCount": {Needs: Total, Value: number(func(c *C) (int32, error) { return page(c).TotalCount() })},
		"complete":   {Value: boolean(func(c *C) bool { return page(c).Complete })},
	})
}

func countedUsers(c *model.UserConnection) *model.CountedPage[model.UserEdge, model.User] {
	return &c.CountedPage
}

// edgeOf is an edge, by its parts.
func edgeOf[E, N any](name string, parts func(*E) (cursor string, node *N)) Type {
	return Type{Name: name, Fields: map[string]*Field{
		"cursor": {Needs: Cursors, Value: text(func(e *E) string { cursor, _ := parts(e); return cursor })},
		"node":   {Part: Item, Value: object(func(e *E) *N { _, node := parts(e); return node })},
	}}
}

// with is a type with more fields.
func with(t Type, more map[string]*Field) Type {
	maps.Copy(t.Fields, more)
	return t
}

func edgeOfUser(e *model.UserEdge) (cursor string, node *model.User) { return e.Cursor, e.Node }

// sinceWhen is an edge with a field that says since when it is there.
func sinceWhen(name, field string) Type {
	return with(edgeOf(name, edgeOfUser), map[string]*Field{field: {Value: moment(func(e *model.UserEdge) time.Time { return e.Since })}})
}

var (
	userConnection   = countedPageOf("UserConnection", countedUsers)
	followConnection = countedPageOf("FollowConnection", countedUsers)
	matchConnection  = countedPageOf("MatchConnection", countedUsers)
	blockConnection  = countedPageOf("BlockConnection", countedUsers)

	relationConnection = countedPageOf("RelationConnection", func(c *model.RelationConnection) *model.CountedPage[model.RelationEdge, model.User] {
		return &c.CountedPage
	})
	relationEdge = with(edgeOf("RelationEdge", func(e *model.RelationEdge) (string, *model.User) { return e.Cursor, e.Node }), map[string]*Field{
		"endId":      {Value: text(func(e *model.RelationEdge) string { return e.EndID })},
		"since":      {Value: moment(func(e *model.RelationEdge) time.Time { return e.Since })},
		"until":      {Weight: 2, Needs: Details, Value: optionalOrFails((*model.RelationEdge).Until, model.AppendDateTime)},
		"attributes": {Weight: 10, Needs: Details, Value: attributesOrFail((*model.RelationEdge).Attributes)},
	})

	userEdge   = edgeOf("UserEdge", edgeOfUser)
	followEdge = sinceWhen("FollowEdge", "followedAt")
	matchEdge  = sinceWhen("MatchEdge", "matchedAt")
	blockEdge  = sinceWhen("BlockEdge", "blockedAt")
)

var pageInfo = Type{Name: "PageInfo", Fields: map[string]*Field{
	"hasNextPage":     {Value: boolean(func(p *model.PageInfo) bool { return p.HasNextPage })},
	"hasPreviousPage": {Value: boolean(func(p *model.PageInfo) bool { return p.HasPreviousPage })},
	"startCursor":     {Value: optionalText(func(p *model.PageInfo) *string { return p.StartCursor })},
	"endCursor":       {Value: optionalText(func(p *model.PageInfo) *string { return p.EndCursor })},
}}

var (
	searchConnection = with(pageOf("UserSearchConnection", (*model.UserConnection).Plain), map[string]*Field{"complete": {Value: boolean(func(c *model.UserConnection) bool { return c.Complete })}})
	searchEdge       = edgeOf("UserSearchEdge", edgeOfUser)

	suggestionConnection = with(pageOf("SuggestionConnection", (*model.SuggestionConnection).Plain), map[string]*Field{
		"complete": {Value: boolean(func(c *model.SuggestionConnection) bool { return c.Complete })},
		"excluded": {},
	})
	suggestionEdge = with(edgeOf("SuggestionEdge", func(e *model.SuggestionEdge) (string, *model.User) { return e.Cursor, e.Node }), map[string]*Field{
		"score":       {Value: decimal(func(e *model.SuggestionEdge) float64 { return e.Score })},
		"sharedCount": {Value: number(func(e *model.SuggestionEdge) (int32, error) { return e.SharedCount, nil })},
		"reason":      {Value: text(func(e *model.SuggestionEdge) model.SuggestionReason { return e.Reason })},
		"via":         {},
	})

	requestConnection = countedPageOf("RequestConnection", func(c *model.RequestConnection) *model.CountedPage[model.RequestEdge, model.Request] {
		return &c.CountedPage
	})
	requestEdge = edgeOf("RequestEdge", func(e *model.RequestEdge) (string, *model.Request) { return e.Cursor, e.Node })
)

// Value says how to write a field whose value is at hand: a scalar, an object, or a list of
// objects. v is the object that has the field.
type Value struct {
	Append func(to []byte, v any) []byte // of a scalar
	Fails  func(v any) bool              // whether it could not be read; nil: never

	Object func(v any) any // nil for null

	Len func(v any) int        // of a list; negative: null
	At  func(v any, i int) any // an element; nil for null
}

// The kinds of values, by the result of a getter.

func id[T any](get func(*T) storage.UserID) *Value {
	return &Value{Append: func(to []byte, v any) []byte {
		return append(appendInt(append(to, '"'), get(v.(*T))), '"')
	}}
}

func text[T any, S ~string](get func(*T) S) *Value {
	return &Value{Append: func(to []byte, v any) []byte { return AppendString(to, string(get(v.(*T)))) }}
}

func optionalText[T any, S ~string](get func(*T) *S) *Value {
	return optional(get, func(to []byte, s S) []byte { return AppendString(to, string(s)) })
}

func boolean[T any](get func(*T) bool) *Value {
	return &Value{Append: func(to []byte, v any) []byte { return strconv.AppendBool(to, get(v.(*T))) }}
}

func optionalBoolean[T any](get func(*T) *bool) *Value {
	return optional(get, strconv.AppendBool)
}

func moment[T any](get func(*T) time.Time) *Value {
	return &Value{Append: func(to []byte, v any) []byte { return model.AppendDateTime(to, get(v.(*T))) }}
}

func optionalMoment[T any](get func(*T) *time.Time) *Value {
	return optional(get, model.AppendDateTime)
}

func decimal[T any](get func(*T) float64) *Value {
	return &Value{Append: func(to []byte, v any) []byte { return strconv.AppendFloat(to, get(v.(*T)), 'g', -1, 64) }}
}

// number is an Int, which fails if get does.
func number[T any](get func(*T) (int32, error)) *Value {
	return &Value{
		Append: func(to []byte, v any) []byte {
			n, _ := get(v.(*T))
			return appendInt(to, n)
		},
		Fails: failing(get),
	}
}

// optionalOrFails is a value or null, which fails if get does.
func optionalOrFails[T, V any](get func(*T) (*V, error), spell func([]byte, V) []byte) *Value {
	v := optional(func(v *T) *V { value, _ := get(v); return value }, spell)
	v.Fails = failing(get)
	return v
}

func failing[T, V any](get func(*T) (V, error)) func(any) bool {
	return func(v any) bool {
		_, err := get(v.(*T))
		return err != nil
	}
}

func optional[T, V any](get func(*T) *V, spell func([]byte, V) []byte) *Value {
	return &Value{Append: func(to []byte, v any) []byte {
		if value := get(v.(*T)); value != nil {
			return spell(to, *value)
		}
		return append(to, "null"...)
	}}
}

// object is a field that is another object, or null.
func object[T, U any](get func(*T) *U) *Value {
	return &Value{Object: func(v any) any { return orNil(get(v.(*T))) }}
}

// list is a field that is a list of objects; a nil list is null.
func list[T, U any](get func(*T) []*U) *Value {
	return &Value{
		Len: func(v any) int {
			if all := get(v.(*T)); all != nil {
				return len(all)
			}
			return -1
		},
		At: func(v any, i int) any { return orNil(get(v.(*T))[i]) },
	}
}

func orNil[T any](v *T) any {
	if v == nil {
		return nil
	}
	return v
}

// How values are written: as gqlgen and kith/graph/model write them.

func appendInt[N ~int32 | ~int64](to []byte, n N) []byte { return strconv.AppendInt(to, int64(n), 10) }

const hex = "0123456789ABCDEF"

// AppendString writes a text.
func AppendString(to []byte, s string) []byte {
	to = append(to, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '\\' && c != '"' || c >= utf8.RuneSelf {
			continue
		}
		to = append(to, s[start:i]...)
		switch c {
		case '\t':
			to = append(to, `\t`...)
		case '\r':
			to = append(to, `\r`...)
		case '\n':
			to = append(to, `\n`...)
		case '\\', '"':
			to = append(to, '\\', c)
		default:
			to = append(to, `\u00`...)
			to = append(to, hex[c>>4], hex[c&0xf])
		}
		start = i + 1
	}
	return append(append(to, s[start:]...), '"')
}
