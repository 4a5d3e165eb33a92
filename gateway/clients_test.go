package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"kith/gateway"
	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/logged"
	"kith/internal/must"
	"kith/internal/testenv"
)

// npmClient is a client from npm that runs in its own process.
type npmClient struct {
	t     *testing.T
	lines chan happening
}

// happening is one line that the client printed.
type happening struct {
	What      string
	Operation int
	Answer    struct {
		Data   map[string]any
		Errors []map[string]any
	}
	Errors  []map[string]any
	Message string
	Code    any
	Taken   int
}

type npmJob struct {
	URL        string            `json:"url"`
	Headers    map[string]string `json:"headers,omitempty"`
	Retries    int               `json:"retries"`
	Operations []npmOperation    `json:"operations"`
}

type npmOperation struct {
	Query string `json:"query"`
	Take  int    `json:"take,omitempty"`
}

// npmRun starts a client. script is ws or sse.
func npmRun(t *testing.T, script string, job npmJob) *npmClient {
	t.Helper()
	testenv.NPM(t, "subscribe_test")
	job.URL += "/graphql"
	if script == "ws" {
		job.URL = "ws" + job.URL[len("http"):]
	}
	text, err := json.Marshal(job)
	must.OK(t, err)
	cmd := exec.CommandContext(t.Context(), "node", "subscribe_test/"+script+".mjs", string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	c := &npmClient{t, make(chan happening, 1000)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(c.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			var h happening
			if err := json.Unmarshal(scanner.Bytes(), &h); err != nil {
				h.What = scanner.Text()
			}
			c.lines <- h
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	return c
}

// until returns the next happening of a kind, skipping others.
func (c *npmClient) until(what string) happening {
	c.t.Helper()
	deadline := time.After(30 * time.Second)
	var seen []string
	for {
		select {
		case h, more := <-c.lines:
			must.That(c.t, more, "the client ended without %q, after %q", what, seen)
			if h.What == what {
				return h
			}
			seen = append(seen, h.What)
		case <-deadline:
			c.t.Fatalf("no %q within 30 s, but %q", what, seen)
		}
	}
}

// rest returns how often each thing happens until the client ends. It passes each of them to look.
func (c *npmClient) rest(look func(happening)) map[string]int {
	c.t.Helper()
	counts := make(map[string]int)
	deadline := time.After(30 * time.Second)
	for {
		select {
		case h, more := <-c.lines:
			if !more {
				return counts
			}
			look(h)
			counts[h.What]++
		case <-deadline:
			c.t.Fatalf("the client does not end within 30 s, after %v", counts)
		}
	}
}

// eachClient runs a test with both clients.
func eachClient(t *testing.T, test func(t *testing.T, script string)) {
	for _, script := range []string{"ws", "sse"} {
		t.Run(script, func(t *testing.T) { t.Parallel(); test(t, script) })
	}
}

func TestNpmClientsSubscribe(t *testing.T) {
	eachClient(t, func(t *testing.T, script string) {
		l := newLive()
		l.tick(t)
		cfg := l.config(gateway.Subscriptions{Init: withToken})
		cfg.RequestTimeout = time.Minute
		s := serve(t, cfg)
		c := npmRun(t, script, npmJob{URL: s.url, Headers: map[string]string{"Authorization": "Bearer ann"}, Operations: []npmOperation{
			{Query: followersQuery, Take: 30}, {Query: followersQuery, Take: 10}, {Query: `{ __typename }`},
		}})
		got := c.rest(func(h happening) {
			followers, subscribed := h.Answer.Data["followerAdded"].(map[string]any)
			check.That(t, h.What != "next" || h.Answer.Errors == nil && (!subscribed || followers["edge"].(map[string]any)["cursor"] == "line\nbreak"), "got %+v", h.Answer)
		})
		check.That(t, got["next"] == 41 && got["complete"] == 3 && got["error"] == 0 && (script != "ws" || got["pong"] > 0), "there happened %v", got)
		must.Soon(t, "both subscriptions' contexts are done", func() bool { return l.ended.Load() == 2 })
	})
}

func TestNpmClientsSeeTheEnd(t *testing.T) {
	eachClient(t, func(t *testing.T, script string) {
		l := newLive()
		s := serve(t, l.config(gateway.Subscriptions{}))
		c := npmRun(t, script, npmJob{URL: s.url, Operations: []npmOperation{{Query: followersQuery}}})
		must.Soon(t, "subscribed", func() bool { return l.began.Load() == 1 })
		l.publish(1)
		c.until("next")
		l.end()
		check.Equal(t, "answers that it took", c.until("complete").Taken, 1)
	})
}

func TestNpmClientsSeeErrors(t *testing.T) {
	eachClient(t, func(t *testing.T, script string) {
		l := newLive()
		s := serve(t, l.config(gateway.Subscriptions{}))
		code := func(query string) any {
			t.Helper()
			c := npmRun(t, script, npmJob{URL: s.url, Operations: []npmOperation{{Query: query}}})
			for {
				h, more := <-c.lines
				must.That(t, more, "the client ended without an error")
				for _, errs := range [][]map[string]any{h.Errors, h.Answer.Errors} {
					if len(errs) > 0 {
						return errs[0]["extensions"].(map[string]any)["code"]
					}
				}
			}
		}
		check.Equal[any](t, "the code of nonsense", code(`subscription { nonsense }`), "BAD_USER_INPUT")
		l.refuseWith(apierr.NotSignedIn.Error("somebody has to be signed in"))
		check.Equal[any](t, "the code of nobody", code(followersQuery), "UNAUTHENTICATED")
	})
}

func TestNpmClientIsRefusedByItsToken(t *testing.T) {
	s := serve(t, newLive().config(gateway.Subscriptions{Init: withToken, Expires: soon}))
	for token, reason := range map[string]string{"Bearer eve": "the token is not valid", "Bearer expired": "the token has expired"} {
		c := npmRun(t, "ws", npmJob{URL: s.url, Headers: map[string]string{"Authorization": token}, Operations: []npmOperation{{Query: followersQuery}}})
		h := c.until("error")
		check.Equal(t, token, []any{h.Code, h.Message}, []any{4403.0, reason})
	}
}

// TestNpmClientsComeBack: when a gateway stops, its clients are asked to continue elsewhere.
// Clients that wait for a single answer are answered first.
func TestNpmClientsComeBack(t *testing.T) {
	eachClient(t, func(t *testing.T, script string) {
		l := newLive()
		l.tick(t)
		cfg := l.config(gateway.Subscriptions{})
		cfg.Logger = slog.New(slog.DiscardHandler)
		cfg.RequestTimeout = time.Minute
		g := startGateway(t, cfg, "127.0.0.1:0")
		c := npmRun(t, script, npmJob{URL: "http://" + g.address, Retries: 100, Operations: []npmOperation{{Query: followersQuery, Take: 100_000}, {Query: `{ viewer { user { id } } }`}}})
		c.until("next")
		must.Soon(t, "both operations run", func() bool { return l.began.Load() == 2 })

		g.stop()
		refuses(t, g.address)
		close(l.hold)
		for h := c.until("next"); h.Operation != 1; h = c.until("next") {
			must.That(t, len(h.Answer.Errors) == 0, "%+v", h)
		}
		must.OK(t, <-g.ended)
		if script == "ws" {
			check.Equal[any](t, "closed with", c.until("closed").Code, 1001.0)
		}
		must.Soon(t, "the subscription's context is done", func() bool { return l.ended.Load() == 1 })

		again := startGateway(t, cfg, g.address)
		for h := c.until("next"); l.began.Load() < 3; h = c.until("next") { // events of the old connection are still read
			check.Equal(t, "the query is answered once: what comes then is of operation", h.Operation, 0)
		}
		c.until("next")
		again.stop()
		must.OK(t, <-again.ended)
	})
}

// started is a gateway that is served in the same way as by the program.
type started struct {
	address string
	stop    context.CancelFunc
	ended   chan error
}

func startGateway(t *testing.T, cfg gateway.Config, address string) *started {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	must.OK(t, err)
	ctx, stop := context.WithCancel(context.Background())
	g := &started{listener.Addr().String(), stop, make(chan error, 1)}
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		g.ended <- gateway.Serve(ctx, cfg, listener, 20*time.Second)
	}()
	t.Cleanup(func() { stop(); <-returned })
	return g
}

// loopback is a listener on this machine.
func loopback(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	return listener
}

// refuses waits until no connection to an address is taken.
func refuses(t *testing.T, address string) {
	t.Helper()
	must.Soon(t, "new connections are refused", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// listen serves with a server that the test has made itself.
func listen(t *testing.T, server *http.Server) site {
	t.Helper()
	listener := loopback(t)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close(); <-ended; http.DefaultClient.CloseIdleConnections() })
	return site{t: t, url: "http://" + listener.Addr().String(), log: &logged.Text{}}
}
