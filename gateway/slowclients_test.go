package gateway_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway"
)

// TestSlowClientsAreDropped: a client that reads nothing, or reads a long answer byte by byte, is
// not waited for, over WebSocket and over server-sent events.
func TestSlowClientsAreDropped(t *testing.T) {
	for name, c := range map[string]struct {
		open     func(t *testing.T, s site) net.Conn
		trickles bool
	}{
		"websocket":               {slowWebSocket, false},
		"websocket, byte by byte": {slowWebSocket, true},
		"sse":                     {slowStream, false},
		"sse, byte by byte":       {slowStream, true},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			length := 20_000
			if c.trickles {
				length = 3 << 20 // 16 MB
			}
			schema := newSchema(map[string]resolver{"tick": func(ctx context.Context, _ map[string]any) (any, error) {
				ticks := make(chan string)
				go func() {
					defer close(ended)
					long := strings.Repeat("tick ", length)
					for {
						select {
						case ticks <- long:
						case <-ctx.Done():
							return
						}
					}
				}()
				return ticks, nil
			}})
			registry := prometheus.NewRegistry()
			s := serve(t, gateway.Config{Schema: schema, Subscriptions: gateway.Subscriptions{WriteTimeout: 200 * time.Millisecond}, Metrics: gateway.NewMetrics(registry)})
			conn := c.open(t, s)
			defer conn.Close()
			if c.trickles {
				go trickle(conn)
			}
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				t.Fatal("it is still waited for")
			}
			eventually(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=slow") })
			eventually(t, "the metrics", func() bool {
				return value(t, registry, "kith_subscription_connections") == 0 && value(t, registry, "kith_subscription_operations") == 0 &&
					value(t, registry, "kith_subscription_connections_ended_total") == 1 && value(t, registry, "kith_graphql_requests_in_flight") == 0
			})
		})
	}
}

// slowWebSocket subscribes to ticks over a connection with small buffers, and reads nothing.
func slowWebSocket(t *testing.T, s site) net.Conn {
	var raw net.Conn
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		raw = conn
		return conn, err
	}}}
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/graphql",
		&websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}, HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	c := &wsClient{t, conn}
	c.send(`{"type":"connection_init"}`)
	c.subscribe("a", `subscription { tick }`)
	return raw
}

// slowStream does the same over server-sent events.
func slowStream(t *testing.T, s site) net.Conn {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	body := `{"query":"subscription { tick }"}`
	fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return conn
}

// trickle reads a byte now and then until the connection ends.
func trickle(conn net.Conn) {
	for b := make([]byte, 1); ; time.Sleep(20 * time.Millisecond) {
		if _, err := conn.Read(b); err != nil {
			return
		}
	}
}
