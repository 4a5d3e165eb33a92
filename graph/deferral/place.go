package deferral

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
)

// A place is where an answer may have an object of a type. No list is on the path to it.
type place struct {
	parent   *place     // nil: it is the root
	field    *ast.Field // whose object it is
	on       *ast.Definition
	narrowed bool // the object may be of other types, too

	children []*place

	// marker is the name under which the answer gets the type of the object, before all its fields; "" if there is none.
	// It is not a valid name of GraphQL, so no client uses it.
	marker string
}

// below is the place of a field's object of a type.
func (p *place) below(s *splitter, f *ast.Field, on *ast.Definition) *place {
	for _, c := range p.children {
		if c.field.Alias == f.Alias && c.on == on {
			return c
		}
	}
	c := &place{parent: p, field: f, on: on, narrowed: len(s.possible(f)) > 1}
	p.children = append(p.children, c)
	return c
}

// has reports whether the object of a field, by its response name, has a place.
func (p *place) has(name string) bool {
	return slices.ContainsFunc(p.children, func(c *place) bool { return c.field.Alias == name })
}

func (p *place) path() []string {
	if p.parent == nil {
		return []string{}
	}
	return append(p.parent.path(), p.field.Alias)
}

// chain selects only the fields that lead to the place, and what is selected there.
func (p *place) chain(set ast.SelectionSet) ast.SelectionSet {
	if p.parent == nil {
		return set
	}
	field := plain(p.field)
	field.SelectionSet = append(ast.SelectionSet{p.markerField()}, set...)
	if p.narrowed {
		field.SelectionSet = ast.SelectionSet{&ast.InlineFragment{TypeCondition: p.on.Name, SelectionSet: field.SelectionSet, ObjectDefinition: p.on, Position: field.Position}}
	}
	return p.parent.chain(ast.SelectionSet{field})
}

// mark has answers show whether the object exists. The root always exists.
func (s *splitter) mark(p *place) {
	if p.parent != nil && p.marker == "" {
		p.marker = markerOf(s.places)
		s.places++
	}
}

func markerOf(place int) string { return string(markerSign) + strconv.Itoa(place) }

const markerSign = '@'

func (p *place) markerField() *ast.Field {
	return &ast.Field{
		Alias: p.marker, Name: "__typename", ObjectDefinition: p.on, Position: p.field.Position,
		Definition: &ast.FieldDefinition{Name: "__typename", Type: ast.NonNullNamedType("String", nil)},
	}
}

// Found is which objects an answer, or several, have.
type Found map[string]bool

// Read takes the markers out of the data of an answer, which it changes, and notes them. From the answer to a
// part it returns only the object; nil if there is none. The data is an object, or null.
func (f Found) Read(of *Operation, data []byte) []byte {
	out, at := data[:0], -1
	for {
		i := bytes.Index(data, markerStart)
		if i < 0 {
			break
		}
		name, length := markerAt(data[i:])
		if length == 0 { // it is the beginning of a value
			out, data = append(out, data[:i+len(markerStart)]...), data[i+len(markerStart):]
			continue
		}
		out, data = append(out, data[:i]...), data[i+length:]
		f[name] = true
		if name == of.place.marker && at < 0 {
			at = len(out) - 1
		}
	}
	out = append(out, data...)
	if of.place.parent == nil {
		return out
	}
	if at < 0 {
		return nil
	}
	return out[at : len(out)-len(of.Path)] // only the ends of the objects that it is in follow
}

var markerStart = []byte{'"', markerSign}

// markerAt is the name of the marker at the beginning of a text, and its length with its value and the comma behind
// it; 0 if there is none. A marker cannot be within a string, where quotes are escaped, and it is not a string
// value, because a colon follows it.
func markerAt(text []byte) (name string, length int) {
	i := len(markerStart)
	for i < len(text) && '0' <= text[i] && text[i] <= '9' {
		i++
	}
	const between = `":"`
	if i == len(markerStart) || !bytes.HasPrefix(text[i:], []byte(between)) {
		return "", 0
	}
	end := i + len(between) + bytes.IndexByte(text[i+len(between):], '"') + 1
	if end < len(text) && text[end] == ',' {
		end++
	}
	return string(text[1:i]), end
}

// Has reports whether the object of an operation was found.
func (f Found) Has(of *Operation) bool { return of.place.parent == nil || f[of.place.marker] }
