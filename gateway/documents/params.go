package documents

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/go-json-experiment/json/jsontext"

	"kith/gateway/exchange"
	"kith/graph/apierr"
	"kith/graph/limits"
)

const (
	// AllowedMethods are those of the header Allow.
	AllowedMethods = "GET, POST, OPTIONS"

	// maxPooledBody is the size up to which a buffer is kept for the next body.
	maxPooledBody = 64 << 10
)

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Release lets the memory of a body be used again, unless it is large.
func Release(body *bytes.Buffer) {
	if body.Cap() <= maxPooledBody {
		body.Reset()
		bodies.Put(body)
	}
}

// Body takes a request's body of at most so many bytes, which is empty of a GET.
func Body(x *exchange.Exchange, r *http.Request, most int64) (*bytes.Buffer, *exchange.Refusal) {
	switch {
	case r.Method == http.MethodGet:
		return new(bytes.Buffer), nil
	case r.Method != http.MethodPost:
		x.Header().Set("Allow", AllowedMethods)
		return nil, exchange.Refuse(http.StatusMethodNotAllowed, "queries are sent by POST or GET")
	case !isJSON(r.Header.Get("Content-Type")):
		return nil, exchange.Refuse(http.StatusUnsupportedMediaType, "the content type has to be application/json, in UTF-8")
	case r.Header.Get("Content-Encoding") != "" && r.Header.Get("Content-Encoding") != "identity":
		return nil, exchange.Refuse(http.StatusUnsupportedMediaType, "the body must not be compressed")
	case r.ContentLength > most:
		return nil, tooLarge(x, r, most)
	}
	body := bodies.Get().(*bytes.Buffer)
	if _, err := body.ReadFrom(http.MaxBytesReader(x, r.Body, most)); err != nil {
		Release(body)
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, tooLarge(x, r, most)
		}
		return nil, exchange.Refuse(http.StatusBadRequest, "the body could not be read to its end")
	}
	return body, nil
}

// isJSON reports whether a content type is JSON in UTF-8, which is what it is without a charset (RFC 8259, section 8.1).
func isJSON(value string) bool {
	media, parameters, err := mime.ParseMediaType(value)
	charset := strings.ToLower(parameters["charset"])
	return err == nil && media == "application/json" && (charset == "" || charset == "utf-8" || charset == "us-ascii")
}

// tooLarge gives up the connection: to use it again, the gateway would have to read the rest of the
// body.
func tooLarge(x *exchange.Exchange, r *http.Request, most int64) *exchange.Refusal {
	x.CloseAfter(r)
	return exchange.Refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", most)
}

// ParametersOf are the parameters that were received. No part of them is quoted if they are malformed: they may hold secrets.
func ParametersOf(r *http.Request, body *bytes.Buffer) (params *graphql.RawParams, err error) {
	if r.Method == http.MethodGet {
		params, err = decodeQuery(r.URL.RawQuery)
	} else {
		params, err = ReadParameters(body)
	}
	if err == nil && IsNothing(params) {
		err = apierr.MalformedRequest.Error("the parameter query is missing")
	}
	if err != nil {
		if _, ok := apierr.Of(err); !ok {
			err = apierr.MalformedRequest.Error("the body is not JSON, or has a text that is not UTF-8 or has half of a surrogate pair")
		}
		return nil, err
	}
	params.Headers = r.Header
	return params, nil
}

// decodeQuery reads the parameters of a GET.
func decodeQuery(query string) (*graphql.RawParams, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, apierr.MalformedRequest.Error("the query string cannot be read")
	}
	params := &graphql.RawParams{Query: values.Get("query"), OperationName: values.Get("operationName")}
	for name, read := range map[string]func(Decoder) error{
		"variables":  func(r Decoder) (err error) { params.Variables, err = r.variables(); return err },
		"extensions": func(r Decoder) (err error) { params.Extensions, err = r.extensions(); return err },
	} {
		if text := values.Get(name); text != "" {
			if err := ReadJSON(bytes.NewBufferString(text), read); err != nil {
				if _, ok := apierr.Of(err); !ok {
					err = apierr.MalformedRequest.Error("the parameter %s is not a JSON object", name)
				}
				return nil, err
			}
		}
	}
	nameDocument(params, values.Get(exchange.ParameterDocument))
	return params, nil
}

// maxPersistedExtension is how many bytes this extension may have: a version and a hash take some
// 100.
const maxPersistedExtension = 1 << 10

// errExtension means that a persisted query is not a version and a hash.
var errExtension = apierr.MalformedRequest.Error("the extension %s has at most %d bytes", exchange.ExtensionPersisted, maxPersistedExtension)

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

// Decoder reads the parameters of GraphQL requests. It reads by tokens, which costs half as much as
// encoding/json; and it skips values that are not used. Numbers stay text, so that long ids keep
// their digits.
type Decoder struct {
	*jsontext.Decoder
	text string // the whole text; strings without escapes are parts of it
	left *int   // how many values are still to be read; nil for all
}

// As in encoding/json, the last of several values of a name counts. Bytes that are not UTF-8, and halves of surrogate pairs, are
// refused (RFC 8259, section 8): replaced by U+FFFD they would be stored.
var lenient = jsontext.AllowDuplicateNames(true)

var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// ReadJSON reads the one JSON value that a text is, and uses the text up.
func ReadJSON(text *bytes.Buffer, read func(Decoder) error) error {
	r := Decoder{decoders.Get().(*jsontext.Decoder), text.String(), nil}
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

// ReadParameters reads the parameters of a request. The query and the name share no memory with the
// body, because caches keep them.
func ReadParameters(text *bytes.Buffer) (*graphql.RawParams, error) {
	p := new(graphql.RawParams)
	return p, ReadJSON(text, func(r Decoder) error { return r.params(p) })
}

func (r Decoder) params(p *graphql.RawParams) error {
	var document string
	_, err := r.Object(func(name string) (err error) {
		switch name { // exactly: a proxy in front, which reads other names, would see another document
		case "query":
			p.Query, err = r.Parameter("query")
		case "operationName":
			p.OperationName, err = r.Parameter("operationName")
		case "variables":
			if p.Variables, err = r.variables(); errors.Is(err, errNoObject) {
				err = wrongType("variables")
			}
		case "extensions":
			if p.Extensions, err = r.extensions(); errors.Is(err, errNoObject) {
				err = wrongType("extensions")
			}
		case exchange.ParameterDocument:
			document, err = r.Parameter(exchange.ParameterDocument)
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
	p.Extensions[exchange.ParameterDocument] = id
}

// IsNothing reports whether parameters name no query at all.
func IsNothing(p *graphql.RawParams) bool {
	return p.Query == "" && p.Extensions[exchange.ExtensionPersisted] == nil && p.Extensions[exchange.ParameterDocument] == nil
}

// Parameter reads a text, which may be null.
func (r Decoder) Parameter(name string) (string, error) {
	switch r.PeekKind() {
	case '"':
		text, err := r.string()
		return strings.Clone(text), err
	case 'n', 0: // null, or no JSON
		return "", r.SkipValue()
	}
	return "", wrongType(name)
}

// extensions reads the extensions that Kith knows: the consistency token, if it is a text, cost and why, if they are true, and the
// persisted query. It skips the others. As values they would take some fifty times the memory of their text, for as long as
// the operation runs.
func (r Decoder) extensions() (map[string]any, error) {
	e := map[string]any{}
	there, err := r.Object(func(name string) (err error) {
		switch {
		case name == exchange.ExtensionConsistency && r.PeekKind() == '"':
			e[name], err = r.string()
		case (name == exchange.ExtensionCost || name == exchange.ExtensionWhy) && r.PeekKind() == 't':
			e[name], err = r.value()
		case name == exchange.ExtensionPersisted:
			var text string
			if text, err = r.Raw(); len(text) > maxPersistedExtension {
				return errExtension
			} else if err == nil {
				err = ReadJSON(bytes.NewBufferString(text), func(r Decoder) error {
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
func (r Decoder) variables() (all map[string]any, err error) {
	text, err := r.Raw()
	if err != nil {
		return nil, err
	}
	left := limits.Values + 1
	err = ReadJSON(bytes.NewBufferString(text), func(r Decoder) (err error) {
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
func (r Decoder) mapping() (map[string]any, error) {
	m := map[string]any{}
	there, err := r.Object(func(name string) (err error) {
		m[name], err = r.value()
		return err
	})
	if !there {
		return nil, err
	}
	return m, err
}

// Object reads an object, the value of each name by a function. there is false if it is null.
func (r Decoder) Object(value func(name string) error) (there bool, err error) {
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

func (r Decoder) list() ([]any, error) {
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
func (r Decoder) value() (any, error) {
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
		number, err := r.Raw()
		return stdjson.Number(number), err
	}
	token, err := r.ReadToken()
	if err != nil || token.Kind() == 'n' {
		return nil, err
	}
	return token.Bool(), nil
}

func (r Decoder) string() (string, error) {
	raw, err := r.Raw()
	if err != nil {
		return "", err
	}
	if text := raw[1 : len(raw)-1]; strings.IndexByte(text, '\\') < 0 {
		return text, nil
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err
}

// Raw is the text of the next value.
func (r Decoder) Raw() (string, error) {
	value, err := r.ReadValue()
	end := int(r.InputOffset())
	return r.text[end-len(value) : end], err
}
