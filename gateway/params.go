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
	"time"

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

// received is the input of a request: a body, or the query of its URL.
type received struct {
	body  *bytes.Buffer // nil: of a GET
	start time.Time
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// release lets the memory of a body be used again, unless it is large.
func (b received) release() {
	if b.body != nil && b.body.Cap() <= maxPooledBody {
		b.body.Reset()
		bodies.Put(b.body)
	}
}

// length is how much there is to be read, in bytes.
func (b received) length(r *http.Request) int {
	if b.body == nil {
		return len(r.URL.RawQuery)
	}
	return b.body.Len()
}

// read takes a request's body.
func (t transport) read(w http.ResponseWriter, r *http.Request) (received, *refusal) {
	b := received{start: graphql.Now()}
	switch r.Method {
	case http.MethodGet:
		if t.origins.forged(r) {
			return b, &refusal{http.StatusForbidden, apierr.Forbidden(
				"a page of another origin may not send queries by GET; if it is meant to, send the header %s", headersNotSimple[0])}
		}
		return b, nil
	case http.MethodPost:
		return t.readBody(w, r, b)
	}
	w.Header().Set("Allow", allowedMethods)
	return b, refuse(http.StatusMethodNotAllowed, "queries are sent by POST or GET")
}

func (t transport) readBody(w http.ResponseWriter, r *http.Request, b received) (received, *refusal) {
	if !isJSON(r.Header.Get("Content-Type")) {
		return b, refuse(http.StatusUnsupportedMediaType, "the content type has to be application/json, in UTF-8")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return b, refuse(http.StatusUnsupportedMediaType, "the body must not be compressed")
	}
	if r.ContentLength > t.maxBody {
		return b, t.tooLarge(w, r)
	}
	b.body = bodies.Get().(*bytes.Buffer)
	if _, err := b.body.ReadFrom(http.MaxBytesReader(w, r.Body, t.maxBody)); err != nil {
		b.release()
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return b, t.tooLarge(w, r)
		}
		return b, refuse(http.StatusBadRequest, "the body could not be read to its end")
	}
	return b, nil
}

// params are the parameters that were received.
func (b received) params(r *http.Request) (params *graphql.RawParams, bad *refusal) {
	if b.body != nil && bytes.HasPrefix(bytes.TrimLeft(b.body.Bytes(), " \t\r\n"), []byte{'['}) {
		return nil, refuse(http.StatusBadRequest, "the body is a list: send each operation as a request of its own")
	}
	if b.body != nil {
		params, bad = decodeParams(b.body)
	} else {
		params, bad = decodeQuery(r)
	}
	if bad != nil {
		return nil, bad
	}
	if isNothing(params) {
		return nil, refuse(http.StatusBadRequest, "the parameter query is missing")
	}
	params.Headers = r.Header
	params.ReadTime = graphql.TraceTiming{Start: b.start, End: graphql.Now()}
	return params, nil
}

// isJSON reports whether a content type is JSON in UTF-8, which is what it is without a charset (RFC 8259, section 8.1).
func isJSON(value string) bool {
	if value == mediaJSON { // as in most requests
		return true
	}
	media, parameters, err := mime.ParseMediaType(value)
	charset := strings.ToLower(parameters["charset"])
	return err == nil && media == mediaJSON && (charset == "" || charset == "utf-8" || charset == "us-ascii")
}

// tooLarge gives up the connection: to use it again, the gateway would have to read the rest of the
// body.
func (t transport) tooLarge(w http.ResponseWriter, r *http.Request) *refusal {
	closing(w, r)
	return refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", t.maxBody)
}

// decodeParams reads the JSON of a POST. No part of the body is quoted: it may hold secrets.
func decodeParams(body *bytes.Buffer) (*graphql.RawParams, *refusal) {
	params, err := readParams(body)
	if err != nil {
		return nil, malformed(err)
	}
	return params, nil
}

// malformed says what is wrong with a body.
func malformed(err error) *refusal {
	known, ok := apierr.Of(err)
	wrong, ofType := errors.AsType[wrongType](err)
	switch {
	case ok:
		return &refusal{http.StatusBadRequest, known}
	case ofType:
		return refuse(http.StatusBadRequest, "%s", wrong)
	case errors.Is(err, errNoObject):
		return refuse(http.StatusBadRequest, "the body, or each element of a list, has to be a JSON object")
	}
	return refuse(http.StatusBadRequest, "the body is not JSON, or has a text that is not UTF-8 or has half of a surrogate pair")
}

// decodeQuery reads the parameters of a GET.
func decodeQuery(r *http.Request) (*graphql.RawParams, *refusal) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the query string cannot be read")
	}
	params := &graphql.RawParams{Query: values.Get("query"), OperationName: values.Get("operationName")}
	var bad *refusal
	object := func(name string, read func(decoder) (map[string]any, error)) (value map[string]any) {
		if text := values.Get(name); text != "" && bad == nil {
			err := readJSON(bytes.NewBufferString(text), func(r decoder) (err error) {
				value, err = read(r)
				return err
			})
			if err != nil {
				bad = refuse(http.StatusBadRequest, "the parameter %s is not a JSON object", name)
				if known, ok := apierr.Of(err); ok {
					bad.err = known
				}
			}
		}
		return value
	}
	params.Variables, params.Extensions = object("variables", decoder.variables), object("extensions", decoder.extensions)
	nameDocument(params, values.Get(parameterDocument))
	return params, bad
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
