package gateway_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"kith/gateway"
	"kith/graph/apierr"
	"kith/graph/subscription"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// eventStream is a stream of server-sent events, read by hand.
type eventStream struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Reader
	leave    context.CancelFunc
}

// stream sends a request that asks for server-sent events.
func (s site) stream(r *http.Request) *eventStream {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	r = r.WithContext(ctx)
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", "text/event-stream")
	}
	response, err := http.DefaultClient.Do(r)
	must.OK(s.t, err)
	s.t.Cleanup(func() { response.Body.Close() })
	return &eventStream{s.t, response, bufio.NewReader(response.Body), cancel}
}

func (s site) subscribeSSE(query string, headers ...string) *eventStream {
	s.t.Helper()
	body := `{"query":"` + strings.ReplaceAll(query, `"`, `\"`) + `"}`
	return s.stream(s.request(http.MethodPost, "/graphql", body, append([]string{"Content-Type", "application/json"}, headers...)...))
}

// next returns the name and data of the next event, without comments. Both are "" at the end.
func (e *eventStream) next() (name, data string) {
	e.t.Helper()
	for {
		line, err := e.lines.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		switch {
		case err == io.EOF:
			return "", ""
		case err != nil:
			return "", err.Error()
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data:"):
			data += strings.TrimPrefix(strings.TrimPrefix(line, "data:"), " ")
		case line == "" && name != "":
			return name, data
		}
	}
}

func (e *eventStream) expect(name, data string) {
	e.t.Helper()
	n, d := e.next()
	must.That(e.t, n == name && d == data, "got %q %s, want %q %s", n, d, name, data)
}

func TestServerSentEvents(t *testing.T) {
	l := newLive()
	s := serve(t, l.config(gateway.Subscriptions{}))
	e := s.subscribeSSE(followersQuery, "Accept-Encoding", "gzip")
	h := e.response.Header
	if e.response.StatusCode != http.StatusOK || h.Get("Content-Type") != "text/event-stream" || h.Get("Content-Encoding") != "" ||
		h.Get("Cache-Control") != "no-store" || h.Get("X-Request-Id") == "" || h.Get("No-Gzip-Compression") != "" {
		t.Errorf("%d %v", e.response.StatusCode, h)
	}
	must.Soon(t, "subscribed", func() bool { return l.began.Load() == 1 })
	time.Sleep(300 * time.Millisecond) // longer than one answer may take
	l.publish(7)
	e.expect("next", follower(7, 2, "null"))
	l.publish(8)
	e.expect("next", follower(8, 3, "null"))
	l.end()
	e.expect("complete", "")
	e.expect("", "")
	must.Soon(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=complete") })
	check.Has(t, "the log", s.log.String(), "transport=sse", "operations=1", "answers=2", "operation=subscription", "outcome=ok", "status=200")

	left := s.subscribeSSE(followersQuery)
	must.Soon(t, "subscribed", func() bool { return l.began.Load() == 2 })
	left.leave()
	must.Soon(t, "the subscription's context is done", func() bool { return l.ended.Load() == 2 })
	must.Soon(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=client") })
}

// TestAnAnswerBeginsWithItsSubscription: what changes before a subscription has begun, a client reads that asks once it has the headers, or,
// over a WebSocket that asks for it, a ping.
func TestAnAnswerBeginsWithItsSubscription(t *testing.T) {
	begins := make(chan struct{})
	s := serve(t, gateway.Config{Schema: newSchema(map[string]resolver{"tick": func(context.Context, map[string]any) (any, error) {
		<-begins
		return make(chan string), nil
	}})})
	opened, pinged := make(chan *eventStream, 1), make(chan string, 1)
	go func() { opened <- s.subscribeSSE(`subscription { tick }`) }()
	c := s.connect()
	c.send(`{"type":"connection_init","payload":{"begun":"ping"}}`)
	c.expect(`{"type":"connection_ack"}`)
	c.subscribe("\"1", `subscription { tick }`)
	go func() { text, _ := c.read(); pinged <- text }()
	select {
	case <-pinged:
		close(begins)
		t.Fatal("it is told before the subscription has begun")
	case <-opened:
		close(begins)
		t.Fatal("the answer has begun before the subscription")
	case <-time.After(300 * time.Millisecond):
	}
	close(begins)
	check.Equal(t, "the status", (<-opened).response.StatusCode, http.StatusOK)
	check.Equal(t, "the ping", <-pinged, `{"type":"ping","payload":{"begun":"\"1"}}`)
}

func TestEventSourcesOfBrowsers(t *testing.T) {
	l := newLive()
	l.tick(t)
	s := serve(t, l.config(gateway.Subscriptions{}))
	path := "/graphql?query=" + url.QueryEscape(followersQuery)
	name, data := s.stream(s.request(http.MethodGet, path, "", "Sec-Fetch-Site", "same-origin")).next()
	check.Equal(t, "the event", name, "next")
	check.Has(t, "the event", data, "followerAdded")
	s.get(path, "Accept", "text/event-stream", "Sec-Fetch-Site", "cross-site").is(t, "from another site", 403, "FORBIDDEN")
}

func TestStreamsOnlyWhereTheyAreWanted(t *testing.T) {
	s := serve(t, gateway.Config{})
	for accept, want := range map[string]string{
		"text/event-stream":                                       "text/event-stream",
		"application/json, text/event-stream":                     "application/json; charset=utf-8",
		"application/graphql-response+json, text/event-stream":    "application/graphql-response+json; charset=utf-8",
		"text/event-stream, application/json":                     "text/event-stream",
		"text/html, application/xhtml+xml, text/event-stream;q=1": "text/event-stream",
	} {
		e := s.subscribeSSE(`{ hello }`, "Accept", accept)
		check.Equal(t, accept, e.response.Header.Get("Content-Type"), want)
		if strings.HasPrefix(want, "text/") {
			e.expect("next", `{"data":{"hello":"world \u003c3"}}`)
			e.expect("complete", "")
		}
	}
	e := s.subscribeSSE(`subscription { tick }`, "Accept", "application/json, text/event-stream")
	check.Equal(t, "a subscription", e.response.Header.Get("Content-Type"), "text/event-stream")
	for _, accept := range []string{"*/*", "text/event-stream;q=0, */*", "text/event-stream; q=0.0"} {
		s.query("subscription { tick }", "Accept", accept).is(t, accept, 400, "BAD_USER_INPUT")
	}
	s.post("{", "Accept", "text/event-stream").is(t, "malformed", 400, "BAD_USER_INPUT")
	s.get("/graphql?query=mutation%7Btouch%7D", "Accept", "text/event-stream").is(t, "mutation by GET", 405, "BAD_USER_INPUT")
}

func TestErrorsOfServerSentEvents(t *testing.T) {
	l := newLive()
	s := serve(t, l.config(gateway.Subscriptions{}))
	expect := func(e *eventStream, code string) {
		t.Helper()
		name, data := e.next()
		check.That(t, name == "next" && strings.HasPrefix(data, `{"errors":[{`) && strings.Contains(data, code) && !strings.Contains(data, secret), "got %s %s, want %s", name, data, code)
		e.expect("complete", "")
		e.expect("", "")
	}
	expect(s.subscribeSSE(`subscription { nonsense }`), "BAD_USER_INPUT")
	l.refuseWith(apierr.NotSignedIn.Error("somebody has to be signed in"))
	expect(s.subscribeSSE(followersQuery), "UNAUTHENTICATED")

	failing := serve(t, gateway.Config{Schema: newSchema(map[string]resolver{"tick": func(ctx context.Context, _ map[string]any) (any, error) {
		subscription.Fail(ctx, apierr.TooManyWrites.Error("the client is too slow"))
		return nil, nil
	}})})
	expect(failing.subscribeSSE(`subscription { tick }`), "RATE_LIMITED")

	panicking := serve(t, gateway.Config{Schema: newSchema(map[string]resolver{"tick": func(context.Context, map[string]any) (any, error) {
		panic(secret)
	}})})
	expect(panicking.subscribeSSE(`subscription { tick }`), "INTERNAL_SERVER_ERROR")
	check.Has(t, "the log", panicking.log.String(), secret)
}

// TestQuietStreamsAreKeptOpen: comments keep proxies from closing a stream without events, and show
// the server if the other end is gone.
func TestQuietStreamsAreKeptOpen(t *testing.T) {
	s := serve(t, newLive().config(gateway.Subscriptions{PingInterval: 20 * time.Millisecond}))
	e := s.subscribeSSE(followersQuery)
	for range 5 {
		line, err := e.lines.ReadString('\n')
		must.That(t, err == nil && (line == ":\n" || line == "\n"), "got %q %v", line, err)
	}
}

func TestStreamsEndWithTheirToken(t *testing.T) {
	l := newLive()
	l.tick(t)
	cfg := l.config(gateway.Subscriptions{Expires: soon})
	cfg.PerRequest = func(ctx context.Context) context.Context { return ctx }
	cfg.Identify = func(_ http.Header, r *http.Request) (context.Context, error) {
		return context.WithValue(r.Context(), viewerKey{}, r.Header.Get("Authorization")), nil
	}
	s := serve(t, cfg)
	e := s.subscribeSSE(followersQuery, "Authorization", "Bearer expired")
	n := 0
	for name, _ := e.next(); name != ""; name, _ = e.next() {
		n++
		check.That(t, name != "complete", "it was completed: the client would not come back with a new token")
	}
	check.Least(t, "events before the end", n, 1)
	must.Soon(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=expired") })
}

// TestStreamsOutliveTheServersDeadlines: the deadlines for reading a request and for writing an
// ordinary answer do not end a stream.
func TestStreamsOutliveTheServersDeadlines(t *testing.T) {
	l := newLive()
	cfg := l.config(gateway.Subscriptions{})
	cfg.Logger = slog.New(slog.DiscardHandler)
	server := &http.Server{Handler: gateway.New(cfg), ReadTimeout: time.Second, WriteTimeout: time.Second, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	s := listen(t, server)
	var streams []*bufio.Scanner
	for _, client := range []*http.Client{http.DefaultClient, overHTTP2(t)} {
		streams = append(streams, bufio.NewScanner(subscribed(t, client, s, followersQuery).Body))
	}
	must.Soon(t, "subscribed", func() bool { return l.began.Load() == 2 })
	time.Sleep(1500 * time.Millisecond)
	l.publish(storage.UserID(3))
	for i, lines := range streams {
		for lines.Scan() && !strings.Contains(lines.Text(), `"followerAdded"`) {
		}
		check.That(t, lines.Err() == nil && lines.Text() != "", "over HTTP/%d: %q, %v", i+1, lines.Text(), lines.Err())
	}
	check.Equal(t, "subscriptions whose context is done", l.ended.Load(), 0)
}
