package gateway

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"io"
	"maps"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/go-json-experiment/json/jsontext"

	"kith/graph/apierr"
	"kith/graph/limits"
)

// extensionPersisted is the extension that names a query by its hash.
const extensionPersisted = "persistedQuery"

// maxPersistedExtension is how many bytes this extension may have: a version and a hash take some
// 100.
const maxPersistedExtension = 1 << 10

// errExtension means that a persisted query is not a version and a hash.
var errExtension = apierr.MalformedRequest.Error("the extension %s has at most %d bytes", extensionPersisted, maxPersistedExtension)

// The other errors of a text of JSON. A text that is no JSON has one of jsontext.
var (
	errNoObject = errors.New("it is no object")
	errEnough   = errors.New("it has more values than are read")
	errFollows  = errors.New("something follows the JSON value")
)

// wrongType is the error of a parameter that has a value of the wrong type.
func wrongType(name string) error {
	return apierr.MalformedRequest.Error("the parameter %s is of the wrong type", name)
}

// decoder reads the parameters of GraphQL requests. It reads by tokens, which costs half as much as
// encoding/json; and it skips values that are not used. Numbers stay text, so that long ids keep
// their digits.
type decoder struct {
	*jsontext.Decoder
	text string // the whole text; strings without escapes are parts of it
	left *int   // how many values are still to be read; nil for all
}

// As in encoding/json, the last of several values of a name counts. Bytes that are not UTF-8, and halves of surrogate pairs, are
// refused (RFC 8259, section 8): replaced by U+FFFD they would be stored.
var lenient = jsontext.AllowDuplicateNames(true)

var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// readJSON reads the one JSON value that a text is, and uses the text up.
func readJSON(text *bytes.Buffer, read func(decoder) error) error {
	r := decoder{decoders.Get().(*jsontext.Decoder), text.String(), nil}
	defer func() {
		if len(r.text) <= maxPooledBody { // it holds the text until it is used again
			decoders.Put(r.Decoder)
		}
	}()
	r.Reset(text, lenient)
	if err := read(r); err != nil {
		return err
	}
	if _, err := r.ReadToken(); !errors.Is(err, io.EOF) {
		return errFollows
	}
	return nil
}

// readParams reads the parameters of a request. The query and the name share no memory with the
// body, because caches keep them.
func readParams(text *bytes.Buffer) (*graphql.RawParams, error) {
	p := new(graphql.RawParams)
	return p, readJSON(text, func(r decoder) error { return r.params(p) })
}

func (r decoder) params(p *graphql.RawParams) error {
	var document string
	_, err := r.object(func(name string) (err error) {
		switch name { // exactly: a proxy in front, which reads other names, would see another document
		case "query":
			p.Query, err = r.parameter("query")
		case "operationName":
			p.OperationName, err = r.parameter("operationName")
		case "variables":
			if p.Variables, err = r.variables(); errors.Is(err, errNoObject) {
				err = wrongType("variables")
			}
		case "extensions":
			if p.Extensions, err = r.extensions(); errors.Is(err, errNoObject) {
				err = wrongType("extensions")
			}
		case parameterDocument:
			document, err = r.parameter(parameterDocument)
		default:
			err = r.SkipValue()
		}
		return err
	})
	if errors.Is(err, errNoObject) {
		return apierr.MalformedRequest.Error("the body has to be a JSON object: send each operation as a request of its own")
	}
	nameDocument(p, document)
	return err
}

// nameDocument notes the id that stands for the query's text, unless it is empty.
func nameDocument(p *graphql.RawParams, id string) {
	if id == "" {
		return
	}
	if p.Extensions == nil {
		p.Extensions = map[string]any{}
	}
	p.Extensions[parameterDocument] = id
}

// isNothing reports whether parameters name no query at all.
func isNothing(p *graphql.RawParams) bool {
	return p.Query == "" && p.Extensions[extensionPersisted] == nil && p.Extensions[parameterDocument] == nil
}

// parameter reads a text, which may be null.
func (r decoder) parameter(name string) (string, error) {
	switch r.PeekKind() {
	case '"':
		text, err := r.string()
		return strings.Clone(text), err
	case 'n', 0: // null, or no JSON
		return "", r.SkipValue()
	}
	return "", wrongType(name)
}

// extensions reads the extensions that Kith knows: the consistency token, if it is a text, cost, if it is true, and the
// persisted query. It skips the others. As values they would take some fifty times the memory of their text, for as long as
// the operation runs.
func (r decoder) extensions() (map[string]any, error) {
	e := map[string]any{}
	there, err := r.object(func(name string) (err error) {
		switch {
		case name == extensionConsistency && r.PeekKind() == '"':
			e[name], err = r.string()
		case name == extensionCost && r.PeekKind() == 't':
			e[name], err = r.value()
		case name == extensionPersisted:
			var text string
			if text, err = r.raw(); len(text) > maxPersistedExtension {
				return errExtension
			} else if err == nil {
				err = readJSON(bytes.NewBufferString(text), func(r decoder) error {
					persisted, err := r.value()
					if names, ok := persisted.(map[string]any); ok { // gqlgen would take other letters for the same name
						maps.DeleteFunc(names, func(n string, _ any) bool { return n != "version" && n != "sha256Hash" })
					}
					e[name] = persisted
					return err
				})
			}
		default:
			delete(e, name)
			err = r.SkipValue()
		}
		return err
	})
	if !there {
		return nil, err
	}
	return e, err
}

// variables reads an object, nil for null. As values, they take some fifty times the memory of their text. Therefore the text
// is only checked to its end, and values are read up to the first one that the limits do not allow. They refuse it later, when it
// is known whose operation it is.
func (r decoder) variables() (all map[string]any, err error) {
	text, err := r.raw()
	if err != nil {
		return nil, err
	}
	left := limits.Values + 1
	err = readJSON(bytes.NewBufferString(text), func(r decoder) (err error) {
		r.left = &left
		all, err = r.mapping()
		return err
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return all, err
}

// mapping reads an object, nil for null.
func (r decoder) mapping() (map[string]any, error) {
	m := map[string]any{}
	there, err := r.object(func(name string) (err error) {
		m[name], err = r.value()
		return err
	})
	if !there {
		return nil, err
	}
	return m, err
}

// object reads an object, the value of each name by a function. there is false if it is null.
func (r decoder) object(value func(name string) error) (there bool, err error) {
	switch r.PeekKind() {
	case '{':
	case 'n', 0: // null, or no JSON
		return false, r.SkipValue()
	default:
		return false, errNoObject
	}
	if _, err := r.ReadToken(); err != nil {
		return true, err
	}
	for r.PeekKind() == '"' {
		name, err := r.string()
		if err == nil {
			err = value(name)
		}
		if err != nil {
			return true, err
		}
	}
	_, err = r.ReadToken() // its end
	return true, err
}

func (r decoder) list() ([]any, error) {
	if _, err := r.ReadToken(); err != nil {
		return nil, err
	}
	all := []any{}
	for r.PeekKind() != ']' {
		one, err := r.value()
		all = append(all, one)
		if err != nil {
			return all, err
		}
	}
	_, err := r.ReadToken()
	return all, err
}

// value reads any value.
func (r decoder) value() (any, error) {
	if r.left != nil {
		if *r.left--; *r.left <= 0 || r.StackDepth() > limits.ValueDepth {
			return nil, errEnough
		}
	}
	switch r.PeekKind() {
	case '{':
		return r.mapping()
	case '[':
		return r.list()
	case '"':
		return r.string()
	case '0':
		number, err := r.raw()
		return stdjson.Number(number), err
	}
	token, err := r.ReadToken()
	if err != nil || token.Kind() == 'n' {
		return nil, err
	}
	return token.Bool(), nil
}

func (r decoder) string() (string, error) {
	raw, err := r.raw()
	if err != nil {
		return "", err
	}
	if text := raw[1 : len(raw)-1]; strings.IndexByte(text, '\\') < 0 {
		return text, nil
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err
}

// raw is the text of the next value.
func (r decoder) raw() (string, error) {
	value, err := r.ReadValue()
	end := int(r.InputOffset())
	return r.text[end-len(value) : end], err
}
