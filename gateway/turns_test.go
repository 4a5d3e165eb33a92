package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/gateway"
	"kith/gateway/quota"
	"kith/internal/check"
	"kith/internal/must"
)

// followersOf opens a connection of a user, and waits until a number of subscriptions on it have begun.
func (l *live) followersOf(s site, user string, subscriptions int) *wsClient {
	s.t.Helper()
	c, _ := s.from("", user)
	c.join(user)
	for i := range subscriptions {
		began := l.began.Load()
		c.subscribe(fmt.Sprint(i), followersQuery)
		must.Soon(s.t, "subscribed", func() bool { return l.began.Load() == began+1 })
	}
	return c
}

// answers reads n answers about a follower.
func (c *wsClient) answers(follower, n int) {
	c.t.Helper()
	for range n {
		got, err := c.read()
		must.That(c.t, err == nil && strings.Contains(got, `"next"`) && strings.Contains(got, fmt.Sprintf(`"id":"%d"`, follower)) && !strings.Contains(got, "errors"), "got %s %v, want follower %d", got, err, follower)
	}
}

// never waits for a while, to see that something does not happen.
func never(t *testing.T, what string, condition func() bool) {
	t.Helper()
	time.Sleep(100 * time.Millisecond)
	check.That(t, !condition(), "%s", what)
}

// TestAnswersAreMadeInTurn: one user's answers that wait for a server keep no other's from being made, and each other for a while. None
// is lost. How many are made at a time is tested in quota.
func TestAnswersAreMadeInTurn(t *testing.T) {
	l := newLive()
	cfg := l.counting(gateway.Subscriptions{Bounds: quota.Bounds{Answers: 8}})
	cfg.RequestTimeout = time.Minute
	s := serve(t, cfg)
	busy, other := l.followersOf(s, "1", 5), l.followersOf(s, "2", 1)
	began := time.Now()
	l.publish(303)
	must.Soon(t, "all answers are being made", func() bool { return l.working.Load() == 6 })
	check.Least(t, "the time in which all five began, of which two at a time are made", time.Since(began), 500*time.Millisecond)
	third := l.followersOf(s, "3", 1)
	l.publish(7)
	third.answers(7, 1)
	close(l.hold)
	other.answers(303, 1)
	other.answers(7, 1)
	counted := map[bool]int{}
	for range 10 { // 303 and 7, for each of five
		got, err := busy.read()
		must.OK(t, err)
		counted[strings.Contains(got, `"id":"303"`)]++
	}
	check.Equal(t, "answers to user 1", counted, map[bool]int{true: 5, false: 5})
}

// TestQueriesOverWebSocketWaitInTurn: their time runs while they wait.
func TestQueriesOverWebSocketWaitInTurn(t *testing.T) {
	l := newLive()
	s := serve(t, l.counting(gateway.Subscriptions{Bounds: quota.Bounds{Answers: 4}}))
	c := l.followersOf(s, "1", 0)
	for i := range 3 {
		c.subscribe(fmt.Sprint(i), `{ viewer { user { id } } }`)
	}
	timeouts := 0
	for range 6 {
		got, err := c.read()
		must.OK(t, err)
		if strings.Contains(got, `"code":"TIMEOUT"`) {
			timeouts++
		}
	}
	check.Equal(t, "of 3 that timed out", timeouts, 3)
}

// TestQueriesOverWebSocketAreAdmitted: they count as requests in work.
func TestQueriesOverWebSocketAreAdmitted(t *testing.T) {
	l := newLive()
	cfg := l.counting(gateway.Subscriptions{})
	cfg.MaxRequests, cfg.RequestTimeout = 1, time.Minute
	s := serve(t, cfg)
	l.followersOf(s, "1", 0).subscribe("a", `{ viewer { user { id } } }`)
	must.Soon(t, "it is in work", func() bool { return l.began.Load() == 1 })
	c := l.followersOf(s, "2", 0)
	c.subscribe("b", `{ viewer { user { id } } }`)
	c.reads(`"code":"UNAVAILABLE"`)
	check.Equal(t, "operations that have begun", l.began.Load(), 1)
	close(l.hold)
}

// TestMessagesWaitToBeRead: of one user's messages that are not worked on yet, a megabyte is held,
// for all connections together.
func TestMessagesWaitToBeRead(t *testing.T) {
	l := newLive()
	cfg := l.counting(gateway.Subscriptions{Bounds: quota.Bounds{Answers: 4}})
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
	got := <-answered
	check.That(t, strings.Contains(got, "pong") || strings.Contains(got, `"next"`), "got %s", got)
}
