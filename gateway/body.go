package gateway

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
)

// scanParams reads the JSON that nearly every POST is: one object with the parameters of
// a GraphQL request, each at most once. It reads in one pass what encoding/json validates
// first, then decodes with reflection; that was a tenth of the work on a short query.
//
// Whatever it does not know it leaves to encoding/json, errors included: where ok is true,
// the parameters are what that would have made of the text.
func scanParams(text string) (params graphql.RawParams, ok bool) {
	s := scanner{text: text}
	var query, name string
	seen := 0 // a bit for each parameter
	if !s.object(func(key string) bool {
		switch key {
		case "query":
			query, ok = s.string()
			return ok && once(&seen, 1)
		case "operationName":
			if s.literal("null") {
				return once(&seen, 2)
			}
			name, ok = s.string()
			return ok && once(&seen, 2)
		case "variables":
			params.Variables, ok = s.optionalMap()
			return ok && once(&seen, 4)
		case "extensions":
			params.Extensions, ok = s.extensions()
			return ok && once(&seen, 8)
		}
		return false
	}) {
		return graphql.RawParams{}, false
	}
	s.blanks()
	if s.at != len(text) {
		return graphql.RawParams{}, false
	}
	// The caches keep the query, and must not keep the rest of the text with it.
	params.Query, params.OperationName = strings.Clone(query), strings.Clone(name)
	return params, true
}

// once notes a bit; false if it was there.
func once(seen *int, bit int) bool {
	if *seen&bit != 0 {
		return false
	}
	*seen |= bit
	return true
}

// scanner reads JSON values from a text. The strings that it returns are parts of the
// text, unless they hold escapes.
type scanner struct {
	text  string
	at    int
	depth int
}

// mostNested is how deep it follows objects and lists.
const mostNested = 64

func (s *scanner) blanks() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// next takes a character that may have blanks before it.
func (s *scanner) next(c byte) bool {
	s.blanks()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) literal(word string) bool {
	s.blanks()
	if strings.HasPrefix(s.text[s.at:], word) {
		s.at += len(word)
		return true
	}
	return false
}

// object reads an object, the value of each key by a function.
func (s *scanner) object(value func(key string) bool) bool {
	if s.depth++; s.depth > mostNested || !s.next('{') {
		return false
	}
	defer func() { s.depth-- }()
	if s.next('}') {
		return true
	}
	for {
		key, ok := s.string()
		if !ok || !s.next(':') || !value(key) {
			return false
		}
		if s.next('}') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

func (s *scanner) optionalMap() (map[string]any, bool) {
	if s.literal("null") {
		return nil, true
	}
	return s.mapping()
}

func (s *scanner) mapping() (map[string]any, bool) {
	m := map[string]any{}
	ok := s.object(func(key string) bool {
		value, ok := s.value()
		m[key] = value
		return ok
	})
	return m, ok
}

// lengthAhead guesses how long a list is that has just begun: right for a list of ids. It
// looks no further than to the list's end, or to a list in it, so that lists in lists do not
// have room made for the same text again and again.
func (s *scanner) lengthAhead() int {
	const most = 1000
	rest := s.text[s.at:]
	if end := strings.IndexByte(rest, ']'); end >= 0 {
		rest = rest[:end]
	}
	if begin := strings.IndexByte(rest, '['); begin >= 0 {
		rest = rest[:begin]
	}
	return 1 + min(most, strings.Count(rest, ","))
}

func (s *scanner) list() ([]any, bool) {
	all := []any{}
	ok := s.elements(func() bool {
		if len(all) == 0 {
			all = make([]any, 0, s.lengthAhead())
		}
		value, ok := s.value()
		all = append(all, value)
		return ok
	})
	return all, ok
}

// elements reads a list, each of its values by a function.
func (s *scanner) elements(value func() bool) bool {
	if s.depth++; s.depth > mostNested || !s.next('[') {
		return false
	}
	defer func() { s.depth-- }()
	if s.next(']') {
		return true
	}
	for value() {
		if s.next(']') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
	return false
}

// skip passes over any value, and makes nothing of it.
func (s *scanner) skip() bool {
	s.blanks()
	if rest := s.text[s.at:]; strings.HasPrefix(rest, "{") {
		return s.object(func(string) bool { return s.skip() })
	} else if strings.HasPrefix(rest, "[") {
		return s.elements(s.skip)
	}
	_, ok := s.value()
	return ok
}

// value reads any value, numbers as their text.
func (s *scanner) value() (any, bool) {
	s.blanks()
	if s.at == len(s.text) {
		return nil, false
	}
	switch s.text[s.at] {
	case '"':
		return boxed(s.string())
	case '{':
		return boxed(s.mapping())
	case '[':
		return boxed(s.list())
	case 't':
		return true, s.literal("true")
	case 'f':
		return false, s.literal("false")
	case 'n':
		return nil, s.literal("null")
	}
	return boxed(s.number())
}

func boxed[T any](v T, ok bool) (any, bool) { return v, ok }

// number reads a number as RFC 8259 spells it.
func (s *scanner) number() (json.Number, bool) {
	start := s.at
	s.sign("-")
	whole := s.at
	if !s.digits() || s.text[whole] == '0' && s.at > whole+1 {
		return "", false
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if !s.digits() {
			return "", false
		}
	}
	if s.at < len(s.text) && (s.text[s.at] == 'e' || s.text[s.at] == 'E') {
		s.at++
		s.sign("+-")
		if !s.digits() {
			return "", false
		}
	}
	return json.Number(s.text[start:s.at]), true
}

func (s *scanner) sign(any string) {
	if s.at < len(s.text) && strings.IndexByte(any, s.text[s.at]) >= 0 {
		s.at++
	}
}

// digits takes digits; false if there is none.
func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}

// string reads a string. Escapes of code points are left to encoding/json, and so is what
// is no UTF-8.
func (s *scanner) string() (string, bool) {
	if !s.next('"') {
		return "", false
	}
	start := s.at
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			part := s.text[start:s.at]
			s.at++
			return part, utf8.ValidString(part)
		case c == '\\':
			return s.unescaped(start)
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

// escapes are what stands behind a backslash, and for what.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescaped reads on in a string that began at start, from its first escape.
func (s *scanner) unescaped(start int) (string, bool) {
	b := append(make([]byte, 0, 2*(s.at-start)+16), s.text[start:s.at]...)
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return string(b), utf8.Valid(b)
		case c < ' ':
			return "", false
		case c != '\\':
			b = append(b, c)
		case s.at+1 < len(s.text) && escapes[s.text[s.at+1]] != 0:
			s.at++
			b = append(b, escapes[s.text[s.at]])
		default:
			return "", false
		}
	}
	return "", false
}
