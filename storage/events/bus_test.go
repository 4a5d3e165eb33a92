package events_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/events"
)

func connect(t testing.TB, server *testenv.RedisServer) redis.UniversalClient {
	t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{server.Addr()}, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	return client
}

// gateway is a hub with its bus, and a subscriber who reads everything.
type gateway struct {
	bus  *events.Bus
	mu   sync.Mutex
	got  map[storage.Edge]int
	gaps int
	stop func() // stops, and waits until that is done
}

func start(t testing.TB, client redis.UniversalClient) *gateway {
	t.Helper()
	hub := events.NewHub(nil)
	g := &gateway{bus: events.NewBus(hub, events.BusConfig{Redis: client}), got: make(map[storage.Edge]int)}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	subscription := hub.Subscribe(ctx) // before the first gap comes
	wg.Go(func() {
		for g.take(subscription); ctx.Err() == nil; g.take(subscription) {
			subscription = hub.Subscribe(ctx) // the subscription was too slow
		}
	})
	wg.Go(func() { g.bus.Run(ctx) })
	g.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(g.stop)
	if client != nil {
		must.Soon(t, "connected", func() bool { return g.gapsSoFar() > 0 })
	}
	return g
}

func (g *gateway) take(s *events.Subscription) {
	for e := range s.Events() {
		g.mu.Lock()
		if e.Kind == events.Gap {
			g.gaps++
		} else {
			g.got[e.Edge]++
		}
		g.mu.Unlock()
	}
}

// following is a row of following.
func following(from, to storage.UserID) storage.Row {
	return storage.Row{Side: storage.Forward, Edge: storage.Edge{From: from, To: to, Type: storage.Following, UpdateTime: 1}}
}

func (g *gateway) send(from, to storage.UserID) {
	g.bus.Publish(context.Background(), []storage.Row{following(from, to)})
}

func (g *gateway) times(from, to storage.UserID) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.got[following(from, to).Edge]
}

func (g *gateway) gapsSoFar() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.gaps
}

func TestWithoutRedisTheHubIsServedDirectly(t *testing.T) {
	g := start(t, nil)
	g.send(1, 2)
	must.Soon(t, "1 → 2", func() bool { return g.times(1, 2) == 1 })
}

func TestEveryGatewayGetsEventsOnce(t *testing.T) {
	client := connect(t, testenv.Redis(t))
	gateways := []*gateway{start(t, client), start(t, client), start(t, client)}
	const each = 2000
	for n := range storage.UserID(each) {
		for i, g := range gateways {
			g.send(storage.UserID(i+1), n+1)
		}
		if n%20 == 0 { // the test's subscriber is not meant to be slow
			must.Soon(t, "all got it", func() bool {
				for _, g := range gateways {
					for i := range gateways {
						if g.times(storage.UserID(i+1), n+1) == 0 {
							return false
						}
					}
				}
				return true
			})
		}
	}
	for _, g := range gateways {
		for i := range gateways {
			for n := range storage.UserID(each) {
				from := storage.UserID(i + 1)
				must.Soon(t, "an event", func() bool { return g.times(from, n+1) > 0 })
				must.Equal(t, fmt.Sprintf("how often %d → %d came", from, n+1), g.times(from, n+1), 1)
			}
		}
	}
}

// TestNoSilentLoss: if a gateway may have missed an event because Redis was away, it gets a gap, and events
// that were sent in between arrive.
func TestNoSilentLoss(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(t *testing.T, server *testenv.RedisServer, meanwhile func()){
		"killed": func(t *testing.T, server *testenv.RedisServer, meanwhile func()) {
			server.Kill(t)
			meanwhile()
			server.Restart(t)
		},
		"frozen": func(t *testing.T, server *testenv.RedisServer, meanwhile func()) {
			server.Freeze(t)
			meanwhile()
			time.Sleep(3 * time.Second) // longer than a silent connection is trusted
			server.Thaw(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.Redis(t)
			a, b := start(t, connect(t, server)), start(t, connect(t, server))
			a.send(1, 1)
			must.Soon(t, "b got the first", func() bool { return b.times(1, 1) == 1 })
			gaps := b.gapsSoFar()
			away(t, server, func() {
				a.send(1, 2)
				must.Soon(t, "a's own subscribers do not wait for Redis", func() bool { return a.times(1, 2) == 1 })
			})
			must.Soon(t, "b knows of the gap", func() bool { return b.gapsSoFar() > gaps })
			a.send(1, 3)
			must.Soon(t, "b gets what is sent from then on", func() bool { return b.times(1, 3) == 1 })
		})
	}
}

// TestOverflowBecomesAGap: the queue of events for Redis is bounded, and the other gateways get a gap in
// place of the events that were dropped.
func TestOverflowBecomesAGap(t *testing.T) {
	client := connect(t, testenv.Redis(t))
	b := start(t, client)
	gaps := b.gapsSoFar()

	bus := events.NewBus(events.NewHub(nil), events.BusConfig{Redis: client})
	many := make([]storage.Row, 1<<16)
	for i := range many {
		many[i].Edge = storage.Edge{From: 7, To: 8, UpdateTime: storage.Micros(i)}
	}
	bus.Publish(t.Context(), many)
	bus.Publish(t.Context(), []storage.Row{following(7, 9)}) // one too many
	bus.Publish(t.Context(), []storage.Row{following(1, 2)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	bus.Run(ctx) // sends what is queued

	must.Soon(t, "the event behind the gap", func() bool { return b.times(1, 2) == 1 })
	check.Equal(t, "gaps", b.gapsSoFar(), gaps+1)
	check.That(t, b.times(7, 8)+b.times(7, 9) == 0, "events arrived that were thrown away")
}

// TestABusThatIsBehindSaysSo: at its end, a bus reports whether the others lack events.
func TestABusThatIsBehindSaysSo(t *testing.T) {
	server := testenv.Redis(t)
	for what, c := range map[string]struct {
		frozen bool
		events int
	}{"everything is sent": {false, 1}, "nobody could be reached": {true, 1}, "they were too many": {true, 1<<16 + 1}} {
		g := start(t, connect(t, server))
		if c.frozen {
			server.Freeze(t)
		}
		g.bus.Publish(t.Context(), make([]storage.Row, c.events))
		g.stop()
		check.That(t, g.bus.Behind() == c.frozen, "%s: it is behind: %t", what, !c.frozen)
		if c.frozen {
			server.Thaw(t)
		}
	}
	alone := start(t, nil)
	alone.send(1, 1)
	alone.stop()
	check.That(t, !alone.bus.Behind(), "there is nobody to send to")
}

// form is the version of messages.
const form = 3

func TestMissingAndUnreadableMessagesBecomeGaps(t *testing.T) {
	client := connect(t, testenv.Redis(t))
	g := start(t, client)
	message := func(number uint64, from byte) string {
		text := binary.BigEndian.AppendUint64([]byte{form}, 4711)
		text = binary.AppendUvarint(text, number)
		return string(append(text, byte(events.RowChanged), byte(storage.Inverse), from, 1, byte(storage.Following), 2)) // time 1
	}
	newer := string(rune(form+1)) + message(9, 1)[1:]
	gaps := g.gapsSoFar()
	for i, c := range []struct {
		name, text string
		gap        bool
		from       storage.UserID // the user whose event has to arrive
	}{
		{"the first of a sender", message(1, 1), false, 1},
		{"the next", message(2, 2), false, 2},
		{"again", message(2, 3), false, 0},
		{"an old one", message(1, 4), false, 0},
		{"one missing", message(4, 5), true, 5},
		{"from a newer program", newer, true, 0},
		{"cut short", message(5, 6)[:12], true, 0},
		{"empty", "", true, 0},
		{"going on", message(5, 7), false, 7},
	} {
		marker := storage.UserID(100 + i)
		must.OK(t, client.Publish(t.Context(), "kith:events", c.text).Err())
		if c.gap {
			gaps++
		}
		other := binary.BigEndian.AppendUint64([]byte{form}, uint64(marker))
		other = append(other, 1, byte(events.RowChanged), byte(storage.Inverse), byte(marker), 1, byte(storage.Following), 2)
		must.OK(t, client.Publish(t.Context(), "kith:events", other).Err())
		must.Soon(t, c.name+" was read", func() bool { return g.times(marker, 1) == 1 })
		check.Equal(t, c.name+": gaps", g.gapsSoFar(), gaps)
		check.That(t, c.from == 0 || g.times(c.from, 1) == 1, "%s: it came %d times", c.name, g.times(c.from, 1))
	}
	for _, dropped := range []storage.UserID{3, 4, 6} {
		check.That(t, g.times(dropped, 1) == 0, "%d arrived", dropped)
	}
}

// TestEveryKindComesOver, with all that is known of it.
func TestEveryKindComesOver(t *testing.T) {
	client := connect(t, testenv.Redis(t))
	hub := events.NewHub(nil)
	got := hub.Subscribe(t.Context())
	listening, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		events.NewBus(hub, events.BusConfig{Redis: client}).Run(listening)
	}()
	t.Cleanup(func() { stop(); <-ended })
	next := func() events.Event {
		select {
		case e := <-got.Events():
			return e
		case <-time.After(30 * time.Second):
			t.Fatal("nothing comes")
			return events.Event{}
		}
	}
	first := next()
	must.That(t, first.Kind == events.Gap, "it begins with %+v", first)

	request := storage.Row{Side: storage.Requests, Edge: storage.Edge{From: 3, To: 4, Type: storage.Accepted, UpdateTime: 9}}
	favorite := storage.Row{Side: storage.FavoriteInbox, Edge: storage.Edge{From: 3, To: 4, Item: 5, Type: storage.Favorited, UpdateTime: 9}}
	counts := storage.Counts{Following: 1, Follower: 2, Friend: 3, Posts: 4, Favorites: 5, Favorited: 6, Version: 7}
	user := storage.User{ID: 5, Handle: "five", Name: "Five", Locked: true, Attributes: `{"a":1}`, CreatedAt: 8, UpdatedAt: 9}
	sent := storage.Change{
		Gap:  true,
		Rows: []storage.Row{following(1, 2), request, favorite},
		Users: []storage.UserChange{
			{User: 5, What: storage.Leaving | storage.Whole, Counts: counts, Before: 7, Profile: &user}, {User: 6, What: storage.Beside, Counts: counts, Before: 6},
			{User: 7, What: storage.Standing}, {User: 8, What: storage.Missed},
		},
		Posts: []storage.ChangedPost{
			{PostAt: storage.PostAt{PostID: storage.PostID{Author: 9, Number: 10}, CreatedAt: 11}, News: storage.PostPublished},
			{PostAt: storage.PostAt{PostID: storage.PostID{Author: 12}}}, {PostAt: storage.PostAt{PostID: storage.PostID{Author: 16, Number: 1}}, News: storage.PostCommented, Comment: 17},
		},
	}
	other := events.NewBus(events.NewHub(nil), events.BusConfig{Redis: client})
	other.Send(t.Context(), sent)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	other.Run(ctx) // sends what is queued
	var came storage.Change
	for range events.Of(sent) {
		next().AddTo(&came)
	}
	check.That(t, reflect.DeepEqual(came, sent), "got %+v, want %+v", came, sent)
}

// TestEventsOfAStoppingGatewayAreSent: the last events are sent, too.
func TestEventsOfAStoppingGatewayAreSent(t *testing.T) {
	client := connect(t, testenv.Redis(t))
	a, b := start(t, client), start(t, client)
	for n := range storage.UserID(100) {
		a.send(1, n+1)
	}
	a.stop()
	must.Soon(t, "b got all", func() bool {
		for n := range storage.UserID(100) {
			if b.times(1, n+1) != 1 {
				return false
			}
		}
		return true
	})
}

func TestHearingIsReported(t *testing.T) {
	server := testenv.Redis(t)
	var isSilent atomic.Bool
	var silent net.Listener
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{server.Addr()}, ContextTimeoutEnabled: true, Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
		if isSilent.Load() {
			address = silent.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}})
	t.Cleanup(func() { client.Close() })
	g := start(t, client)
	var mu sync.Mutex
	var reported []bool
	g.bus.OnHearing(func(is bool) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, is)
	})
	last := func(want bool) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(reported) > 0 && reported[len(reported)-1] == want
		}
	}
	must.Soon(t, "hearing", last(true))
	server.Kill(t)
	must.Soon(t, "not hearing without Redis", last(false))
	server.Restart(t)
	must.Soon(t, "hearing again", last(true))
	server.Freeze(t)
	must.Soon(t, "not hearing a frozen Redis", last(false))
	server.Thaw(t)
	must.Soon(t, "hearing once it goes on", last(true))

	// When the connection breaks, and the next one is made but nobody answers, that is not hearing either.
	var err error
	silent, err = net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer silent.Close()
	isSilent.Store(true)
	began := time.Now()
	server.Kill(t)
	must.Soon(t, "not hearing whoever is silent", last(false))
	check.Most(t, "a broken connection was noticed after", time.Since(began), 4*time.Second)

	alone := start(t, nil)
	alone.bus.OnHearing(func(is bool) { check.That(t, !is, "a gateway without Redis hears") })
}
