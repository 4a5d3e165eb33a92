package events_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/events"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func edge(from, to storage.UserID) events.Event {
	return events.Event{Row: storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: from, To: to, Type: storage.Following, UpdateTime: 7}}}
}

// user is the event of a user, one and the same for each.
func user(id storage.UserID) events.Event { return users[id] }

var users = func() (all [10]events.Event) {
	for id := range all {
		all[id] = events.Event{Kind: events.UserChanged, User: &storage.UserChange{User: storage.UserID(id), What: storage.Standing}}
	}
	return all
}()

// taken returns the events that wait for a subscriber.
func taken(s *events.Subscription) []events.Event {
	var list []events.Event
	for {
		select {
		case e, open := <-s.Events():
			if !open {
				return list
			}
			list = append(list, e)
		default:
			return list
		}
	}
}

func equal(t *testing.T, got []events.Event, want ...events.Event) {
	t.Helper()
	must.That(t, len(got) == len(want), "got %v, want %v", got, want)
	for i := range got {
		must.That(t, got[i] == want[i], "got %v, want %v", got, want)
	}
}

func TestEventsReachWhomTheyConcern(t *testing.T) {
	hub := events.NewHub(nil)
	one, both, all := hub.Subscribe(t.Context(), 1), hub.Subscribe(t.Context(), 1, 2), hub.Subscribe(t.Context())
	gap := events.Event{Kind: events.Gap}
	hub.Publish(edge(1, 2), edge(2, 3), edge(3, 1), user(2), user(1), edge(3, 4), gap)

	equal(t, taken(one), edge(1, 2), edge(3, 1), user(1), gap)
	equal(t, taken(both), edge(1, 2), edge(2, 3), edge(3, 1), user(2), user(1), gap)
	equal(t, taken(all), edge(1, 2), edge(2, 3), edge(3, 1), user(2), user(1), edge(3, 4), gap)
}

// Rows of friend_request concern both users, like rows of following. A state concerns its user.
func TestRequestsAndStatesReachWhomTheyConcern(t *testing.T) {
	hub := events.NewHub(nil)
	one, three := hub.Subscribe(t.Context(), 1), hub.Subscribe(t.Context(), 3)
	request := events.Event{Row: storage.Row{Side: storage.Inbox, Edge: storage.Edge{From: 3, To: 1, Type: storage.Pending, UpdateTime: 7}}}
	hub.Publish(request, user(1), edge(3, 1))

	equal(t, taken(one), request, user(1), edge(3, 1))
	equal(t, taken(three), request, edge(3, 1))
}

// What was missed of a user is a gap to those who subscribe to that user, and to nobody else.
func TestMissedChangesOfAUserAreAGap(t *testing.T) {
	hub := events.NewHub(nil)
	one, two, all := hub.Subscribe(t.Context(), 1), hub.Subscribe(t.Context(), 2), hub.Subscribe(t.Context())
	missed := events.Event{Kind: events.UserChanged, User: &storage.UserChange{User: 1, What: storage.Missed}}
	hub.Publish(missed)
	equal(t, taken(one), events.Event{Kind: events.Gap})
	equal(t, taken(two))
	equal(t, taken(all), missed)
}

func TestWhatIsNotWantedTakesNoRoom(t *testing.T) {
	hub := events.NewHub(nil)
	from5 := hub.SubscribeNewest(t.Context(), func(e events.Event) bool { return e.Edge.From == 5 }, 1)
	states := hub.SubscribeTo(t.Context(), events.UserChanged, storage.Standing)
	for range 100_000 {
		hub.Publish(edge(2, 1))
	}
	hub.Publish(edge(5, 1), user(7), user(8), events.Event{Kind: events.Gap})
	equal(t, taken(from5), edge(5, 1), events.Event{Kind: events.Gap})
	equal(t, taken(states), user(7), user(8), events.Event{Kind: events.Gap})
}

// Who wants the posts of anybody is not asked about what else others do: there may be as many of them as there are connections. What is about
// its user and a post comes once.
func TestWhoWantsPostsIsAskedAboutNothingElse(t *testing.T) {
	hub, asked := events.NewHub(nil), 0
	post := func(author storage.UserID) events.Event {
		at := storage.PostAt{PostID: storage.PostID{Author: author, Number: 7}}
		return events.Event{Kind: events.PostChanged, Post: storage.ChangedPost{PostAt: at, News: storage.PostPublished}}
	}
	s := hub.SubscribePosts(t.Context(), func(events.Event) bool { asked++; return true }, 1)
	for range 1000 {
		hub.Publish(edge(2, 3), user(4))
	}
	hub.Publish(post(5), edge(1, 2), post(1))
	equal(t, taken(s), post(5), edge(1, 2), post(1))
	check.That(t, asked == 3, "it was asked about %d events", asked)
	s.Close()
	hub.Publish(post(5))
	equal(t, taken(s))
}

func TestSlowSubscribersAreDropped(t *testing.T) {
	hub := events.NewHub(nil)
	slow, quick := hub.Subscribe(t.Context(), 1), hub.Subscribe(t.Context(), 1)
	const sent = 1000
	for range sent { // Publish would hang here if it waited
		hub.Publish(edge(1, 2))
		equal(t, taken(quick), edge(1, 2))
	}
	n := 0
	for range slow.Events() { // ends because the subscription was closed
		n++
	}
	if n == 0 || n >= sent || !errors.Is(slow.Err(), events.ErrSlow) || quick.Err() != nil {
		t.Errorf("the slow one got %d events: %v; the quick one: %v", n, slow.Err(), quick.Err())
	}
	slow.Close()
	check.That(t, errors.Is(slow.Err(), events.ErrSlow), "closing it changed the reason to %v", slow.Err())
}

// A cache subscribes again and again as long as its process runs: of those subscriptions that were too slow nothing is kept.
func TestASlowSubscriptionIsNotKept(t *testing.T) {
	hub, kept := events.NewHub(nil), make(chan struct{})
	slow := hub.Subscribe(t.Context())
	runtime.AddCleanup(slow, func(kept chan struct{}) { close(kept) }, kept)
	for slow.Err() == nil {
		hub.Publish(edge(1, 2))
	}
	for range 100 {
		runtime.GC()
		select {
		case <-kept:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Error("it is kept until its context ends")
}

// TestEventsAboutTheSameAreOne: while one event waits, those that follow add nothing but the newest
// state.
func TestEventsAboutTheSameAreOne(t *testing.T) {
	hub := events.NewHub(nil)
	s := hub.SubscribeNewest(t.Context(), nil, 1)
	at := func(e events.Event, at storage.Micros) events.Event {
		e.Edge.UpdateTime = at
		return e
	}
	gap := events.Event{Kind: events.Gap}
	for i := range 1000 { // far more than fit into the queue
		hub.Publish(at(edge(1, 2), storage.Micros(1+i)), at(edge(2, 1), 5), user(1), gap)
	}
	hub.Publish(at(edge(1, 2), 7)) // this event is late
	waiting := taken(s)
	must.That(t, len(waiting) == 4 && s.Err() == nil, "%d events wait: %v", len(waiting), s.Err())
	for i, want := range []events.Event{at(edge(1, 2), 1000), at(edge(2, 1), 5), user(1), gap} {
		check.Equal(t, "the newest", s.Newest(waiting[i]), want)
	}
	hub.Publish(at(edge(1, 2), 1001), at(edge(1, 2), 1002))
	waiting = taken(s)
	check.That(t, len(waiting) == 1 && s.Newest(waiting[0]) == at(edge(1, 2), 1002), "after they were taken: %v", waiting)
}

func TestSubscriptionsEnd(t *testing.T) {
	hub := events.NewHub(nil)
	reason := errors.New("signed out")
	ctx, cancel := context.WithCancelCause(t.Context())
	byContext, byClose, byHub := hub.Subscribe(ctx, 1), hub.Subscribe(t.Context(), 1), hub.Subscribe(t.Context(), 1)

	ended := func(s *events.Subscription, want error) {
		t.Helper()
		select {
		case _, open := <-s.Events():
			check.That(t, !open && errors.Is(s.Err(), want), "open: %v, reason %v; want %v", open, s.Err(), want)
		case <-time.After(30 * time.Second):
			t.Errorf("not ended for %v", want)
		}
	}
	cancel(reason)
	ended(byContext, reason)
	byClose.Close()
	byClose.Close()
	ended(byClose, events.ErrClosed)
	hub.Close()
	ended(byHub, events.ErrClosed)
	ended(hub.Subscribe(t.Context(), 1), events.ErrClosed)
	hub.Publish(edge(1, 2)) // without subscribers
}

// TestHubUnderManyAtOnce does everything at the same time, for the race detector.
func TestHubUnderManyAtOnce(t *testing.T) {
	hub := events.NewHub(nil)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					hub.Publish(edge(1, 2), events.Event{Kind: events.Gap})
				}
			}
		})
	}
	var subscribers sync.WaitGroup
	for i := range 8 {
		subscribers.Go(func() {
			for n := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				s := hub.Subscribe(ctx, storage.UserID(i%3+1))
				<-s.Events()
				if n%2 == 0 {
					cancel()
				}
				s.Close()
				for range s.Events() {
				}
				cancel()
			}
		})
	}
	subscribers.Wait()
	close(stop)
	wg.Wait()
}
