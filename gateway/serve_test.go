package gateway_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kith/gateway"
	"kith/internal/check"
	"kith/internal/must"
)

// drained is a gateway whose one request can be held up.
type drained struct {
	address string
	started chan struct{} // a request has begun
	finish  chan struct{} // close it to let the request go on
	stop    context.CancelFunc
	ended   chan error // what Serve returned
}

func startDrained(t *testing.T, drain time.Duration) *drained {
	t.Helper()
	listener := loopback(t)
	d := &drained{
		address: listener.Addr().String(),
		started: make(chan struct{}),
		finish:  make(chan struct{}),
		ended:   make(chan error, 1),
	}
	cfg := gateway.Config{
		Logger: slog.New(slog.DiscardHandler),
		Schema: newSchema(map[string]resolver{"hello": func(ctx context.Context, _ map[string]any) (any, error) {
			close(d.started)
			select {
			case <-d.finish:
			case <-ctx.Done(): // the request was cut off
			}
			return "finished", ctx.Err()
		}}),
	}
	ctx, stop := context.WithCancel(t.Context())
	d.stop = stop
	go func() { d.ended <- gateway.Serve(ctx, cfg, listener, drain) }()
	return d
}

// ask sends the request that is held up.
func (d *drained) ask() (string, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Post("http://"+d.address+"/graphql", "application/json", strings.NewReader(`{"query":"{hello}"}`))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// TestDrain: when the gateway stops, a request under way is finished, and new connections are refused.
func TestDrain(t *testing.T) {
	d := startDrained(t, time.Minute)
	type result struct {
		text string
		err  error
	}
	answered := make(chan result, 1)
	go func() {
		text, err := d.ask()
		answered <- result{text, err}
	}()
	<-d.started
	d.stop()
	refuses(t, d.address)
	select {
	case r := <-answered:
		t.Fatalf("answered before it was let go: %+v", r)
	case err := <-d.ended:
		t.Fatalf("Serve returned %v with a request under way", err)
	default:
	}
	close(d.finish)
	r := <-answered
	check.That(t, r.err == nil && strings.Contains(r.text, "finished"), "got %+v", r)
	must.OK(t, <-d.ended)
}

// TestDrainEnds: a request that does not finish is cut off when the time ends.
func TestDrainEnds(t *testing.T) {
	d := startDrained(t, 20*time.Millisecond)
	answered := make(chan error, 1)
	go func() {
		_, err := d.ask()
		answered <- err
	}()
	<-d.started
	d.stop()
	err := <-d.ended
	check.Says(t, "Serve", err, "cut off after 20ms")
	check.That(t, <-answered != nil, "the request was answered")
}

// TestBodiesInChunksEndConnections: what follows a body with a Content-Length and a Transfer-Encoding may be a part of it to a proxy in front
// (RFC 9112, section 6.1). It is not answered.
func TestBodiesInChunksEndConnections(t *testing.T) {
	d := startDrained(t, time.Minute)
	defer func() { d.stop(); <-d.ended }()
	const chunks = "5\r\n{\"a\":\r\n2\r\n1}\r\n0\r\n\r\n"
	for headers, want := range map[string]int{
		"Content-Length: 7\r\n\r\n{\"a\":1}":                                         2,
		"Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks:           1,
		"Transfer-Encoding: chunked\r\nContent-Length: 7\r\n\r\n" + chunks:           1,
		"Transfer-Encoding: chunked\r\n\r\n" + chunks:                                1,
		"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":           1,
		"Content-Length: 7\r\nTransfer-Encoding: chunked, identity\r\n\r\n" + chunks: 1,
	} {
		for _, path := range []string{"/graphql", "/healthz"} {
			conn, err := net.Dial("tcp", d.address)
			must.OK(t, err)
			defer conn.Close()
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: kith\r\nContent-Type: application/json\r\n%s", path, headers)
			fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: kith\r\nConnection: close\r\n\r\n")
			text, _ := io.ReadAll(conn) // it may be reset
			check.Equal(t, fmt.Sprintf("answers to %s, %q:\n%s", path, headers, text), strings.Count(string(text), "HTTP/1.1 "), want)
		}
	}
}

// TestStopDelay: for a while after the signal everything is answered, /readyz reports that the gateway is not
// ready, and each answer ends its connection. The delay is longer than the test, which closes the listener at the end.
func TestStopDelay(t *testing.T) {
	listener := loopback(t)
	cfg := gateway.Config{
		Logger:    slog.New(slog.DiscardHandler),
		StopDelay: time.Hour,
		Schema: newSchema(map[string]resolver{
			"hello": func(context.Context, map[string]any) (any, error) { return "answered", nil }}),
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- gateway.Serve(ctx, cfg, listener, time.Minute) }()
	get := func(path string) (status int, closes bool, body string) {
		response, err := http.Get("http://" + listener.Addr().String() + path)
		must.OK(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		must.OK(t, err)
		return response.StatusCode, response.Close, string(text)
	}
	status, closes, text := get("/healthz")
	must.That(t, status == http.StatusOK && !closes, "before: %d %t %s", status, closes, text)
	ready := func() (int, string) {
		w := httptest.NewRecorder()
		cfg.Admin(ctx).Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return w.Code, w.Body.String()
	}
	status, text = ready()
	must.That(t, status == http.StatusOK, "before: %d %s", status, text)
	stop()
	status, text = ready()
	check.That(t, status == http.StatusServiceUnavailable && text == `{"ready":false,"stopping":true}`+"\n", "/readyz: %d %s", status, text)
	must.Soon(t, "connections end", func() bool {
		_, closes, _ := get("/healthz")
		return closes
	})
	for path, want := range map[string]string{"/healthz": "ok\n", "/graphql?query=%7Bhello%7D": `{"data":{"hello":"answered"}}`} {
		status, closes, body := get(path)
		check.That(t, status == http.StatusOK && closes && strings.TrimSpace(body) == strings.TrimSpace(want), "%s: %d, closes %t: %s", path, status, closes, body)
	}
	listener.Close()
	check.That(t, <-ended != nil, "Serve went on without its listener")
}

func TestServeSaysWhatIsWrong(t *testing.T) {
	listener := loopback(t)
	listener.Close()
	err := gateway.Serve(t.Context(), gateway.Config{Schema: newSchema(nil)}, listener, time.Second)
	check.That(t, err != nil && strings.Contains(err.Error(), listener.Addr().String()), "got %v", err)
}
