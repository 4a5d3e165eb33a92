package events

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"kith/storage"
)

// Reasons why a subscription ended, besides its context's.
var (
	// ErrSlow: the subscriber did not take its events in time.
	ErrSlow = errors.New("subscriber is too slow")
	// ErrClosed: the subscriber or the hub was closed.
	ErrClosed = errors.New("subscription is closed")
)

// How many events wait for a subscriber, 104 bytes each. One more ends the subscription: a publisher
// does not wait for subscribers.
const (
	buffered    = 128
	bufferedAll = 1 << 14 // for a subscriber to everything, such as a cache; there are few of these
)

// Hub hands events on to the subscribers within one gateway.
type Hub struct {
	metrics *Metrics

	mu      sync.RWMutex
	closed  bool
	members map[*Subscription]struct{}
	byUser  map[storage.UserID]map[*Subscription]struct{}
	all     [Gap]map[*Subscription]struct{} // by kind, those to whatever it is about
}

// NewHub makes a hub. Metrics may be nil.
func NewHub(metrics *Metrics) *Hub {
	h := &Hub{
		metrics: cmp.Or(metrics, NewMetrics(nil)),
		members: make(map[*Subscription]struct{}),
		byUser:  make(map[storage.UserID]map[*Subscription]struct{}),
	}
	for kind := range h.all {
		h.all[kind] = make(map[*Subscription]struct{})
	}
	return h
}

// Subscribe starts a subscription to what concerns any of the users, or to
// everything if none is named. It ends with the context.
func (h *Hub) Subscribe(ctx context.Context, users ...storage.UserID) *Subscription {
	if len(users) == 0 {
		return h.start(ctx, &Subscription{kinds: []Kind{RowChanged, UserChanged, PostChanged}, events: make(chan Event, bufferedAll)})
	}
	return h.start(ctx, &Subscription{users: users, events: make(chan Event, buffered)})
}

// SubscribeTo subscribes to all events of a kind, of users only to those of some aspects: others take no room in the buffer. Gaps always
// pass.
func (h *Hub) SubscribeTo(ctx context.Context, kind Kind, what storage.Aspects) *Subscription {
	keep := func(e Event) bool { return e.User == nil || e.Has(what) }
	return h.start(ctx, &Subscription{kinds: []Kind{kind}, keep: keep, events: make(chan Event, bufferedAll)})
}

// SubscribeNewest subscribes as Subscribe does, but only to the events for which keep is true, and to the latest state of each
// thing: while an event about an edge, a user, or a gap waits, others about the same are not added. A receiver passes each event
// to [Subscription.Newest]. Gaps always pass. Keep must be quick and must not call the hub.
func (h *Hub) SubscribeNewest(ctx context.Context, keep func(Event) bool, users ...storage.UserID) *Subscription {
	return h.start(ctx, &Subscription{users: users, keep: keep, events: make(chan Event, buffered), waiting: make(map[Event]Event)})
}

// SubscribePosts is SubscribeNewest for who wants what happens to the posts of anybody as well.
func (h *Hub) SubscribePosts(ctx context.Context, keep func(Event) bool, users ...storage.UserID) *Subscription {
	return h.start(ctx, &Subscription{kinds: []Kind{PostChanged}, users: users, keep: keep, events: make(chan Event, buffered), waiting: make(map[Event]Event)})
}

func (h *Hub) start(ctx context.Context, s *Subscription) *Subscription {
	s.hub = h
	s.release = context.AfterFunc(ctx, func() { h.end(s, context.Cause(ctx)) })
	if !h.add(s) {
		s.Close()
	}
	return s
}

// Publish passes events on in their order, once each, to all subscribers they concern. It does not
// wait.
func (h *Hub) Publish(list ...Event) {
	var slow []*Subscription
	h.mu.RLock()
	for _, e := range list {
		slow = h.publish(e, slow)
	}
	h.mu.RUnlock()
	for _, s := range slow {
		h.metrics.slow.Inc()
		s.Close() // otherwise its context, which may last as long as the process, would keep it with its buffer
	}
}

// publish appends to slow the subscriptions that it dropped.
func (h *Hub) publish(e Event, slow []*Subscription) []*Subscription {
	offer := func(s *Subscription) {
		if (e.Kind == Gap || s.keep == nil || s.keep(e)) && !s.offer(e) {
			slow = append(slow, s)
		}
	}
	if e.Kind == Gap {
		for s := range h.members {
			offer(s)
		}
		return slow
	}
	all, users := h.all[e.Kind], e.concerns()
	for s := range all {
		offer(s)
	}
	if e.Has(storage.Missed) {
		e = Event{Kind: Gap}
	}
	first := h.byUser[users[0]]
	for i := range users {
		for s := range h.byUser[users[i]] {
			_, once := all[s]
			if _, twice := first[s]; !once && (i == 0 || !twice) {
				offer(s)
			}
		}
	}
	return slow
}

// Close ends every subscription, now and in future.
func (h *Hub) Close() {
	h.mu.Lock()
	members := h.members
	h.closed, h.members = true, nil
	clear(h.byUser)
	clear(h.all[:])
	h.mu.Unlock()
	for s := range members {
		s.end(ErrClosed)
	}
	h.metrics.subscribers.Sub(float64(len(members)))
}

func (h *Hub) add(s *Subscription) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || s.Err() != nil { // its context may have ended already
		return false
	}
	h.members[s] = struct{}{}
	for _, kind := range s.kinds {
		h.all[kind][s] = struct{}{}
	}
	for _, id := range s.users {
		if h.byUser[id] == nil {
			h.byUser[id] = make(map[*Subscription]struct{})
		}
		h.byUser[id][s] = struct{}{}
	}
	h.metrics.subscribers.Inc()
	return true
}

// end ends a subscription for a reason, unless it has already ended.
func (h *Hub) end(s *Subscription, reason error) {
	s.end(reason)
	h.remove(s)
}

func (h *Hub) remove(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, member := h.members[s]; !member {
		return
	}
	delete(h.members, s)
	for _, kind := range s.kinds {
		delete(h.all[kind], s)
	}
	for _, id := range s.users {
		delete(h.byUser[id], s)
		if len(h.byUser[id]) == 0 {
			delete(h.byUser, id)
		}
	}
	h.metrics.subscribers.Dec()
}

// Subscription is what one subscriber gets.
type Subscription struct {
	hub     *Hub
	users   []storage.UserID
	kinds   []Kind // of which it gets the events about anybody
	keep    func(Event) bool
	release func() bool // releases the context

	mu      sync.Mutex // guards what follows, and sending against closing
	events  chan Event
	waiting map[Event]Event // the newest of the waiting events, by what they are about; nil: all events wait
	err     error
}

// Events is closed when the subscription ends; events that were published before that can still be
// received.
func (s *Subscription) Events() <-chan Event { return s.events }

// Err says why the subscription ended; nil while it lasts.
func (s *Subscription) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {
	s.release()
	s.hub.end(s, ErrClosed)
}

// Newest returns the newest known event about the same thing as an event that was received from a
// subscription made by [Hub.SubscribeNewest]. After that, the next event about it is added again.
func (s *Subscription) Newest(e Event) Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	if newest, ok := s.waiting[e.about()]; ok {
		delete(s.waiting, e.about())
		return newest
	}
	return e
}

// offer hands an event over if there is room; otherwise the subscription ends and offer returns
// false.
func (s *Subscription) offer(e Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return true // it is being ended
	}
	if older, ok := s.waiting[e.about()]; ok {
		if e.Edge.UpdateTime >= older.Edge.UpdateTime {
			s.waiting[e.about()] = e
		}
		s.hub.metrics.merged.Inc()
		return true
	}
	select {
	case s.events <- e:
		if s.waiting != nil {
			s.waiting[e.about()] = e
		}
		s.hub.metrics.delivered.Inc()
		return true
	default:
		s.err = ErrSlow
		close(s.events)
		return false
	}
}

func (s *Subscription) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = reason
		close(s.events)
	}
}
