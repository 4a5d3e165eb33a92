package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/gateway"
	"kith/graph/limits"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

func TestAnswersAreBounded(t *testing.T) {
	s := serve(t, gateway.Config{MaxAnswer: 25})
	check.Equal(t, "a short one", s.query(`{hello}`).text, `{"data":{"hello":"world \u003c3"}}`) // 25 bytes
	for name, got := range map[string]reply{
		"a query":    s.query(`{ hello more: hello }`),
		"a mutation": s.query(`mutation { touch more: touch }`),
	} {
		got.is(t, name+" that is too long", 200, "QUERY_TOO_COSTLY", `"data":null`)
		check.Equal(t, "errors", len(got.Errors), 1)
	}
}

// blocking is a schema whose field `wait` lasts until end is called.
func blocking(more map[string]resolver) (_ gateway.Config, began chan struct{}, end func()) {
	began, ended := make(chan struct{}, 100), make(chan struct{})
	fields := map[string]resolver{"wait": func(ctx context.Context, _ map[string]any) (any, error) {
		began <- struct{}{}
		select {
		case <-ended:
		case <-ctx.Done():
		}
		return "waited", nil
	}}
	for name, r := range more {
		fields[name] = r
	}
	return gateway.Config{Schema: newSchema(fields)}, began, func() { close(ended) }
}

// A request above the bound waits for its turn. If its turn does not come, the client is asked to
// try again later.
func TestRequestsInWorkAreBounded(t *testing.T) {
	cfg, began, end := blocking(nil)
	cfg.MaxRequests = 2
	s := serve(t, cfg)
	answers := make(chan reply, 4)
	for range 2 {
		go func() { answers <- s.query(`{wait}`) }()
		<-began
	}
	start := time.Now()
	got := s.query(`{hello}`)
	got.is(t, "one too many", http.StatusServiceUnavailable, "UNAVAILABLE")
	check.That(t, got.header.Get("Retry-After") != "", "it is not said when to come back: %v", got.header)
	check.Least(t, "the wait for its turn", time.Since(start), 500*time.Millisecond)
	go func() { answers <- s.query(`{hello}`) }()
	end()
	for range 3 {
		(<-answers).is(t, "one of those that were taken in, or waited", 200, "")
	}
	s.query(`{hello}`).is(t, "afterwards", 200, "")
}

// costlyQuery costs nearly as much as a query may.
func costlyQuery(field string, pages int) string {
	var costly strings.Builder
	costly.WriteString("{ " + field)
	for i := range pages { // each costs 101
		fmt.Fprintf(&costly, " p%d: page(first: 100)", i)
	}
	return costly.String() + " }"
}

// Costly requests that wait for a server keep no other costly request from its turn, over HTTP and over a WebSocket.
func TestCostlyRequestsWaitForServersAtOnce(t *testing.T) {
	waiting, ended := atomic.Int64{}, make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	s := serve(t, gateway.Config{
		Limits: limits.Limits{Tokens: 20_000, Overlaps: 1 << 20},
		Schema: newSchema(map[string]resolver{"wait": func(ctx context.Context, _ map[string]any) (any, error) {
			defer storage.Wait(ctx)()
			waiting.Add(1)
			<-ended
			return "read", nil
		}}),
	})
	t.Cleanup(end)
	all := 10 * max(1, runtime.GOMAXPROCS(0)/2)
	answers := make(chan reply, all)
	for range all {
		go func() { answers <- s.query(costlyQuery("wait", 12)) }()
	}
	c, _ := s.from("", "1")
	c.join("1")
	c.subscribe("1", costlyQuery("wait", 12))
	must.Soon(t, "all wait for a server", func() bool { return waiting.Load() == int64(all+1) })
	end()
	for range all {
		(<-answers).is(t, "over HTTP", 200, "", `"wait":"read"`)
	}
	c.reads(`"wait":"read"`)
}

// Costly requests wait for one another. Cheap requests wait for none of them.
func TestCheapRequestsPassCostlyOnes(t *testing.T) {
	cfg, began, end := blocking(nil)
	cfg.Limits = limits.Limits{Tokens: 20_000, Overlaps: 1 << 20}
	cfg.MaxRequests = 8 * max(1, runtime.GOMAXPROCS(0)/2) // an eighth of these has turns, a quarter may wait for theirs
	s := serve(t, cfg)
	costly := costlyQuery("wait", 980)
	answers := make(chan reply, cfg.MaxRequests)
	for range cfg.MaxRequests {
		go func() { answers <- s.query(costly) }()
	}
	<-began
	refused := <-answers // others have got their turns by then, since those that are in work wait
	check.That(t, refused.status == http.StatusServiceUnavailable && refused.header.Get("Retry-After") != "", "one too many of the costly ones: %d %.100s", refused.status, refused.text)
	s.query(`{hello}`).is(t, "a cheap one", 200, "")
	end()
	answered := 0
	for range cfg.MaxRequests - 1 {
		if got := <-answers; got.status == http.StatusOK {
			answered++
		}
	}
	check.Least(t, "answers to those that were taken in", answered, 1)
	s.query(costly).is(t, "afterwards", 200, "")
}

// A text that was not seen before is parsed when those who have their turn have had it, over HTTP and over a WebSocket.
func TestNewTextsAreParsedInTurn(t *testing.T) {
	for name, ask := range map[string]func(site, string) string{
		"HTTP": func(s site, query string) string { return s.query(query).text },
		"WebSocket": func(s site, query string) string {
			c, _ := s.from("", "1")
			c.join("1")
			c.subscribe("1", query)
			got, err := c.read()
			return fmt.Sprint(got, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, began, end := blocking(nil)
			cfg.Limits = limits.Limits{Tokens: 20_000, Overlaps: 1 << 20}
			s := serve(t, cfg)
			var all sync.WaitGroup
			defer all.Wait()
			defer end()
			start := time.Now()
			for range max(1, runtime.GOMAXPROCS(0)/2) {
				all.Go(func() { s.query(costlyQuery("wait", 980)) })
				<-began
			}
			text := "{hello #" + strings.Repeat("x", 3000) + "\n}"
			check.Has(t, "the answer", ask(s, text), "hello")
			check.Least(t, "the time in which it was answered", time.Since(start), 200*time.Millisecond) // their turns end after 250 ms
		})
	}
}

// A client that asks for a long answer and does not read it is cut off, long before the time of its
// request ends.
func TestClientsThatDoNotReadAreCutOff(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("kith ", 3<<20)
	s := serve(t, gateway.Config{Schema: newSchema(map[string]resolver{
		"big": func(context.Context, map[string]any) (any, error) { return long, nil },
	})})
	inFlight := func() float64 { return s.value("kith_graphql_requests_in_flight") }
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must.OK(t, err)
	defer conn.Close()
	const body = `{"query": "{big}"}`
	fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: kith\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	start := time.Now()
	must.Soon(t, "it is in work", func() bool { return inFlight() > 0 })
	must.Soon(t, "it is cut off", func() bool { return inFlight() == 0 })
	check.Most(t, "the time in which it is answered", time.Since(start), 30*time.Second)
	n, err := io.Copy(io.Discard, conn)
	check.That(t, n < int64(len(long)) && (err != nil || n > 0), "%d bytes came: %v", n, err)
	check.Equal(t, "bytes to a client that reads", len(s.query(`{big}`).Data["big"].(string)), len(long))
}

// long is a gateway whose field `big` and mutation `touch` answer with 8 MiB, the most that an answer may have, and `hello`
// with 100 KiB. Who asks is in X-From and Authorization.
func long(t *testing.T) (_ site, touched *atomic.Int64) {
	const most = 8 << 20
	big, short := strings.Repeat("a", most-100), strings.Repeat("b", 100<<10)
	touched = new(atomic.Int64)
	cfg := counting(gateway.Subscriptions{WriteTimeout: time.Minute})
	cfg.MaxAnswer = most
	cfg.Schema = newSchema(map[string]resolver{
		"big":   func(context.Context, map[string]any) (any, error) { return big, nil },
		"hello": func(context.Context, map[string]any) (any, error) { return short, nil },
		"touch": func(context.Context, map[string]any) (any, error) { touched.Add(1); return big, nil },
	})
	return serve(t, cfg), touched
}

// stands asks for an answer, reads the beginning of it, and then nothing. It returns what it has read.
func (s site) stands(query, address, user, accept string) string {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must.OK(s.t, err)
	s.t.Cleanup(func() { conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	body := fmt.Sprintf(`{"query": %q}`, query)
	fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: kith\r\nX-From: %s\r\nAuthorization: %s\r\nAccept: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		address, user, accept, len(body), body)
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	in := bufio.NewReaderSize(conn, 16)
	var read strings.Builder
	for !strings.HasSuffix(read.String(), `"data":`) && !strings.HasSuffix(read.String(), `"errors":`) {
		c, err := in.ReadByte()
		must.That(s.t, err == nil, "%v after %s", err, read.String())
		read.WriteByte(c)
	}
	return read.String()
}

// Clients that stand still hold up their own answers, and nobody else's, however many they are, and hold no turn.
func TestLongAnswersPassClientsThatStandStill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from  func(i int) (address, user string)
		asked int
		most  int // how many answers of 8 MiB; there is room for eight
	}{
		"one address":             {func(int) (string, string) { return "a", "" }, 8, 2},
		"one user":                {func(i int) (string, string) { return fmt.Sprint("a", i), "1" }, 4, 2},
		"four users, one address": {func(i int) (string, string) { return "a", fmt.Sprint(1 + i/2) }, 8, 2},
		"four addresses":          {func(i int) (string, string) { return fmt.Sprint("a", i/2), "" }, 8, 6},
		"a backend, many users":   {func(i int) (string, string) { return "", fmt.Sprint(1 + i) }, 10, 6},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := long(t)
			admitted, began := 0, time.Now()
			for i := range c.asked {
				address, user := c.from(i)
				if got := s.stands("{big}", address, user, "application/json"); strings.Contains(got, " 200 OK") {
					admitted++
				} else if !strings.Contains(got, " 503 ") || !strings.Contains(got, "Retry-After: 1") {
					t.Errorf("refused with %s", got)
				}
			}
			check.That(t, admitted == c.most || time.Since(began) >= 5*time.Second, "%d long answers wait for their clients, want %d", admitted, c.most) // then the first is cut
			for _, another := range []string{"elsewhere", "a"} {
				began := time.Now()
				s.query(`{hello}`, "X-From", another, "Authorization", "99").is(t, "another user at "+another, http.StatusOK, "")
				check.Most(t, "the time of another user at "+another, time.Since(began), 20*time.Second)
			}
		})
	}
}

// A mutation is done before it is known that there is no room for its answer, and the error says so.
func TestMutationsWithoutRoomAreDone(t *testing.T) {
	t.Parallel()
	s, touched := long(t)
	s.stands("{big}", "a", "", "text/event-stream") // counts twice
	got := s.query("mutation { touch }", "X-From", "a")
	got.is(t, "the mutation", 503, "UNAVAILABLE", "has been done")
	check.Equal(t, "times that it is done", touched.Load(), 1)
}

// Streams count as well, for the data and for the message that is made of it. In the place of an answer for which there is no
// room there is an error.
func TestLongAnswersOfStreamsAreCounted(t *testing.T) {
	t.Parallel()
	s, _ := long(t)
	admitted := 0
	for i := range 8 { // no more: each takes seconds under the race detector, and the first is cut after a minute
		got := s.stands("{big}", fmt.Sprint("a", i), "", "text/event-stream")
		if strings.HasSuffix(got, "data: {\"data\":") {
			admitted++
		}
	}
	check.Equal(t, "long answers that wait for their clients", admitted, 2)
	check.Equal(t, "refused", s.value("kith_graphql_requests_overload_total"), 6)
	_, text := s.subscribeSSE("{big}", "X-From", "b").next()
	check.Has(t, "one too many", text, `"UNAVAILABLE"`, `"data":null`)
	_, text = s.subscribeSSE("{hello}", "X-From", "b").next()
	check.Has(t, "another", text, "bbb")
	c, _ := s.from("b", "")
	c.join("")
	c.subscribe("1", "{big}")
	c.reads(`"UNAVAILABLE"`)
}

// The turn of a costly query is over when its answer is made: who reads it slowly keeps no other from being answered.
func TestSlowReadersHoldNoCostlyTurn(t *testing.T) {
	t.Parallel()
	cfg := gateway.Config{Limits: limits.Limits{Tokens: 20_000, Overlaps: 1 << 20}, MaxAnswer: 64 << 20}
	big := strings.Repeat("a", 8<<20)
	cfg.Schema = newSchema(map[string]resolver{"big": func(context.Context, map[string]any) (any, error) { return big, nil }})
	s := serve(t, cfg)
	costly := "{ hello" + strings.Repeat(" page(first: 100)", 50) + " }"
	for range runtime.GOMAXPROCS(0) {
		check.Has(t, "a costly query", s.stands(strings.Replace(costly, "hello", "big", 1), "", "", "application/json"), " 200 OK")
	}
	s.query(costly).is(t, "another costly query", 200, "")
}
