package gateway_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"kith/gateway"
	"kith/gateway/quota"
	"kith/internal/must"
)

// begins sends the head of a request and so many bytes of its body, and then nothing.
func (s site) begins(address, user, length string, sent int) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must.OK(s.t, err)
	s.t.Cleanup(func() { conn.Close() })
	body := strings.Repeat(" ", sent)
	if strings.HasSuffix(length, "chunked") {
		body = fmt.Sprintf("%x\r\n%s\r\n", sent, body)
	}
	fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: kith\r\nX-From: %s\r\nAuthorization: %s\r\nContent-Type: application/json\r\n%s\r\n\r\n%s", address, user, length, body)
	return conn
}

// Long bodies that do not arrive hold a bounded number of bytes, whoever sends them, and others get theirs through. One whose length is not told
// counts as far as it has come. None counts before more than 4 KiB of it have come, so that short ones always get through.
func TestLongBodiesPassThoseThatDoNotArrive(t *testing.T) {
	t.Parallel()
	const long, unsaid = "Content-Length: 8388608", "Transfer-Encoding: chunked" // the most that a body may have here; there is room for eight
	for name, c := range map[string]struct {
		from   func(i int) (address, user string)
		length string
		sent   int
		most   int
	}{
		"one address":       {func(int) (string, string) { return "a", "" }, long, 4097, 2},
		"one user":          {func(i int) (string, string) { return fmt.Sprint("a", i), "1" }, long, 4097, 2},
		"four addresses":    {func(i int) (string, string) { return fmt.Sprint("a", i/3), "" }, long, 4097, 6},
		"in chunks":         {func(int) (string, string) { return "a", "" }, unsaid, 5 << 20, 4},
		"few chunks":        {func(int) (string, string) { return "a", "" }, unsaid, 64 << 10, 12},
		"a backend":         {func(int) (string, string) { return "", "" }, long, 4097, 8},
		"short so far":      {func(int) (string, string) { return "a", "" }, long, 4096, 12},
		"short, in chunks":  {func(int) (string, string) { return "a", "" }, unsaid, 4096, 12},
		"hardly any longer": {func(int) (string, string) { return "a", "" }, "Content-Length: 4098", 4097, 12},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := counting(gateway.Subscriptions{})
			cfg.MaxBody, cfg.Schema = 8<<20, newSchema(nil)
			s := serve(t, cfg)
			waiting := func() int { return int(s.value("kith_graphql_requests_in_flight")) }
			var open []net.Conn
			for i := range 12 {
				address, user := c.from(i)
				open = append(open, s.begins(address, user, c.length, c.sent))
				must.Soon(t, "it is admitted, or refused", func() bool { return waiting()+int(s.value("kith_graphql_requests_overload_total")) == i+1 })
			}
			must.Soon(t, "so many bodies as there is room for are waited for", func() bool { return waiting() == c.most }) // the last ones may still arrive
			for _, address := range []string{"elsewhere", "a"} {
				s.query("{hello}", "X-From", address).is(t, "a short body from "+address, 200, "")
			}
			padded := fmt.Sprintf(`{"query": "{hello}"%s}`, strings.Repeat(" ", 4096))
			if c.most < 8 {
				s.post(padded, "X-From", "elsewhere").is(t, "a long one from elsewhere", 200, "")
			} else if name == "a backend" {
				s.post(padded).is(t, "one byte too many", 503, "UNAVAILABLE")
			}
			for _, conn := range open {
				conn.Close()
			}
			must.Soon(t, "they are given up", func() bool { return waiting() == 0 })
			s.begins("a", "", long, 4097)
			must.Soon(t, "there is room again", func() bool { return waiting() == 1 })
		})
	}
}

// Long messages over WebSockets that do not arrive hold the same bytes. Those for which there is no room wait; others pass them.
func TestLongMessagesPassThoseThatDoNotArrive(t *testing.T) {
	t.Parallel()
	cfg := counting(gateway.Subscriptions{InitTimeout: time.Minute, MessageTimeout: time.Minute})
	cfg.Schema = newSchema(nil)
	s := serve(t, cfg)
	var open []net.Conn
	for range 64<<20/3/quota.MaxMessage + 10 { // 21 MiB are a third of the room, half of what is then left
		conn, _ := s.byHand("X-From: a")
		_, err := io.WriteString(conn, "\x81\xff\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00"+strings.Repeat(" ", quota.MaxMessage-1)) // the length of one byte more, and no mask
		must.OK(t, err)
		open = append(open, conn)
	}
	asks := func(address string, bytes int) *wsClient {
		c, _ := s.from(address, "")
		c.join("")
		c.subscribe("1", "{hello #"+strings.Repeat("x", bytes)+"\n}")
		return c
	}
	answered := func(c *wsClient) chan struct{} {
		done := make(chan struct{})
		go func() { defer close(done); c.read() }()
		return done
	}
	var waits chan struct{}
	must.Soon(t, "a long message waits", func() bool {
		waits = answered(asks("a", 4<<10))
		select {
		case <-waits:
			return false
		case <-time.After(time.Second):
			return true
		}
	})
	asks("a", 100).reads(`"next"`, "world")
	asks("b", 50<<10).reads(`"next"`, "world")
	for _, conn := range open {
		conn.Close()
	}
	select {
	case <-waits:
	case <-time.After(20 * time.Second):
		t.Error("it still waits when there is room again")
	}
}
