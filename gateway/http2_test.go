package gateway_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/gateway"
	"kith/internal/check"
	"kith/internal/hostile"
	"kith/internal/must"
)

// serveH2C serves a config until the test ends, or until stop is called, and reports how it ended.
func serveH2C(t *testing.T, cfg gateway.Config) (s site, stop func(), ended chan error) {
	t.Helper()
	listener := loopback(t)
	cfg, log, metrics := prepared(cfg)
	ctx, stop := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	served := make(chan struct{})
	go func() { ended <- gateway.Serve(ctx, cfg, listener, 5*time.Second); close(served) }()
	t.Cleanup(func() { stop(); <-served; http.DefaultClient.CloseIdleConnections() })
	return site{t: t, url: "http://" + listener.Addr().String(), log: log, metrics: metrics}, stop, ended
}

// overHTTP2 is a client that speaks HTTP/2 from the start, on one connection.
func overHTTP2(t *testing.T) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func ask(t *testing.T, client *http.Client, s site, query string, headers ...string) (*http.Response, string) {
	t.Helper()
	r := s.request("POST", "/graphql", operation(query), append([]string{"Content-Type", "application/json"}, headers...)...)
	response, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return &http.Response{}, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check.Is(t, "the end of an answer", err, nil)
	return response, string(text)
}

// subscribed has begun a subscription over a client's server-sent events.
func subscribed(t *testing.T, client *http.Client, s site, query string) *http.Response {
	t.Helper()
	response, err := client.Do(s.request("POST", "/graphql", operation(query), "Content-Type", "application/json", "Accept", "text/event-stream"))
	must.OK(t, err)
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// TestH2C: with h2c, HTTP/1.1 and WebSockets work as before, and a body that is too large does not end the connection.
func TestH2C(t *testing.T) {
	s, _, _ := serveH2C(t, gateway.Config{MaxBody: 1000})
	client := overHTTP2(t)
	for range 3 {
		got, text := ask(t, client, s, "{ hello }")
		must.That(t, got.ProtoMajor == 2 && got.StatusCode == http.StatusOK && strings.Contains(text, "world"), "HTTP/2: %v %s", got, text)
		got, _ = ask(t, client, s, "{ hello } #"+strings.Repeat("x", 1000))
		check.Equal(t, "too large", got.StatusCode, http.StatusRequestEntityTooLarge)
	}
	must.Soon(t, "the one connection is idle", func() bool { return s.value("kith_http_connections_idle") == 1 })
	s.query("{ hello }").is(t, "HTTP/1.1", 200, "")
	_ = s.joined().conn.CloseNow()
}

// TestH2CDrains: when the gateway stops, a request under way is finished.
func TestH2CDrains(t *testing.T) {
	started, finish := make(chan struct{}), make(chan struct{})
	s, stop, ended := serveH2C(t, gateway.Config{Schema: newSchema(map[string]resolver{"hello": func(context.Context, map[string]any) (any, error) {
		close(started)
		<-finish
		return "finished", nil
	}})})
	answered := make(chan string, 1)
	go func() {
		_, text := ask(t, overHTTP2(t), s, "{ hello }")
		answered <- text
	}()
	<-started
	stop()
	refuses(t, strings.TrimPrefix(s.url, "http://"))
	close(finish)
	check.Has(t, "the answer", <-answered, "finished")
	must.OK(t, <-ended)
}

// TestStreamsOfH2CCountAsConnections: four may be open, and an address gets half of them: here the connection itself and one request.
// Beside the second request net/http may dial another connection, which is refused as well.
func TestStreamsOfH2CCountAsConnections(t *testing.T) {
	s, _, _ := serveH2C(t, gateway.Config{MaxConnections: 4, RequestTimeout: time.Minute})
	client := overHTTP2(t)
	ctx, leave := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() {
		r := s.request("GET", "/graphql?query=%7Bwait%7D", "").WithContext(ctx)
		if response, err := client.Do(r); err == nil {
			response.Body.Close()
		}
	})
	must.Soon(t, "it waits", func() bool { return s.value("kith_graphql_requests_in_flight") == 1 })
	got, text := ask(t, client, s, "{ hello }")
	check.That(t, got.StatusCode == http.StatusServiceUnavailable && got.Header.Get("Retry-After") != "", "a second request: %d %v", got.StatusCode, got.Header)
	check.Has(t, "a second request", text, "UNAVAILABLE")
	check.Least(t, "refused", s.value("kith_http_connections_refused_total"), 1)
	leave()
	waiting.Wait()
	must.Soon(t, "there is room again", func() bool {
		got, _ := ask(t, client, s, "{ hello }")
		return got.StatusCode == http.StatusOK
	})
}

// TestEventsOverH2C: a subscription may last longer than the time that a client has to take each event. Other subscriptions
// share its connection.
func TestEventsOverH2C(t *testing.T) {
	ticks := make(chan string)
	s, _, _ := serveH2C(t, gateway.Config{
		Subscriptions: gateway.Subscriptions{WriteTimeout: 50 * time.Millisecond},
		Schema:        newSchema(map[string]resolver{"tick": func(context.Context, map[string]any) (any, error) { return ticks, nil }}),
	})
	client := overHTTP2(t)
	response := subscribed(t, client, s, "subscription { tick }")
	lines := bufio.NewScanner(response.Body)
	for _, tick := range []string{"one", "two"} {
		select {
		case ticks <- tick:
		case <-time.After(10 * time.Second):
			t.Fatalf("nobody waits for %q", tick)
		}
		for lines.Scan() && !strings.Contains(lines.Text(), tick) {
		}
		got, _ := ask(t, client, s, "{ hello }")
		check.That(t, got.ProtoMajor == 2, "the connection is not shared")
		time.Sleep(150 * time.Millisecond) // longer than WriteTimeout, which would end the stream if it still counted
	}
	close(ticks)
	for lines.Scan() && lines.Text() != "event: complete" {
	}
	check.Equal(t, "the end of the stream", lines.Text(), "event: complete")
	check.Is(t, "the end of the stream", lines.Err(), nil)
}

// TestSlowClientsOfH2CAreDropped, like slow clients of other connections, and the HTTP/2 connection stays open.
func TestSlowClientsOfH2CAreDropped(t *testing.T) {
	s, _, _ := serveH2C(t, gateway.Config{
		Subscriptions: gateway.Subscriptions{WriteTimeout: 200 * time.Millisecond},
		Schema: newSchema(map[string]resolver{"tick": func(ctx context.Context, _ map[string]any) (any, error) {
			ticks := make(chan string)
			go func() {
				for long := strings.Repeat("tick ", 100_000); ctx.Err() == nil; {
					select {
					case ticks <- long:
					case <-ctx.Done():
					}
				}
			}()
			return ticks, nil
		}}),
	})
	client := overHTTP2(t)
	subscribed(t, client, s, "subscription { tick }")
	must.Soon(t, "it is dropped", func() bool { return strings.Contains(s.log.String(), "ended=") })
	check.Has(t, "the log", s.log.String(), "ended=slow")
	got, _ := ask(t, client, s, "{ hello }")
	check.That(t, got.StatusCode == http.StatusOK, "another request: %d", got.StatusCode)
}

// TestFloodsOfControlFramesAreCut: a client that reads every acknowledgement may send a thousand at once, and is then cut.
func TestFloodsOfControlFramesAreCut(t *testing.T) {
	s, _, _ := serveH2C(t, gateway.Config{})
	const preface, settings, ping = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\x00\x00\x08\x06\x00\x00\x00\x00\x00"
	for name, frame := range map[string]string{
		"SETTINGS": "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64",
		"PING":     ping + "a number",
		"PRIORITY": "\x00\x00\x05\x02\x00\x00\x00\x00\x01\x00\x00\x00\x00\x10",
		"unknown":  "\x00\x00\x01\x77\x00\x00\x00\x00\x00x",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		must.OK(t, err)
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		acknowledged, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			in := bufio.NewReader(conn)
			for head := make([]byte, 9); ; {
				if _, err := io.ReadFull(in, head); err != nil {
					return
				}
				payload := make([]byte, int(head[1])<<8|int(head[2]))
				if _, err := io.ReadFull(in, payload); err != nil {
					return
				}
				if string(payload) == "the last" {
					close(acknowledged)
				}
			}
		}()
		thousand := preface + settings + strings.Repeat(frame, 998) + ping + "the last"
		for piece := range slices.Chunk([]byte(thousand), 1009) { // heads are cut
			_, _ = conn.Write(piece)
		}
		select {
		case <-acknowledged:
		case <-ended:
			t.Errorf("a thousand of %s are too many", name)
		}
		sent, began := 0, time.Now()
		for ; err == nil && time.Since(began) < 10*time.Second; sent += 100 {
			_, err = conn.Write([]byte(strings.Repeat(frame, 100)))
		}
		check.That(t, err != nil, "%d of %s were taken in %s", sent, name, time.Since(began))
		t.Logf("%s: cut within %d more, in %s", name, sent, time.Since(began))
	}
}

// TestRefusedBodiesAreReceivedOverHTTP2: a proxy that gets RST_STREAM while it sends a body may not pass on the answer before it.
func TestRefusedBodiesAreReceivedOverHTTP2(t *testing.T) {
	t.Run("too long", func(t *testing.T) { receivesRefused(t, gateway.Config{MaxBody: 1000}) })
	t.Run("too many connections", func(t *testing.T) { receivesRefused(t, gateway.Config{MaxConnections: 2}) })
}

func receivesRefused(t *testing.T, cfg gateway.Config) {
	s, _, _ := serveH2C(t, cfg)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must.OK(t, err)
	defer conn.Close()
	must.OK(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	const data, headers, reset, ping, endStream, endHeaders = 0, 1, 3, 6, 1, 4
	frame := func(kind, flags byte, payload string) string {
		return string([]byte{0, byte(len(payload) >> 8), byte(len(payload)), kind, flags, 0, 0, 0, 1}) + payload
	}
	const post = "\x83\x86\x04\x08/graphql\x01\x04kith\x0f\x10\x10application/json" // after HPACK
	half := strings.Repeat("x", 2000)
	_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"+frame(headers, endHeaders, post)+frame(data, 0, half))
	must.OK(t, err)
	in, answered := bufio.NewReader(conn), false
	for head := make([]byte, 9); ; {
		_, err := io.ReadFull(in, head)
		must.OK(t, err)
		_, err = in.Discard(int(head[1])<<8 | int(head[2]))
		must.OK(t, err)
		switch kind := head[3]; {
		case kind == data && !answered:
			answered = true
			_, err = io.WriteString(conn, frame(data, endStream, half)+"\x00\x00\x08\x06\x00\x00\x00\x00\x00the last")
			must.OK(t, err)
		case kind == reset:
			t.Fatal("the stream is reset")
		case kind == ping:
			return
		}
	}
}

// TestFramesOfRequestsAreNotCut: nor are the frames by which clients take long answers.
func TestFramesOfRequestsAreNotCut(t *testing.T) {
	s, _, _ := serveH2C(t, gateway.Config{Schema: newSchema(map[string]resolver{
		"big": func(context.Context, map[string]any) (any, error) { return strings.Repeat("kith ", 10_000), nil },
	})})
	client := overHTTP2(t)
	var asking sync.WaitGroup
	for range 10 {
		asking.Go(func() {
			for range 120 {
				got, text := ask(t, client, s, "{ big }")
				check.That(t, got.StatusCode == http.StatusOK, "%d %.100s", got.StatusCode, text)
			}
		})
	}
	asking.Wait()
}

// TestHostileStreams: under each attack over HTTP/2 the gateway answers other clients, runs no more requests than it should,
// and its memory stays small.
func TestHostileStreams(t *testing.T) {
	for _, attack := range hostile.Streams {
		t.Run(attack.Name, func(t *testing.T) {
			var running, most atomic.Int64
			cfg := gateway.Config{RequestTimeout: 10 * time.Second, MaxConnections: 200, MaxAnswer: 1 << 20, Schema: newSchema(map[string]resolver{
				"wait": func(ctx context.Context, _ map[string]any) (any, error) {
					n := running.Add(1)
					defer running.Add(-1)
					for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
					}
					select {
					case <-time.After(20 * time.Millisecond): // like a statement, it continues after the client is gone
					case <-t.Context().Done():
					}
					return nil, nil
				},
				"big": func(context.Context, map[string]any) (any, error) { return strings.Repeat("kith ", 100_000), nil },
			})}
			s, _, _ := serveH2C(t, cfg)
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(100 << 20)) // otherwise garbage is measured
			ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer stop()
			var attacking sync.WaitGroup
			for range 2 {
				attacking.Go(func() { attack.Run(ctx, strings.TrimPrefix(s.url, "http://")) })
			}
			routines, heap := 0, uint64(0)
			var memory runtime.MemStats
			for ctx.Err() == nil {
				s.query("{ __typename }").is(t, "an ordinary query", 200, "")
				runtime.ReadMemStats(&memory)
				heap, routines = max(heap, memory.HeapInuse), max(routines, runtime.NumGoroutine())
				time.Sleep(10 * time.Millisecond)
			}
			attacking.Wait()
			check.That(t, most.Load() <= 100 && heap <= 200<<20 && routines <= 1000, "%d requests at once, %d MB, %d goroutines", most.Load(), heap>>20, routines)
			t.Logf("at most %d requests at once, %d MB, %d goroutines", most.Load(), heap>>20, routines)
		})
	}
}
