package storagetest

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/must"
	"kith/storage"
)

// marks: what a user notes about followings.
type marks struct{ *harness }

func (s marks) WhatIsGivenIsChanged(t *testing.T) {
	pair := s.followed(t)
	remark := strings.Repeat("👩", storage.MaxRemarkLength)
	wantMissing(t, storage.MarkLookups.Read(t.Context(), s.store, pair), 1)
	for _, step := range []struct {
		change storage.MarkChange
		want   storage.EdgeMark
	}{
		{special(true), storage.EdgeMark{Special: true}},
		{remarked(remark), storage.EdgeMark{Special: true, Remark: remark}},
		{special(false), storage.EdgeMark{Remark: remark}},
		{remarked("Ада"), storage.EdgeMark{Remark: "Ада"}},
		{storage.MarkChange{Special: special(true).Special, Remark: remarked("both").Remark}, storage.EdgeMark{Special: true, Remark: "both"}},
		{remarked(""), storage.EdgeMark{Special: true}},
	} {
		s.mark(t, pair, step.change, step.want)
		wantEqual(t, "mark", found(t, storage.MarkLookups.Read(t.Context(), s.store, pair), 1)[0], step.want)
	}
}

func (s marks) OneWithNeitherIsRemoved(t *testing.T) {
	pair := s.followed(t)
	s.mark(t, pair, remarked("x"), storage.EdgeMark{Remark: "x"})
	s.mark(t, pair, remarked(""), storage.EdgeMark{})
	wantMissing(t, storage.MarkLookups.Read(t.Context(), s.store, pair), 1)
}

func (s marks) OnlyAFollowIsMarked(t *testing.T) {
	person := s.newUsers(t, 1)[0].ID
	ended, blocked, follower := s.id(), s.id(), s.id()
	s.apply(t, storage.Forward,
		edge(storage.Forward, person, ended, storage.None, at(1)),
		edge(storage.Forward, person, blocked, storage.Blocking, at(1)))
	s.apply(t, storage.Inverse, follow(storage.Inverse, person, follower, 1))
	for _, pair := range []storage.Pair{
		{From: person, To: s.id()}, {From: person, To: ended}, {From: person, To: blocked}, {From: person, To: follower}, {From: s.id(), To: person},
	} {
		got, changed, err := s.store.SetMark(t.Context(), pair, remarked("x"))
		wantIs(t, err, storage.ErrNoEdge)
		wantEqual(t, "changed", changed, false)
		wantEqual(t, "mark reported", got, storage.EdgeMark{})
		wantMissing(t, storage.MarkLookups.Read(t.Context(), s.store, pair), 1)
	}
}

func (s marks) TheVersionRisesWithAChange(t *testing.T) {
	pair := s.followed(t)
	row, before := s.edgeOf(t, storage.Forward, pair), s.countsOf(t, pair.From)
	for _, again := range []bool{false, true} {
		version := s.countsOf(t, pair.From).Version
		_, changed, err := s.store.SetMark(t.Context(), pair, remarked("x"))
		must.OK(t, err)
		wantEqual(t, "changed", changed, !again)
		wantEqual(t, "the version rose", s.countsOf(t, pair.From).Version > version, !again)
	}
	after := s.countsOf(t, pair.From)
	after.Version = before.Version
	wantEqual(t, "counts", after, before)
	wantEqual(t, "edge", s.edgeOf(t, storage.Forward, pair), row)
}

func (s marks) TheyGoWithTheFollow(t *testing.T) {
	for what, end := range map[string]func(storage.Pair){
		"unfollow": func(p storage.Pair) {
			s.change(t, p.From, storage.EdgeChange{To: p.To, Type: storage.None, At: at(50)})
		},
		"block": func(p storage.Pair) {
			s.change(t, p.From, storage.EdgeChange{To: p.To, Type: storage.Blocking, At: at(50)})
		},
		"late event": func(p storage.Pair) {
			s.apply(t, storage.Forward, edge(storage.Forward, p.From, p.To, storage.None, at(50)))
		},
		"block by the other": func(p storage.Pair) {
			s.apply(t, storage.Inverse, edge(storage.Inverse, p.From, p.To, storage.Blocking, at(50)))
		},
	} {
		t.Run(what, func(t *testing.T) {
			pair, kept := s.followed(t), s.followed(t)
			s.mark(t, pair, special(true), storage.EdgeMark{Special: true})
			s.mark(t, kept, special(true), storage.EdgeMark{Special: true})
			end(pair)
			wantMissing(t, storage.MarkLookups.Read(t.Context(), s.store, pair), 1)
			wantList(t, "specials", s.specialsOf(t, pair.From), nil)
			wantList(t, "specials of another", s.specialsOf(t, kept.From), []storage.UserID{kept.To})

			// The marks do not return with a new follow, which a block refuses.
			s.apply(t, storage.Forward, edge(storage.Forward, pair.From, pair.To, storage.Following, at(99)))
			if what == "block by the other" {
				wantMissing(t, storage.MarkLookups.Read(t.Context(), s.store, pair), 1)
			} else {
				wantEqual(t, "mark", found(t, storage.MarkLookups.Read(t.Context(), s.store, pair), 1)[0], storage.EdgeMark{FirstAt: at(1)})
			}
		})
	}
}

// However often the follow ends, and whatever is between: a block is no follow.
func (s marks) TheFirstTimeStays(t *testing.T) {
	pair := s.followed(t)
	wantMissing(t, storage.MarkLookups.Read(t.Context(), s.store, pair), 1)
	for i, kind := range []storage.EdgeType{storage.None, storage.Following, storage.Blocking, storage.None, storage.Following} {
		s.change(t, pair.From, storage.EdgeChange{To: pair.To, Type: kind, Ends: s.edgeOf(t, storage.Forward, pair).Type, At: at(10 * (i + 1))})
	}
	wantEqual(t, "mark", found(t, storage.MarkLookups.Read(t.Context(), s.store, pair), 1)[0], storage.EdgeMark{FirstAt: at(1)})
	s.mark(t, pair, remarked("x"), storage.EdgeMark{Remark: "x", FirstAt: at(1)})
	s.mark(t, pair, remarked(""), storage.EdgeMark{FirstAt: at(1)})
	wantEqual(t, "edge", s.edgeOf(t, storage.Forward, pair).UpdateTime, at(50))

	blocked := s.followed(t)
	other := storage.Pair{From: blocked.From, To: s.id()}
	s.change(t, other.From, storage.EdgeChange{To: other.To, Type: storage.Blocking, At: at(10)})
	s.change(t, other.From, storage.EdgeChange{To: other.To, Type: storage.None, Ends: storage.Blocking, At: at(20)})
	s.change(t, other.From, storage.EdgeChange{To: other.To, Type: storage.Following, At: at(30)})
	wantMissing(t, storage.MarkLookups.Read(t.Context(), s.store, other), 1)
}

func (s marks) ManyGoWithTheirFollows(t *testing.T) {
	const n = 1200 // a large write
	person := s.newUsers(t, 1)[0].ID
	for what, end := range map[string]func([]storage.UserID){
		"unfollow": func(to []storage.UserID) {
			batch := make([]storage.EdgeChange, len(to))
			for i, id := range to {
				batch[i] = storage.EdgeChange{To: id, Type: storage.None, At: at(50)}
			}
			s.change(t, person, batch...)
		},
		"late events": func(to []storage.UserID) {
			rows := make([]storage.Edge, len(to))
			for i, id := range to {
				rows[i] = edge(storage.Forward, person, id, storage.None, at(50))
			}
			s.apply(t, storage.Forward, rows...)
		},
	} {
		t.Run(what, func(t *testing.T) {
			to := s.ids(n)
			rows := make([]storage.Edge, n)
			for i, id := range to {
				rows[i] = follow(storage.Forward, person, id, 1)
			}
			s.apply(t, storage.Forward, rows...)
			marked := []storage.Pair{{From: person, To: to[0]}, {From: person, To: to[n/2]}, {From: person, To: to[n-1]}}
			for _, pair := range marked {
				s.mark(t, pair, remarked("x"), storage.EdgeMark{Remark: "x"})
			}
			kept := storage.Pair{From: person, To: to[1]}
			s.mark(t, kept, remarked("kept"), storage.EdgeMark{Remark: "kept"})
			end(append([]storage.UserID{to[0]}, to[2:]...))
			wantMissing(t, storage.MarkLookups.Read(t.Context(), s.store, marked...), len(marked))
			wantEqual(t, "another mark", found(t, storage.MarkLookups.Read(t.Context(), s.store, kept), 1)[0].Remark, "kept")
		})
	}
}

func (s marks) SpecialsAscend(t *testing.T) {
	users, to := s.newUsers(t, 3), s.ids(9)
	for i, id := range to {
		pair := storage.Pair{From: users[0].ID, To: id}
		s.apply(t, storage.Forward, follow(storage.Forward, pair.From, pair.To, 1))
		s.mark(t, pair, remarked("x"), storage.EdgeMark{Remark: "x"})
		if i > 0 {
			s.mark(t, pair, special(true), storage.EdgeMark{Special: true, Remark: "x"})
		}
	}
	other := storage.Pair{From: users[1].ID, To: to[0]}
	s.apply(t, storage.Forward, follow(storage.Forward, other.From, other.To, 1))
	s.mark(t, other, special(true), storage.EdgeMark{Special: true})

	lists := found(t, storage.SpecialLookups.Read(t.Context(), s.store, users[1].ID, users[2].ID, users[0].ID, users[1].ID), 4)
	wantList(t, "specials", lists[0], to[:1])
	wantList(t, "specials of one without", lists[1], nil)
	wantList(t, "specials of one with many", lists[2], slices.Sorted(slices.Values(to[1:])))
	wantList(t, "specials again", lists[3], to[:1])
}

// If several are made at once, as many succeed as the limit has room for.
func (s marks) TheLimitOfSpecialsHolds(t *testing.T) {
	const room = 3
	person := s.newUsers(t, 1)[0].ID
	to := s.ids(storage.MaxSpecials + workers)
	s.apply(t, storage.Forward, storage.Each(to, func(id storage.UserID) storage.Edge { return follow(storage.Forward, person, id, 1) })...)
	var specials []storage.Annotation
	for _, id := range to[:storage.MaxSpecials-room] {
		specials = append(specials, storage.Annotation{Pair: storage.Pair{From: person, To: id}, Special: true})
	}
	beside(s).add(t, storage.AnnotationMark, specials...)
	var through atomic.Int32
	together(func(worker int) {
		pair := storage.Pair{From: person, To: to[storage.MaxSpecials+worker]}
		switch _, _, err := s.store.SetMark(t.Context(), pair, special(true)); err {
		case nil:
			through.Add(1)
		default:
			wantIs(t, err, storage.ErrLimitReached)
		}
	})
	wantEqual(t, "specials that went through", through.Load(), room)
	wantEqual(t, "specials", len(s.specialsOf(t, person)), storage.MaxSpecials)

	first, another := storage.Pair{From: person, To: to[0]}, storage.Pair{From: person, To: to[storage.MaxSpecials-1]}
	s.mark(t, another, remarked("x"), storage.EdgeMark{Remark: "x"})
	s.mark(t, first, remarked("x"), storage.EdgeMark{Special: true, Remark: "x"})
	_, _, err := s.store.SetMark(t.Context(), another, special(true))
	wantIs(t, err, storage.ErrLimitReached)
	s.mark(t, first, special(false), storage.EdgeMark{Remark: "x"})
	s.mark(t, another, special(true), storage.EdgeMark{Special: true, Remark: "x"})
}

// followed makes a user and a follow by this user.
func (s marks) followed(t *testing.T) storage.Pair {
	t.Helper()
	pair := storage.Pair{From: s.newUsers(t, 1)[0].ID, To: s.id()}
	s.apply(t, storage.Forward, follow(storage.Forward, pair.From, pair.To, 1))
	return pair
}

// mark changes a mark that still has another value.
func (h *harness) mark(t *testing.T, pair storage.Pair, change storage.MarkChange, want storage.EdgeMark) {
	t.Helper()
	got, changed, err := h.store.SetMark(t.Context(), pair, change)
	must.OK(t, err)
	wantEqual(t, "mark reported", got, want)
	wantEqual(t, "changed", changed, true)
}

func (h *harness) specialsOf(t *testing.T, user storage.UserID) []storage.UserID {
	t.Helper()
	return found(t, storage.SpecialLookups.Read(t.Context(), h.store, user), 1)[0]
}

func special(is bool) storage.MarkChange      { return storage.MarkChange{Special: &is} }
func remarked(text string) storage.MarkChange { return storage.MarkChange{Remark: &text} }

// messages: the texts that are sent with requests.
type messages struct{ *harness }

func (s messages) OnlyPendingRequestsHaveThem(t *testing.T) {
	text := strings.Repeat("友", storage.MaxMessageLength)
	for _, end := range []storage.EdgeType{storage.Accepted, storage.Declined, storage.Cancelled} {
		users := s.newUsers(t, 2)
		request := storage.Pair{From: users[0].ID, To: users[1].ID}
		back := storage.Pair{From: request.To, To: request.From}
		s.act(t, request, storage.EdgeChange{Type: storage.Pending, At: at(1), Message: text})
		results := storage.MessageLookups.Read(t.Context(), s.store, back, request, request)
		wantFound(t, results, false, true, true)
		wantEqual(t, "message", results[1].Value, text)
		s.act(t, request, storage.EdgeChange{Type: end, At: at(2)})
		wantMissing(t, storage.MessageLookups.Read(t.Context(), s.store, request), 1)
	}
}

func (s messages) ARequestWithoutOneHasNone(t *testing.T) {
	users := s.newUsers(t, 2)
	request := storage.Pair{From: users[0].ID, To: users[1].ID}
	s.act(t, request, storage.EdgeChange{Type: storage.Pending, At: at(1)})
	wantMissing(t, storage.MessageLookups.Read(t.Context(), s.store, request), 1)

	// Nor does it keep the message of the request before it.
	s.act(t, request, storage.EdgeChange{Type: storage.Cancelled, At: at(2)})
	s.act(t, request, storage.EdgeChange{Type: storage.Pending, At: at(3), Message: "hello"})
	s.act(t, request, storage.EdgeChange{Type: storage.Cancelled, At: at(4)})
	s.act(t, request, storage.EdgeChange{Type: storage.Pending, At: at(5)})
	wantMissing(t, storage.MessageLookups.Read(t.Context(), s.store, request), 1)
}

// An event may also end a request.
func (s messages) TheyGoWithTheRequest(t *testing.T) {
	users := s.newUsers(t, 2)
	request := storage.Pair{From: users[0].ID, To: users[1].ID}
	s.act(t, request, storage.EdgeChange{Type: storage.Pending, At: at(1), Message: "hello"})
	s.apply(t, storage.Requests, storage.Edge{From: request.From, To: request.To, Type: storage.None, UpdateTime: at(2)})
	wantMissing(t, storage.MessageLookups.Read(t.Context(), s.store, request), 1)
}

// act changes a request by one act, which must have an effect.
func (s messages) act(t *testing.T, request storage.Pair, change storage.EdgeChange) {
	t.Helper()
	o := storage.ChangeOptions{TTL: storage.DefaultRequestTTL, Pause: time.Hour}
	got, err := Request(t.Context(), s.store, request, change, o)
	must.OK(t, err)
	wantEqual(t, "changed", got.Changed, true)
}
