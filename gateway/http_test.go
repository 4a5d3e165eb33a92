package gateway_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"kith/gateway"
	"kith/gateway/exchange"
	"kith/graph/consistency"
	"kith/internal/check"
	"kith/internal/must"
)

// TestMediaTypes: with application/json, every GraphQL request is answered with 200. With
// application/graphql-response+json, the status says how the request ended, and the answer has no data if
// nothing was executed.
func TestMediaTypes(t *testing.T) {
	s := serve(t, gateway.Config{})
	const plain, response = "application/json", "application/graphql-response+json"
	tests := []struct {
		accept, query, media string
		status               int
	}{
		{"", "{hello}", plain, 200},
		{"*/*", "{hello}", plain, 200},
		{plain, "{hello}", plain, 200},
		{response, "{hello}", response, 200},
		{"text/html, " + response + ";q=0.9, " + plain + ";q=0.5", "{hello}", response, 200},
		{plain + ";q=0.5, " + response, "{hello}", response, 200},
		{response + ";q=0, */*;q=0.1", "{hello}", plain, 200},
		{response + ", " + plain + ";q=0.9, application/*;q=0.1", "{hello}", response, 200},
		{"application/*;q=0.9, " + plain + ";q=0.1, " + response + ";q=0.5", "{hello}", response, 200},
		{"*/*;q=0.5, application/*, " + plain + ";q=0", "{hello}", response, 200},
		{"*/*, " + response, "{hello}", plain, 200},
		{"text/*, " + plain + "; charset=utf-8; q=0.1", "{hello}", plain, 200},
		{plain + ";q=0", "{hello}", plain, 200},
		{"text/html", "{hello}", plain, 200},
		{plain, "{", plain, 200},
		{plain, "{nonsense}", plain, 200},
		{response, "{", response, 400},
		{response, "{nonsense}", response, 400},
		{response, "query ($n: Int!) { add(n: $n) }", response, 400},
		{response, "{fail}", response, 200}, // it was executed, so data exists, with a null in it
	}
	for _, tt := range tests {
		t.Run(tt.accept+" "+tt.query, func(t *testing.T) {
			got := s.query(tt.query, "Accept", tt.accept)
			check.Equal(t, "status", got.status, tt.status)
			check.Equal(t, "Content-Type", got.header.Get("Content-Type"), tt.media+"; charset=utf-8")
			check.Equal(t, "executed", strings.Contains(got.text, `"data"`), tt.query == "{hello}" || tt.query == "{fail}")
		})
	}
}

// TestListsOnSeveralLines: what a header lists may be on several lines (RFC 9110, section 5.3), as Go's Header.Add writes it.
func TestListsOnSeveralLines(t *testing.T) {
	s := serve(t, gateway.Config{Consistency: consistency.New(consistency.Tokens{Key: []byte("a key")})})
	ask := func(query, header string, lines ...string) (*http.Response, string) {
		r := s.request("POST", "/graphql", operation(query), "Content-Type", "application/json")
		r.Header[header] = lines
		response, err := http.DefaultTransport.RoundTrip(r)
		must.OK(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		must.OK(t, err)
		return response, string(text)
	}
	got, _ := ask("{hello}", "Accept", "text/html", "application/graphql-response+json")
	check.Equal(t, "the answer", got.Header.Get("Content-Type"), "application/graphql-response+json; charset=utf-8")
	got, _ = ask("{big}", "Accept-Encoding", "br", "gzip")
	check.Equal(t, "the encoding of a long answer", got.Header.Get("Content-Encoding"), "gzip")
	_, text := ask("{hello}", exchange.HeaderConsistency, "", "nonsense")
	check.Has(t, "the second token", text, "CONSISTENCY_TOKEN_MALFORMED")
}

// TestMalformedRequests: each is refused with the status for its reason, and no part of the request is in the answer.
func TestMalformedRequests(t *testing.T) {
	s := serve(t, gateway.Config{})
	json := []string{"Content-Type", "application/json"}
	tests := map[string]struct {
		method, path, body string
		headers            []string
		status             int
	}{
		"no content type":       {"POST", "/graphql", `{"query":"{hello}"}`, nil, 415},
		"a form":                {"POST", "/graphql", `query={hello}`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		"plain text":            {"POST", "/graphql", `{"query":"{hello}"}`, []string{"Content-Type", "text/plain"}, 415},
		"in UTF-16":             {"POST", "/graphql", `{"query":"{hello}"}`, []string{"Content-Type", "application/json; charset=utf-16"}, 415},
		"an upload":             {"POST", "/graphql", ``, []string{"Content-Type", "multipart/form-data; boundary=x"}, 415},
		"compressed":            {"POST", "/graphql", `x`, append([]string{"Content-Encoding", "gzip"}, json...), 415},
		"no body":               {"POST", "/graphql", ``, json, 400},
		"not JSON":              {"POST", "/graphql", `{"query": "` + secret, json, 400},
		"two values":            {"POST", "/graphql", `{"query":"{hello}"} {"query":"{hello}"}`, json, 400},
		"a batch":               {"POST", "/graphql", `[{"query":"{hello}"}]`, json, 400},
		"null":                  {"POST", "/graphql", `null`, json, 400},
		"no query":              {"POST", "/graphql", `{"qeury":"` + secret + `"}`, json, 400},
		"query of wrong type":   {"POST", "/graphql", `{"query":["` + secret + `"]}`, json, 400},
		"name of wrong type":    {"POST", "/graphql", `{"query":"{hello}","operationName":7}`, json, 400},
		"variables of a string": {"POST", "/graphql", `{"query":"{hello}","variables":"` + secret + `"}`, json, 400},
		"extensions of a list":  {"POST", "/graphql", `{"query":"{hello}","extensions":[1]}`, json, 400},
		"GET without a query":   {"GET", "/graphql", ``, nil, 400},
		"GET, bad variables":    {"GET", "/graphql?query=%7Bhello%7D&variables=%7Bhunter2", ``, nil, 400},
		"GET, bad escape":       {"GET", "/graphql?query=%7Bhello%7D&x=%zz", ``, nil, 400},
		"PUT":                   {"PUT", "/graphql", `{"query":"{hello}"}`, json, 405},
		"DELETE":                {"DELETE", "/graphql", ``, nil, 405},
	}
	for name, tt := range tests {
		got := s.do(s.request(tt.method, tt.path, tt.body, tt.headers...))
		got.is(t, name, tt.status, "BAD_USER_INPUT")
		check.Lacks(t, name, got.text, "hunter2", `"data"`)
	}
	options := s.do(s.request("OPTIONS", "/graphql", ""))
	check.That(t, options.status == 204 && strings.Contains(options.header.Get("Allow"), "POST"), "OPTIONS: %d %v", options.status, options.header)
}

// TestBodyLimit: a body that is too large is refused with 413. If its length is announced, it is refused
// before it is read, otherwise while it is read.
func TestBodyLimit(t *testing.T) {
	s := serve(t, gateway.Config{MaxBody: 1000})
	body := func(size int) string {
		const start, end = `{"query":"{hello}","operationName":null,"variables":{"x":"`, `"}}`
		return start + strings.Repeat("x", size-len(start)-len(end)) + end
	}
	s.post(body(1000)).is(t, "1,000 bytes", 200, "", `"hello"`)
	for name, size := range map[string]int{"one byte too large": 1001, "far too large": 10_000_000} {
		s.post(body(size)).is(t, name, 413, "BAD_USER_INPUT")
	}
	r := s.request("POST", "/graphql", body(1001), "Content-Type", "application/json")
	r.ContentLength = -1 // sent in chunks
	s.do(r).is(t, "in chunks", 413, "BAD_USER_INPUT")
}

// TestRefusedBodiesAreReceived: a proxy that sends all of a request before it reads the answer, as nginx does, gets the answer, and then the end
// of the connection.
func TestRefusedBodiesAreReceived(t *testing.T) {
	const length = 5_000_000
	s := serve(t, gateway.Config{MaxBody: 1000})
	for headers, want := range map[string]int{
		"POST /graphql HTTP/1.1\r\nContent-Type: application/json":                               http.StatusRequestEntityTooLarge,
		"POST /graphql HTTP/1.0\r\nContent-Type: application/json":                               http.StatusRequestEntityTooLarge,
		"POST /graphql HTTP/1.1\r\nContent-Type: text/plain":                                     http.StatusUnsupportedMediaType,
		"POST /healthz HTTP/1.1\r\nContent-Type: application/json":                               http.StatusMethodNotAllowed,
		"POST /graphql HTTP/1.1\r\nContent-Type: application/json\r\nAuthorization: Bearer none": http.StatusRequestEntityTooLarge,
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		must.OK(t, err)
		defer conn.Close()
		must.OK(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		_, err = fmt.Fprintf(conn, "%s\r\nHost: kith\r\nContent-Length: %d\r\n\r\n", headers, length)
		must.OK(t, err)
		for range length / 50_000 {
			_, err = conn.Write(make([]byte, 50_000))
			must.That(t, err == nil, "%q: %v", headers, err)
		}
		reader := bufio.NewReader(conn)
		response, err := http.ReadResponse(reader, nil)
		must.That(t, err == nil, "%q: %v", headers, err)
		check.Equal(t, headers, response.StatusCode, want)
		_, err = io.Copy(io.Discard, response.Body)
		must.OK(t, err)
		_, err = reader.ReadByte()
		check.That(t, errors.Is(err, io.EOF), "%q: it ends with %v", headers, err)
	}
}

// TestBodyLimitComesBeforeTheBody: the answer comes although only the headers were sent.
func TestBodyLimitComesBeforeTheBody(t *testing.T) {
	s := serve(t, gateway.Config{MaxBody: 1000})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must.OK(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: kith\r\nContent-Type: application/json\r\nContent-Length: 5000000\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must.OK(t, err)
	defer response.Body.Close()
	check.Equal(t, "status", response.StatusCode, http.StatusRequestEntityTooLarge)
	_, err = io.Copy(io.Discard, response.Body)
	must.OK(t, err)
	began := time.Now()
	_, err = conn.Read(make([]byte, 1))
	check.That(t, errors.Is(err, io.EOF) && time.Since(began) < 5*time.Second, "after %s: %v", time.Since(began), err)
}

// TestForgedGET: a page of another origin cannot make a browser send queries.
func TestForgedGET(t *testing.T) {
	s := serve(t, gateway.Config{CORSOrigins: []string{"https://app.example.org"}})
	own := s.url
	tests := map[string]struct {
		headers []string
		status  int
	}{
		"a program":                 {nil, 200},
		"own page":                  {[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		"address bar":               {[]string{"Sec-Fetch-Site", "none"}, 200},
		"other site":                {[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"other site, as image":      {[]string{"Sec-Fetch-Site", "cross-site", "Accept", "image/avif,*/*"}, 403},
		"other site, safe header":   {[]string{"Sec-Fetch-Site", "cross-site", "Accept", "application/graphql-response+json"}, 403},
		"sister site":               {[]string{"Sec-Fetch-Site", "same-site"}, 403},
		"other site with preflight": {[]string{"Sec-Fetch-Site", "cross-site", "X-Kith-Csrf", "1"}, 200},
		"Apollo's header":           {[]string{"Sec-Fetch-Site", "cross-site", "Apollo-Require-Preflight", "true"}, 200},
		"allowed origin":            {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://app.example.org"}, 200},
		"origin not allowed":        {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example.org"}, 403},
		"plain HTTP, own origin":    {[]string{"Origin", own}, 200},
		"plain HTTP, other origin":  {[]string{"Origin", "http://evil.example.org"}, 403},
		"plain HTTP, null origin":   {[]string{"Origin", "null"}, 403},
		"plain HTTP, own page":      {[]string{"Referer", own + "/page"}, 200},
		"plain HTTP, other page":    {[]string{"Referer", "http://evil.example.org/page"}, 403},
	}
	for name, tt := range tests {
		s.get("/graphql?query=%7Bhello%7D", tt.headers...).is(t, name, tt.status, map[int]string{403: "FORBIDDEN"}[tt.status])
	}
}

func TestCORS(t *testing.T) {
	preflight := func(s site, origin string) reply {
		return s.do(s.request("OPTIONS", "/graphql", "", "Origin", origin,
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type"))
	}
	s := serve(t, gateway.Config{CORSOrigins: []string{"https://app.example.org"}})
	got := preflight(s, "https://app.example.org")
	check.Equal(t, "the status", got.status, 204)
	check.Equal(t, "who is allowed", got.header.Get("Access-Control-Allow-Origin"), "https://app.example.org")
	check.Equal(t, "what is allowed", got.header.Get("Access-Control-Allow-Headers"), "content-type")
	check.That(t, s.query("{hello}", "Origin", "https://app.example.org").header.Get("Access-Control-Allow-Origin") != "", "it is not allowed")
	for name, got := range map[string]reply{
		"other origin":            preflight(s, "https://evil.example.org"),
		"other origin's query":    s.query("{hello}", "Origin", "https://evil.example.org"),
		"none by default":         preflight(serve(t, gateway.Config{}), "https://app.example.org"),
		"none, as an empty list":  preflight(serve(t, gateway.Config{CORSOrigins: []string{}}), "https://app.example.org"),
		"outside of the endpoint": s.get("/healthz", "Origin", "https://app.example.org"),
	} {
		check.Equal(t, name, got.header.Get("Access-Control-Allow-Origin"), "")
	}
}

// Browsers tell only the page why it was refused, so each origin that is refused is logged once, at most 100 of them, with the
// setting that allows it.
func TestRefusedOriginsAreLoggedOnce(t *testing.T) {
	s := serve(t, gateway.Config{CORSOrigins: []string{"https://app.example.org"}})
	lines := func() int { return strings.Count(s.log.String(), "a page of another origin was refused") }
	for range 2 {
		s.do(s.request("OPTIONS", "/graphql", "", "Origin", "http://localhost:5173", "Access-Control-Request-Method", "POST"))
		s.query("{hello}", "Origin", "null")
		_, _, err := s.dial(http.Header{"Origin": {"https://socket.example"}}, "graphql-transport-ws")
		check.That(t, err != nil, "the WebSocket of another origin is open")
	}
	check.Equal(t, "lines of the log", lines(), 3)
	check.Has(t, "the log", s.log.String(), `allow_by="--cors-origin http://localhost:5173"`, `allow_by="--cors-origin https://socket.example"`)
	check.Lacks(t, "the log", s.log.String(), "--cors-origin null")
	for _, headers := range [][]string{
		{}, {"Origin", s.url}, {"Origin", "https://app.example.org"},
		{"Origin", "https://kith.example.org", "Sec-Fetch-Site", "same-origin"}, // behind a proxy that changes Host
	} {
		s.query("{hello}", headers...)
		check.Equal(t, fmt.Sprintf("origins that are logged after %v", headers), lines(), 3)
	}
	long := "https://" + strings.Repeat("a", 300)
	s.query("{hello}", "Origin", long)
	check.That(t, lines() == 4 && !strings.Contains(s.log.String(), long), "a long origin is not shortened: %s", s.log.String())
	for i := range 200 {
		s.query("{hello}", "Origin", fmt.Sprintf("https://%d.example", i))
	}
	check.Equal(t, "origins that are logged", lines(), 100)
}

// TestCORSHeaders: pages may send the common headers, and the headers of the setting. They may read the
// headers that Kith sends.
func TestCORSHeaders(t *testing.T) {
	const origin = "https://app.example.org"
	s := serve(t, gateway.Config{CORSOrigins: []string{origin}, CORSHeaders: []string{"X-Tenant"}})
	preflight := func(headers string) http.Header {
		return s.do(s.request("OPTIONS", "/graphql", "", "Origin", origin,
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", headers)).header
	}
	for _, name := range []string{
		"authorization", "content-type", "kith-viewer", "kith-consistency", "x-request-timeout", "grpc-timeout", "kith-cost", "x-kith-csrf",
		"traceparent", "tracestate", "baggage", "sentry-trace", "apollographql-client-name", "apollographql-client-version", "x-request-id",
		"x-tenant", "x-apollo-operation-name", "graphql-preflight", "x-requested-with", "if-none-match", "cache-control",
	} {
		got := preflight(name)
		check.Equal(t, name, []string{got.Get("Access-Control-Allow-Headers"), got.Get("Access-Control-Max-Age")}, []string{name, "600"})
	}
	for headers, allowed := range map[string]string{"x-other": "", "traceparent,x-other": "traceparent", "X-Other, baggage, ,Accept-Other,baggage": "baggage"} {
		got := preflight(headers)
		check.Equal(t, headers, []string{got.Get("Access-Control-Allow-Headers"), got.Get("Access-Control-Allow-Origin")}, []string{allowed, origin})
	}
	check.Equal(t, "times that a refused header is logged", strings.Count(s.log.String(), "allow_by=\"--cors-header x-other\""), 1)
	got := s.query("{hello}", "Origin", origin).header
	shown := strings.ToLower(got.Get("Access-Control-Expose-Headers"))
	check.Has(t, "what can be read", shown, "x-request-id", "kith-consistency", "traceresponse", "etag", "retry-after")
	for _, who := range []string{origin, "https://evil.example.org", ""} {
		r := s.request("POST", "/graphql", `{"query":"{hello}"}`, "Content-Type", "application/json")
		if who != "" {
			r.Header.Set("Origin", who)
		}
		check.Has(t, who, strings.Join(s.do(r).header.Values("Vary"), ","), "Origin")
	}
}

// TestPersistedQueries: a hash is accepted once its text was seen. Long texts are not kept.
func TestPersistedQueries(t *testing.T) {
	s := serve(t, gateway.Config{})
	ask := func(hash, query string) reply {
		return s.post(fmt.Sprintf(`{"query":%q,"extensions":{"persistedQuery":{"version":1,"sha256Hash":%q}}}`, query, hash), "Accept", "application/graphql-response+json")
	}
	const query = "{ hello }"
	hash := sha(query)
	ask(hash, "").is(t, "unknown", 200, "PERSISTED_QUERY_NOT_FOUND", `"message":"PersistedQueryNotFound"`)
	ask(sha("{ other }"), query).is(t, "wrong hash", 400, "BAD_USER_INPUT")
	for range 2 {
		ask(hash, query).is(t, "with the text", 200, "", `"hello"`)
		ask(hash, "").is(t, "by hash", 200, "", `"hello"`)
	}
	got := s.post(fmt.Sprintf(`{"query":"","extensions":{"persistedQuery":{"Version":1,"version":1,"SHA256HASH":%q}}}`, hash))
	check.That(t, got.Data["hello"] == nil, "by another name: %s", got.text)
	long := query + strings.Repeat(" ", 40_000)
	ask(sha(long), long).is(t, "long", 200, "", `"hello"`)
	ask(sha(long), "").is(t, "a long text is not kept", 200, "PERSISTED_QUERY_NOT_FOUND")
}
