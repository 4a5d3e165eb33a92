package gateway

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

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
