package gateway

import (
	"bytes"
	"errors"
	"math"
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

const (
	headerGRPCTimeout = "Grpc-Timeout"
	headerTimeout     = "X-Request-Timeout"

	// maxTimeout is how many bytes the value of such a header may have.
	maxTimeout = 32
)

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
