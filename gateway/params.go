package gateway

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/go-json-experiment/json/jsontext"

	"kith/graph/apierr"
	"kith/graph/limits"
)

const (
	allowedMethods = "GET, POST, OPTIONS"

	// maxPooledBody is the size up to which a buffer is kept for the next body.
	maxPooledBody = 64 << 10
)

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// release lets the memory of a body be used again, unless it is large.
func release(body *bytes.Buffer) {
	if body.Cap() <= maxPooledBody {
		body.Reset()
		bodies.Put(body)
	}
}

// read takes a request's body, which is empty of a GET.
func (s *server) read(a answer) (*bytes.Buffer, *refusal) {
	r := a.r
	switch {
	case r.Method == http.MethodGet && s.origins.forged(r):
		return nil, &refusal{http.StatusForbidden, apierr.OriginForeign.Error(
			"a page of another origin may not send queries by GET; if it is meant to, send the header %s", headersNotSimple[0])}
	case r.Method == http.MethodGet:
		return new(bytes.Buffer), nil
	case r.Method != http.MethodPost:
		a.Header().Set("Allow", allowedMethods)
		return nil, refuse(http.StatusMethodNotAllowed, "queries are sent by POST or GET")
	case !isJSON(r.Header.Get("Content-Type")):
		return nil, refuse(http.StatusUnsupportedMediaType, "the content type has to be application/json, in UTF-8")
	case r.Header.Get("Content-Encoding") != "" && r.Header.Get("Content-Encoding") != "identity":
		return nil, refuse(http.StatusUnsupportedMediaType, "the body must not be compressed")
	case r.ContentLength > s.MaxBody:
		return nil, s.tooLarge(a)
	}
	body := bodies.Get().(*bytes.Buffer)
	if _, err := body.ReadFrom(http.MaxBytesReader(a, r.Body, s.MaxBody)); err != nil {
		release(body)
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, s.tooLarge(a)
		}
		return nil, refuse(http.StatusBadRequest, "the body could not be read to its end")
	}
	return body, nil
}

// isJSON reports whether a content type is JSON in UTF-8, which is what it is without a charset (RFC 8259, section 8.1).
func isJSON(value string) bool {
	media, parameters, err := mime.ParseMediaType(value)
	charset := strings.ToLower(parameters["charset"])
	return err == nil && media == mediaJSON && (charset == "" || charset == "utf-8" || charset == "us-ascii")
}

// tooLarge gives up the connection: to use it again, the gateway would have to read the rest of the
// body.
func (s *server) tooLarge(a answer) *refusal {
	closing(a, a.r)
	return refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", s.MaxBody)
}

// paramsOf are the parameters that were received. No part of them is quoted if they are malformed: they may hold secrets.
func paramsOf(r *http.Request, body *bytes.Buffer) (params *graphql.RawParams, err error) {
	if r.Method == http.MethodGet {
		params, err = decodeQuery(r.URL.RawQuery)
	} else {
		params, err = readParams(body)
	}
	if err == nil && isNothing(params) {
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
	for name, read := range map[string]func(decoder) error{
		"variables":  func(r decoder) (err error) { params.Variables, err = r.variables(); return err },
		"extensions": func(r decoder) (err error) { params.Extensions, err = r.extensions(); return err },
	} {
		if text := values.Get(name); text != "" {
			if err := readJSON(bytes.NewBufferString(text), read); err != nil {
				if _, ok := apierr.Of(err); !ok {
					err = apierr.MalformedRequest.Error("the parameter %s is not a JSON object", name)
				}
				return nil, err
			}
		}
	}
	nameDocument(params, values.Get(parameterDocument))
	return params, nil
}

// patiences are the headers by which callers say how long they wait for the answer.
var patiences = [...]struct {
	name, form string
	parse      func(string) (time.Duration, bool)
}{
	// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
	{headerGRPCTimeout, "up to 8 digits and one of H, M, S, m, u, n, such as 500m", parseGRPCTimeout},
	{headerTimeout, "milliseconds, or a number with ms, s, m or h, such as 500ms", parseTimeout},
}

// maxTimeout is how many bytes the value of such a header may have.
const maxTimeout = 32

// callerTimeout is how long the caller of a request waits for its answer. It is most if the caller waits longer or does
// not say. If both headers are given, the shorter time counts.
func callerTimeout(r *http.Request, most time.Duration) (time.Duration, *refusal) {
	patience := most
	for _, header := range patiences {
		values := r.Header[header.name]
		if len(values) == 0 {
			continue
		}
		given, ok := header.parse(strings.TrimSpace(values[0]))
		if !ok || len(values) > 1 {
			return 0, refuse(http.StatusBadRequest, "the header %s has to be one time greater than 0: %s", header.name, header.form)
		}
		patience = min(patience, given)
	}
	return patience, nil
}

// grpcUnits are the units of grpc-timeout.
var grpcUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

func parseGRPCTimeout(text string) (time.Duration, bool) {
	if len(text) < 2 || len(text) > 9 {
		return 0, false
	}
	return times(text[:len(text)-1], grpcUnits[text[len(text)-1]])
}

// parseTimeout takes a number without a unit for milliseconds, as Envoy gives them to the servers behind it.
func parseTimeout(text string) (time.Duration, bool) {
	if len(text) > maxTimeout || strings.HasPrefix(text, "+") {
		return 0, false
	}
	if text != "" && strings.Trim(text, "0123456789") == "" {
		return times(text, time.Millisecond)
	}
	given, err := time.ParseDuration(text)
	return given, err == nil && given > 0
}

// times is a number of units. A time that is too long to be represented becomes the longest that
// can be.
func times(digits string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseUint(digits, 10, 63)
	if unit == 0 || err != nil || n == 0 {
		return 0, false
	}
	return time.Duration(min(n, uint64(math.MaxInt64/unit))) * unit, true
}

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
