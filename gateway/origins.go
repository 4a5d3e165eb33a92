package gateway

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rs/cors"

	"kith/gateway/exchange"
	"kith/graph/apierr"
)

// headersNotSimple are headers that a page of another origin can send only after a CORS preflight,
// so a request that has one was allowed. The last two are sent by common GraphQL clients.
var headersNotSimple = []string{"X-Kith-Csrf", "Apollo-Require-Preflight", "GraphQL-Require-Preflight"}

// origins knows which pages of other origins may send requests.
type origins struct {
	cors    *cors.Cors       // nil: none
	headers map[string]bool  // that their pages may send, in small letters
	refused *exchange.Firsts // a browser tells only the page
	logger  *slog.Logger
}

// Clients choose the header Origin: so many origins are logged, and so many of their bytes. A name has at most 253.
const (
	maxRefused       = 100
	maxRefusedLength = 300
)

// headersAllowed are the headers that a page of an allowed origin may send: those that Kith reads,
// and those by which tracing (W3C Trace Context and Baggage, Sentry) and Apollo Client tell servers
// where a request comes from. A page that sends another one is refused by its browser.
var headersAllowed = slices.Concat([]string{
	"Content-Type", "Authorization", "Kith-Viewer", exchange.HeaderConsistency, exchange.HeaderRequestID, exchange.HeaderTimeout, exchange.HeaderGRPCTimeout, exchange.HeaderCost, exchange.HeaderWhy,
	"traceparent", "tracestate", "baggage", "sentry-trace",
	"apollographql-client-name", "apollographql-client-version", "x-apollo-operation-name", "graphql-preflight",
	"x-requested-with", "If-None-Match", "Cache-Control",
}, headersNotSimple)

// headersShown are the headers of answers that such a page may read, besides the few that browsers show of any answer.
var headersShown = []string{exchange.HeaderRequestID, exchange.HeaderConsistency, exchange.HeaderTrace, "ETag", "Retry-After"}

// preflightSeconds is how long a browser may remember what is allowed. After that time, a changed setting has reached all
// pages.
const preflightSeconds = 600

// newOrigins takes the origins that are allowed, and headers that their pages may send beyond headersAllowed.
func newOrigins(allowed, headers []string, logger *slog.Logger) origins {
	o := origins{refused: new(exchange.Firsts), logger: logger}
	if len(allowed) == 0 {
		return o // to rs/cors an empty list means all origins
	}
	headers = slices.Concat(headersAllowed, headers)
	o.headers = map[string]bool{}
	for _, name := range headers {
		o.headers[strings.ToLower(name)] = true
	}
	o.cors = cors.New(cors.Options{
		AllowedOrigins: allowed,
		AllowedMethods: []string{http.MethodGet, http.MethodPost},
		AllowedHeaders: headers,
		ExposedHeaders: headersShown,
		MaxAge:         preflightSeconds,
	})
	return o
}

// handler answers preflights and adds the CORS headers.
func (o origins) handler(next http.Handler) http.Handler {
	if o.cors == nil {
		return next
	}
	preflight := o.cors.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked := r.Header.Values(headerAsked); r.Method == http.MethodOptions && len(asked) > 0 && o.cors.OriginAllowed(r) {
			r.Header.Set(headerAsked, strings.Join(o.allowedOf(strings.Split(strings.Join(asked, ","), ",")), ","))
		}
		preflight.ServeHTTP(w, r)
	})
}

const headerAsked = "Access-Control-Request-Headers"

// allowedOf is the headers of a preflight that are allowed. The answer has the others left out, and the origin: then the browser
// tells the page which header it is that it may not send.
func (o origins) allowedOf(asked []string) (some []string) {
	for _, name := range asked {
		name = strings.ToLower(strings.TrimSpace(name))
		if o.headers[name] {
			some = append(some, name)
		} else if name != "" {
			name = apierr.Shortened(name, maxRefusedLength)
			o.warn("a header of a page of another origin was refused", "header", name, "--cors-header ")
		}
	}
	slices.Sort(some)
	return slices.Compact(some)
}

// watch logs the origin of a request of a page if it is refused.
func (o origins) watch(r *http.Request) {
	if !o.isForeign(r) {
		return
	}
	origin := apierr.Shortened(r.Header.Get("Origin"), maxRefusedLength)
	flag := "--cors-origin "
	if !strings.HasPrefix(origin, "http") { // others, such as null, cannot be allowed
		flag = ""
	}
	o.warn("a page of another origin was refused", "origin", origin, flag)
}

// warn logs once that an origin, or a header, was refused, and the flag by which it would be allowed, if there is one.
func (o origins) warn(message, what, value, flag string) {
	attrs := []any{what, value, "allow_by", flag + value}
	if flag == "" {
		attrs = attrs[:2]
	}
	if _, first := o.refused.Among(what+" "+value, maxRefused); first {
		o.logger.Warn(message, attrs...)
	}
}

// forged reports whether a GET comes from a page of another origin that is not
// allowed: cross-site request forgery. (A POST needs no such test: the browser
// sends a preflight before it sends application/json.)
//
// A page can make a browser send a GET, with cookies, without permission. It could not read the
// answer, but it could measure it, and use its visitors to put load on the server. Browsers say
// where a request comes from in Sec-Fetch-Site, or, over plain HTTP, at least in Origin or Referer.
// A client that sends none of these is taken for a program, which can send any request without a
// browser.
func (o origins) forged(r *http.Request) bool {
	for _, name := range headersNotSimple {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	if o.cors != nil && r.Header.Get("Origin") != "" && o.cors.OriginAllowed(r) {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none": // none: the address bar, a bookmark
		return false
	case "":
		return foreign(r, "Origin") || foreign(r, "Referer")
	default: // cross-site, same-site and any new value
		return true
	}
}

// isForeign reports whether a request, such as that for a WebSocket, for which browsers send no preflight, comes from a page of another
// origin that is not allowed. Behind a proxy that changes Host, a page of the same origin looks foreign, but its browser says that it is not.
func (o origins) isForeign(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") != "same-origin" && foreign(r, "Origin") && (o.cors == nil || !o.cors.OriginAllowed(r))
}

// foreign reports whether a header names a host other than the request's own. The request's own
// host is what the client says: others may point their own DNS name to this server. Their page can
// then query without being signed in, but no more, because browsers add no token by themselves.
func foreign(r *http.Request, header string) bool {
	value := r.Header.Get(header)
	if value == "" {
		return false
	}
	from, err := url.Parse(value)
	return err != nil || from.Host != r.Host
}
