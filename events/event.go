// Package events tells what has changed: to the subscriptions and the caches of
// this gateway by a [Hub], to those of the others by a [Bus].
//
// Events are hints to look again, not the data itself: one may come twice, or
// after a newer one about the same edge. None is lost without notice: where some
// may be missing, everybody gets a [Gap].
package events

import "kith/storage"

// Kind says what an event is about.
type Kind uint8

// The kinds.
const (
	// EdgeChanged: Edge is a forward row whose inverse side has been applied.
	EdgeChanged Kind = iota
	// UserChanged: the profile of User changed.
	UserChanged
	// CountsChanged: the counts of User changed.
	CountsChanged
	// Gap: events may be missing. Caches forget what they know, subscriptions read
	// again. It concerns everybody.
	Gap
)

// Event is one change.
type Event struct {
	Kind Kind
	Edge storage.Edge   // of an EdgeChanged
	User storage.UserID // of a UserChanged or CountsChanged
}

// Edge is the event of an edge.
func Edge(e storage.Edge) Event { return Event{Kind: EdgeChanged, Edge: e} }

// User is the event of a profile.
func User(id storage.UserID) Event { return Event{Kind: UserChanged, User: id} }

// Counts is the event of a user's counts.
func Counts(id storage.UserID) Event { return Event{Kind: CountsChanged, User: id} }

// concerns returns the users an event is about, zero where there is none.
func (e Event) concerns() [2]storage.UserID {
	switch e.Kind {
	case EdgeChanged:
		return [2]storage.UserID{e.Edge.From, e.Edge.To}
	case UserChanged, CountsChanged:
		return [2]storage.UserID{e.User}
	default:
		return [2]storage.UserID{}
	}
}
