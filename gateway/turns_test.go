package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/gateway"
)

// followersOf opens a connection of a user, and waits until a number of subscriptions on it have begun.
func (l *live) followersOf(s site, user string, subscriptions int) *wsClient {
	s.t.Helper()
	c, _ := s.from("", user)
	c.init(user)
	c.expect(`{"type":"connection_ack"}`)
	for i := range subscriptions {
		began := l.began.Load()
		c.subscribe(fmt.Sprint(i), followersQuery)
		eventually(s.t, "subscribed", func() bool { return l.began.Load() == began+1 })
	}
	return c
}

// answers reads n answers about a follower.
func (c *wsClient) answers(follower, n int) {
	c.t.Helper()
	for range n {
		got, err := c.read()
		if err != nil || !strings.Contains(got, `"next"`) || !strings.Contains(got, fmt.Sprintf(`"id":"%d"`, follower)) || strings.Contains(got, "errors") {
			c.t.Fatalf("got %s %v, want follower %d", got, err, follower)
		}
	}
}

// never waits for a while, to see that something does not happen.
func never(t *testing.T, what string, condition func() bool) {
	t.Helper()
	time.Sleep(100 * time.Millisecond)
	if condition() {
		t.Error(what)
	}
}

// TestAnswersAreMadeInTurn: the number of answers that are made at the same time is bounded, and
// one user gets only a part of it. The other answers wait, and none is lost.
func TestAnswersAreMadeInTurn(t *testing.T) {
	l := newLive()
	cfg := l.counting(gateway.Subscriptions{MaxAnswers: 8})
	cfg.RequestTimeout = time.Minute
	s := serve(t, cfg)
	busy := l.followersOf(s, "1", 5)
	l.publish(303)
	eventually(t, "user 1 has its part", func() bool { return l.working.Load() == 2 })
	never(t, "user 1 has more than its part", func() bool { return l.working.Load() > 2 })

	other := l.followersOf(s, "2", 1)
	l.publish(7)
	other.answers(7, 1)

	var more []*wsClient
	for user := 3; user <= 6; user++ {
		more = append(more, l.followersOf(s, fmt.Sprint(user), 2))
	}
	l.publish(303)
	eventually(t, "all turns are taken", func() bool { return l.working.Load() == 8 })
	never(t, "more answers are worked on than may be", func() bool { return l.working.Load() > 8 })
	close(l.hold)
	for _, c := range more {
		c.answers(303, 2)
	}
	other.answers(303, 1)
	counted := map[bool]int{}
	for range 15 { // 303, 7 and 303 again, for each of five
		got, err := busy.read()
		if err != nil {
			t.Fatal(err)
		}
		counted[strings.Contains(got, `"id":"303"`)]++
	}
	if counted[true] != 10 || counted[false] != 5 {
		t.Errorf("user 1 got %v", counted)
	}
}

// TestQueriesOverWebSocketWaitInTurn: their time runs while they wait.
func TestQueriesOverWebSocketWaitInTurn(t *testing.T) {
	l := newLive()
	s := serve(t, l.counting(gateway.Subscriptions{MaxAnswers: 4}))
	c := l.followersOf(s, "1", 0)
	for i := range 3 {
		c.subscribe(fmt.Sprint(i), `{ viewer { user { id } } }`)
	}
	never(t, "one user has more than its part", func() bool { return l.began.Load() > 1 })
	timeouts := 0
	for range 6 {
		got, err := c.read()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(got, `"code":"TIMEOUT"`) {
			timeouts++
		}
	}
	if timeouts != 3 {
		t.Errorf("%d of 3 timed out", timeouts)
	}
}

// TestQueriesOverWebSocketAreAdmitted: they count as requests in work.
func TestQueriesOverWebSocketAreAdmitted(t *testing.T) {
	l := newLive()
	cfg := l.counting(gateway.Subscriptions{})
	cfg.MaxRequests, cfg.RequestTimeout = 1, time.Minute
	s := serve(t, cfg)
	l.followersOf(s, "1", 0).subscribe("a", `{ viewer { user { id } } }`)
	eventually(t, "it is in work", func() bool { return l.began.Load() == 1 })
	c := l.followersOf(s, "2", 0)
	c.subscribe("b", `{ viewer { user { id } } }`)
	if got, err := c.read(); err != nil || !strings.Contains(got, `"code":"UNAVAILABLE"`) || l.began.Load() != 1 {
		t.Errorf("got %s %v", got, err)
	}
	close(l.hold)
}

// TestMessagesWaitToBeRead: of one user's messages that are not worked on yet, a megabyte is held,
// for all connections together.
func TestMessagesWaitToBeRead(t *testing.T) {
	l := newLive()
	cfg := l.counting(gateway.Subscriptions{MaxAnswers: 4})
	cfg.RequestTimeout = time.Minute
	s := serve(t, cfg)
	a, b := l.followersOf(s, "1", 0), l.followersOf(s, "1", 0)
	long := func(id int) string {
		return fmt.Sprintf(`{"type":"subscribe","id":"%d","payload":{"query":"{ viewer { user { id } } }","extensions":%s}}`, id, payload(100<<10))
	}
	for i := range 10 { // there is room for exactly these
		a.send(long(i))
	}
	a.send(`{"type":"ping"}`)
	a.expect(`{"type":"pong"}`)
	b.send(long(0))
	b.send(`{"type":"ping"}`)
	answered := make(chan string, 1)
	go func() {
		got, _ := b.read()
		answered <- got
	}()
	never(t, "it was read", func() bool { return len(answered) > 0 })
	close(l.hold)
	if got := <-answered; !strings.Contains(got, "pong") && !strings.Contains(got, `"next"`) {
		t.Errorf("got %s", got)
	}
}
