package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"

	"kith/graph/apierr"
)

const (
	allowedMethods = "GET, POST, OPTIONS"

	// maxPooledBody is the size up to which a buffer is kept for the next body.
	maxPooledBody = 64 << 10
)

// refusal is a request that is not even a GraphQL request.
type refusal struct {
	status int
	err    error // an apierr.Error
}

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status, apierr.BadInput(format, args...)}
}

// read takes a request's parameters from its body or its address.
func (t transport) read(w http.ResponseWriter, r *http.Request) (*graphql.RawParams, *refusal) {
	var params *graphql.RawParams
	var bad *refusal
	start := graphql.Now()
	switch r.Method {
	case http.MethodPost:
		params, bad = t.readPost(w, r)
	case http.MethodGet:
		params, bad = t.readGet(r)
	default:
		w.Header().Set("Allow", allowedMethods)
		return nil, refuse(http.StatusMethodNotAllowed, "queries are sent by POST or GET")
	}
	if bad != nil {
		return nil, bad
	}
	if params.Query == "" && params.Extensions["persistedQuery"] == nil {
		return nil, refuse(http.StatusBadRequest, "the parameter query is missing")
	}
	params.Headers = r.Header
	params.ReadTime = graphql.TraceTiming{Start: start, End: graphql.Now()}
	return params, nil
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (t transport) readPost(w http.ResponseWriter, r *http.Request) (*graphql.RawParams, *refusal) {
	if media, ok := mediaOf(r.Header.Get("Content-Type")); !ok || media != mediaJSON {
		return nil, refuse(http.StatusUnsupportedMediaType, "the content type has to be application/json")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, refuse(http.StatusUnsupportedMediaType, "the body must not be compressed")
	}
	if r.ContentLength > t.maxBody {
		return nil, t.tooLarge(w)
	}
	body := bodies.Get().(*bytes.Buffer)
	defer func() {
		if body.Cap() <= maxPooledBody {
			body.Reset()
			bodies.Put(body)
		}
	}()
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, t.maxBody)); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, t.tooLarge(w)
		}
		return nil, refuse(http.StatusBadRequest, "the body could not be read to its end")
	}
	return decodeParams(body)
}

// mediaOf is the media type of a header's value, without its parameters.
func mediaOf(value string) (media string, ok bool) {
	if value == mediaJSON { // as most say
		return value, true
	}
	media, _, err := mime.ParseMediaType(value)
	return media, err == nil
}

// tooLarge gives the connection up: to use it again, the rest of the body would
// have to be read.
func (t transport) tooLarge(w http.ResponseWriter) *refusal {
	w.Header().Set("Connection", "close")
	return refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", t.maxBody)
}

// decodeParams reads the JSON of a POST. What it returns shares no memory with
// the body. No part of the body is quoted: it may hold secrets.
func decodeParams(body *bytes.Buffer) (*graphql.RawParams, *refusal) {
	params, ok := scanParams(body.String())
	if ok {
		return &params, nil
	}
	if err := decode(body, &params); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return nil, refuse(http.StatusBadRequest, "the parameter %s is of the wrong type", wrong.Field)
		} else if ok {
			return nil, refuse(http.StatusBadRequest, "the body has to be one JSON object; batches are not supported")
		}
		return nil, refuse(http.StatusBadRequest, "the body is not JSON")
	}
	return &params, nil
}

func (t transport) readGet(r *http.Request) (*graphql.RawParams, *refusal) {
	if t.origins.forged(r) {
		return nil, &refusal{http.StatusForbidden, apierr.Forbidden(
			"a page of another origin may not send queries by GET; if it is meant to, send the header %s", headersNotSimple[0])}
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the query string cannot be read")
	}
	params := &graphql.RawParams{Query: values.Get("query"), OperationName: values.Get("operationName")}
	for name, target := range map[string]*map[string]any{"variables": &params.Variables, "extensions": &params.Extensions} {
		text := values.Get(name)
		if text == "" {
			continue
		}
		if err := decode(strings.NewReader(text), target); err != nil {
			return nil, refuse(http.StatusBadRequest, "the parameter %s is not a JSON object", name)
		}
	}
	return params, nil
}

// decode reads one JSON value and nothing behind it. Numbers stay text, so that
// long ids keep their digits.
func decode(r io.Reader, target any) error {
	decoder := json.NewDecoder(r)
	decoder.UseNumber()
	if err := decoder.Decode(target); err != nil {
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("something follows the JSON value")
	}
	return nil
}
