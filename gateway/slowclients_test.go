package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"kith/gateway"
	"kith/gateway/quota"
	"kith/internal/check"
	"kith/internal/must"
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
			s := serve(t, gateway.Config{Schema: schema, Subscriptions: gateway.Subscriptions{WriteTimeout: 200 * time.Millisecond}})
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
			must.Soon(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=slow") })
			must.Soon(t, "the metrics", func() bool {
				return s.value("kith_subscription_connections") == 0 && s.value("kith_subscription_operations") == 0 &&
					s.value("kith_subscription_connections_ended_total") == 1 && s.value("kith_graphql_requests_in_flight") == 0
			})
		})
	}
}

// TestAnswersWaitForOneAnother: each answer over a WebSocket has its time from when the one before it has been taken.
func TestAnswersWaitForOneAnother(t *testing.T) {
	t.Parallel()
	const answers, length, each, most = 6, 12 << 20, 500 * time.Millisecond, 2400 * time.Millisecond
	long := strings.Repeat("a", length)
	s := serve(t, gateway.Config{
		Schema:    newSchema(map[string]resolver{"big": func(context.Context, map[string]any) (any, error) { return long, nil }}),
		MaxAnswer: 8 * length, Subscriptions: gateway.Subscriptions{WriteTimeout: most, Bounds: quota.Bounds{Answers: 4 * answers}},
	})
	conn := slowly(t, s, 256<<10, slices.Repeat([]string{`{ big }`}, answers)...)
	defer conn.Close()
	for read, began := int64(0), time.Now(); read < answers*length; {
		n, err := io.CopyN(io.Discard, conn, length/32)
		read += n
		must.That(t, err == nil, "%v after %d of %d bytes", err, read, answers*length)
		time.Sleep(time.Until(began.Add(each * time.Duration(read) / length))) // a rate, not a wait
	}
}

// TestAMessageHasATime: frames without a byte go on for ever, and do not count against the size of a message. Others are answered meanwhile.
func TestAMessageHasATime(t *testing.T) {
	t.Parallel()
	l := newLive()
	s := serve(t, l.config(gateway.Subscriptions{MessageTimeout: 300 * time.Millisecond, InitTimeout: time.Minute}))
	conn, _ := s.byHand()
	const first, again = "\x01\x80\x00\x00\x00\x00", "\x00\x80\x00\x00\x00\x00" // opcode, the bit of a mask and no byte, the mask
	began := time.Now()
	_ = conn.SetWriteDeadline(began.Add(20 * time.Second))
	_, err := io.WriteString(conn, first)
	for ; err == nil; _, err = io.WriteString(conn, again) {
		must.Equal(t, "an ordinary query", s.query("{ __typename }").status, http.StatusOK)
		time.Sleep(5 * time.Millisecond)
	}
	check.That(t, !errors.Is(err, os.ErrDeadlineExceeded), "the connection was open for %s: %v", time.Since(began), err)
	check.Most(t, "the time that the connection was open", time.Since(began), 15*time.Second)
}

// slowWebSocket subscribes to ticks over a connection with small buffers, and reads nothing.
func slowWebSocket(t *testing.T, s site) net.Conn {
	return slowly(t, s, 4<<10, `subscription { tick }`)
}

// slowly begins operations over a WebSocket with a buffer of so many bytes, and reads nothing.
func slowly(t *testing.T, s site, buffer int, operations ...string) net.Conn {
	var raw net.Conn
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(buffer)
		}
		raw = conn
		return conn, err
	}}}
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/graphql",
		&websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}, HTTPClient: client})
	must.OK(t, err)
	c := &wsClient{t, conn}
	c.send(`{"type":"connection_init"}`)
	for i, o := range operations {
		c.subscribe(fmt.Sprint(i), o)
	}
	return raw
}

// slowStream does the same over server-sent events.
func slowStream(t *testing.T, s site) net.Conn {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must.OK(t, err)
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

// byHand opens a WebSocket whose frames a test writes itself, such as an opcode, the bit of a mask and a length, and a mask.
func (s site) byHand(headers ...string) (net.Conn, *bufio.Reader) {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must.OK(s.t, err)
	s.t.Cleanup(func() { conn.Close() })
	fmt.Fprint(conn, "GET /graphql HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n"+strings.Join(append(headers, "\r\n"), "\r\n"))
	read := bufio.NewReader(conn)
	answer, err := http.ReadResponse(read, nil)
	must.OK(s.t, err)
	must.Equal(s.t, "the answer", answer.StatusCode, http.StatusSwitchingProtocols)
	return conn, read
}

// Frames of control count as messages: each costs the gateway as much as a short one.
func TestFramesOfControlWaitToBeRead(t *testing.T) {
	const atOnce, aSecond, more = 1000, 500, 250
	for name, frame := range map[string]string{"pings": "\x89\x80\x00\x00\x00\x00", "pongs": "\x8a\x80\x00\x00\x00\x00"} {
		conn, read := serve(t, newLive().config(gateway.Subscriptions{InitTimeout: time.Minute})).byHand()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		began := time.Now()
		_, err := io.WriteString(conn, strings.Repeat(frame, atOnce+more)+"\x89\x81\x00\x00\x00\x00!")
		must.OK(t, err)
		_, err = read.ReadString('!') // the pong of the last one
		must.OK(t, err)
		check.Least(t, name+": time", time.Since(began), more*time.Second/aSecond*8/10)
	}
}
