package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
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

// Headers by which callers say how long they wait for the answer.
const (
	headerGRPCTimeout = "Grpc-Timeout" // https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
	headerTimeout     = "X-Request-Timeout"

	// maxTimeout is how many bytes the value of such a header may have.
	maxTimeout = 32
)

// grpcUnits are the units of grpc-timeout.
var grpcUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// patienceOf is how long the caller of a request waits for its answer. It is most if the caller waits longer or does
// not say. If both headers are given, the shorter time counts.
func patienceOf(r *http.Request, most time.Duration) (time.Duration, *refusal) {
	patience := most
	for _, header := range [...]struct {
		name, form string
		parse      func(string) (time.Duration, bool)
	}{
		{headerGRPCTimeout, "up to 8 digits and one of H, M, S, m, u, n, such as 500m", parseGRPCTimeout},
		{headerTimeout, "milliseconds, or a number with ms, s, m or h, such as 500ms", parseTimeout},
	} {
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

func parseGRPCTimeout(text string) (time.Duration, bool) {
	if len(text) < 2 || len(text) > 9 {
		return 0, false
	}
	unit, ok := grpcUnits[text[len(text)-1]]
	return times(text[:len(text)-1], unit, ok)
}

// parseTimeout takes a number without a unit for milliseconds, as Envoy gives them to the servers behind it.
func parseTimeout(text string) (time.Duration, bool) {
	if len(text) > maxTimeout || strings.HasPrefix(text, "+") {
		return 0, false
	}
	if text != "" && strings.Trim(text, "0123456789") == "" {
		return times(text, time.Millisecond, true)
	}
	given, err := time.ParseDuration(text)
	return given, err == nil && given > 0
}

// times is a number of units. A time that is too long to be represented becomes the longest that
// can be.
func times(digits string, unit time.Duration, ok bool) (time.Duration, bool) {
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n <= 0 || digits[0] == '+' {
		return 0, false
	}
	const longest = 1<<63 - 1
	if n > longest/int64(unit) {
		return longest, true
	}
	return time.Duration(n) * unit, true
}
