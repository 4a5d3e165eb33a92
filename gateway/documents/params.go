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
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kith/gateway/exchange"
	"kith/gateway/quota"
	"kith/graph/apierr"
	"kith/graph/limits"
)

const (
	// AllowedMethods are those of the header Allow.
	AllowedMethods = "GET, POST, OPTIONS"

	// partOfBody is how many bytes of a long body are received at a time if nobody knows how many will come.
	partOfBody = 64 << 10

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

// Body takes a request's body of at most so many bytes, which is empty of a GET. While the client sends more than a few, they are held in bounds.
func Body(x *exchange.Exchange, r *http.Request, most int64, bounds *quota.Limiter) (*bytes.Buffer, *exchange.Refusal) {
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
	body, rest := bodies.Get().(*bytes.Buffer), http.MaxBytesReader(x, r.Body, most)
	_, err := io.CopyN(body, rest, quota.CostlyBytes+1)
	part := r.ContentLength
	if part < 0 { // it is not told
		part = partOfBody
	}
	for err == nil {
		arrived, ok := bounds.Receive(r.Context(), part)
		defer arrived()
		if !ok {
			Release(body)
			x.CloseAfter(r)
			return nil, exchange.Busy(exchange.TooManyArriving)
		}
		_, err = io.CopyN(body, rest, part)
	}
	if !errors.Is(err, io.EOF) {
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
		params, err = ReadParameters(body.Bytes())
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

// received are parameters as clients send them. Names count as they are: a proxy in front, which reads other names, would see another document.
type received struct {
	Query      string         `json:"query"`
	Operation  string         `json:"operationName"`
	Document   string         `json:"documentId"` // stands for the query's text
	Variables  jsontext.Value `json:"variables"`
	Extensions *extensions    `json:"extensions"`
}

// extensions are those that Kith knows. The others are skipped: as values they would take some fifty times the memory of their text, for as
// long as the operation runs.
type extensions struct {
	Consistency jsontext.Value `json:"consistencyToken"`
	Cost        jsontext.Value `json:"cost"`
	Why         jsontext.Value `json:"why"`
	Persisted   jsontext.Value `json:"persistedQuery"`
}

// As in encoding/json, the last of several values of a name counts. Bytes that are not UTF-8, and halves of surrogate pairs, are
// refused (RFC 8259, section 8): replaced by U+FFFD they would be stored.
var lenient = jsontext.AllowDuplicateNames(true)

// Decode reads the one JSON value that a text is.
func Decode(text []byte, value any) error { return json.Unmarshal(text, value, lenient) }

// decodeQuery reads the parameters of a GET.
func decodeQuery(query string) (*graphql.RawParams, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, apierr.MalformedRequest.Error("the query string cannot be read")
	}
	of := received{Query: values.Get("query"), Operation: values.Get("operationName"), Document: values.Get(exchange.ParameterDocument)}
	for name, value := range map[string]any{"variables": &of.Variables, "extensions": &of.Extensions} {
		if text := values.Get(name); text != "" && (Decode([]byte(text), value) != nil || !isObject(of.Variables)) {
			return nil, apierr.MalformedRequest.Error("the parameter %s is not a JSON object", name)
		}
	}
	return of.params()
}

// ReadParameters reads the parameters of a request. They share no memory with the body.
func ReadParameters(body []byte) (*graphql.RawParams, error) {
	var of received
	err := Decode(body, &of)
	wrong, isWrong := errors.AsType[*json.SemanticError](err)
	name := ""
	switch {
	case isWrong && wrong.JSONPointer == "":
		err = apierr.MalformedRequest.Error("the body has to be a JSON object: send each operation as a request of its own")
	case isWrong:
		name = wrong.JSONPointer.LastToken()
	case err == nil && !isObject(of.Variables):
		name = "variables"
	}
	if name != "" {
		err = apierr.MalformedRequest.Error("the parameter %s is of the wrong type", name)
	}
	if err != nil {
		return new(graphql.RawParams), err
	}
	return of.params()
}

// isObject reports whether a value is an object, null or missing.
func isObject(v jsontext.Value) bool { return len(v) == 0 || v.Kind() == '{' || v.Kind() == 'n' }

// maxPersistedExtension is how many bytes this extension may have: a version and a hash take some
// 100.
const maxPersistedExtension = 1 << 10

// errExtension means that a persisted query is not a version and a hash.
var errExtension = apierr.MalformedRequest.Error("the extension %s has at most %d bytes", exchange.ExtensionPersisted, maxPersistedExtension)

func (of received) params() (*graphql.RawParams, error) {
	p := &graphql.RawParams{Query: of.Query, OperationName: of.Operation}
	p.Variables, _ = valueOf(of.Variables).(map[string]any)
	if e := of.Extensions; e != nil {
		p.Extensions = map[string]any{}
		if e.Consistency.Kind() == '"' {
			p.Extensions[exchange.ExtensionConsistency] = valueOf(e.Consistency)
		}
		if e.Cost.Kind() == 't' {
			p.Extensions[exchange.ExtensionCost] = true
		}
		if e.Why.Kind() == 't' {
			p.Extensions[exchange.ExtensionWhy] = true
		}
		if len(e.Persisted) > maxPersistedExtension {
			return p, errExtension
		} else if len(e.Persisted) > 0 {
			persisted := valueOf(e.Persisted)
			if names, ok := persisted.(map[string]any); ok { // gqlgen would take other letters for the same name
				maps.DeleteFunc(names, func(n string, _ any) bool { return n != "version" && n != "sha256Hash" })
			}
			p.Extensions[exchange.ExtensionPersisted] = persisted
		}
	}
	if of.Document != "" {
		if p.Extensions == nil {
			p.Extensions = map[string]any{}
		}
		p.Extensions[exchange.ParameterDocument] = of.Document
	}
	return p, nil
}

// IsNothing reports whether parameters name no query at all.
func IsNothing(p *graphql.RawParams) bool {
	return p.Query == "" && p.Extensions[exchange.ExtensionPersisted] == nil && p.Extensions[exchange.ParameterDocument] == nil
}

// valueReader reads a value by tokens, which costs half as much as encoding/json. Numbers stay text, so that long ids keep their digits.
type valueReader struct {
	*jsontext.Decoder
	text string // the whole text; strings without escapes are parts of it
	left int    // how many values are still to be read
}

var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// valueOf is a value whose text has been checked. As values, variables take some fifty times the memory of their text. Therefore they are read up to the
// first one that the limits do not allow, which refuse it later, when it is known whose operation it is.
func valueOf(text jsontext.Value) any {
	if len(text) == 0 {
		return nil
	}
	r := valueReader{decoders.Get().(*jsontext.Decoder), string(text), limits.Values + 2} // the object is a value, too
	r.Reset(bytes.NewBuffer(text), lenient)
	v, _ := r.value()
	if len(text) <= maxPooledBody { // it holds the text until it is used again
		decoders.Put(r.Decoder)
	}
	return v
}

// value reads the next value; more is false if no other one is to be read.
func (r *valueReader) value() (v any, more bool) {
	if r.left--; r.left <= 0 || r.StackDepth() > limits.ValueDepth {
		return nil, false
	}
	switch r.PeekKind() {
	case '{':
		m := map[string]any{}
		_, _ = r.ReadToken() // as all errors, it would be of a text that is no JSON
		for more = true; more && r.PeekKind() == '"'; {
			name := r.string()
			m[name], more = r.value()
		}
		if more {
			_, _ = r.ReadToken()
		}
		return m, more
	case '[':
		list := []any{}
		_, _ = r.ReadToken()
		for more = true; more && r.PeekKind() != ']'; {
			v, more = r.value()
			list = append(list, v)
		}
		if more {
			_, _ = r.ReadToken()
		}
		return list, more
	case '"':
		return r.string(), true
	case '0':
		return stdjson.Number(r.raw()), true
	}
	token, _ := r.ReadToken()
	if token.Kind() == 'n' {
		return nil, true
	}
	return token.Bool(), true
}

func (r *valueReader) string() string {
	raw := r.raw()
	if text := raw[1 : len(raw)-1]; strings.IndexByte(text, '\\') < 0 {
		return text
	}
	text, _ := jsontext.AppendUnquote(nil, raw)
	return string(text)
}

// raw is the text of the next value.
func (r *valueReader) raw() string {
	value, _ := r.ReadValue()
	end := int(r.InputOffset())
	return r.text[end-len(value) : end]
}
