package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"

	"github.com/99designs/gqlgen/graphql"

	"kith/graph/apierr"
)

// extensionPersisted is the extension that names a query by its hash.
const extensionPersisted = "persistedQuery"

// maxPersistedExtension is how many bytes it may have: a version and a hash take some 100.
const maxPersistedExtension = 1 << 10

// extensions are those of a request that mean something: the consistency token and the
// persisted query. The others are passed over without being decoded. As values they would
// take some fifty times the memory of their text, for as long as the operation runs.
type extensions map[string]any

// errExtension is a persisted query that is no version and hash.
var errExtension = apierr.BadInput("the extension %s has at most %d bytes", extensionPersisted, maxPersistedExtension)

// passed is a value that is passed over.
type passed struct{}

// UnmarshalJSON implements [json.Unmarshaler].
func (*passed) UnmarshalJSON([]byte) error { return nil }

// UnmarshalJSON implements [json.Unmarshaler].
func (e *extensions) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	switch first, err := decoder.Token(); {
	case err != nil:
		return err
	case first == nil: // null
		return nil
	case first != json.Delim('{'):
		return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[extensions]()}
	}
	all := extensions{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		if err := all.decode(decoder, key); err != nil {
			return err
		}
	}
	*e = all
	return nil
}

// decode takes the value of one key. A consistency token that is no text is none.
func (e extensions) decode(decoder *json.Decoder, key json.Token) error {
	if key != extensionConsistency && key != extensionPersisted {
		return decoder.Decode(new(passed))
	}
	var text json.RawMessage
	if err := decoder.Decode(&text); err != nil {
		return err
	}
	name := key.(string)
	if name == extensionConsistency && text[0] != '"' {
		delete(e, name)
		return nil
	}
	if name == extensionPersisted && len(text) > maxPersistedExtension {
		return errExtension
	}
	var value any
	err := decode(bytes.NewReader(text), &value)
	e[name] = value
	return err
}

// extensions reads what [extensions] is. What is too long is left to encoding/json.
func (s *scanner) extensions() (map[string]any, bool) {
	if s.literal("null") {
		return nil, true
	}
	e := map[string]any{}
	ok := s.object(func(key string) (ok bool) {
		s.blanks()
		start := s.at
		if !s.skip() {
			return false
		}
		value := scanner{text: s.text[start:s.at]}
		switch {
		case key == extensionConsistency && value.text[0] == '"', key == extensionPersisted && len(value.text) <= maxPersistedExtension:
			e[key], ok = value.value()
			return ok
		case key == extensionConsistency:
			delete(e, key)
		}
		return key != extensionPersisted
	})
	return e, ok
}

// unscanned reads the parameters of an operation by encoding/json.
func unscanned(r io.Reader) (graphql.RawParams, error) {
	var p struct {
		Query         string         `json:"query"`
		OperationName string         `json:"operationName"`
		Variables     map[string]any `json:"variables"`
		Extensions    extensions     `json:"extensions"`
	}
	err := decode(r, &p)
	return graphql.RawParams{Query: p.Query, OperationName: p.OperationName, Variables: p.Variables, Extensions: p.Extensions}, err
}
