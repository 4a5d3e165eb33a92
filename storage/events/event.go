// Package events reports what has changed: a [Hub] to the subscriptions and the caches of this
// gateway, a [Bus] to those of the others.
//
// A change may come twice, or after a newer one about the same. None is lost unnoticed: if some may be missing, every
// subscriber gets a [Gap].
package events

import "kith/storage"

// Kind says what an event is about.
type Kind uint8

// The kinds are the parts of a [storage.Change]. Messages between gateways contain these numbers: new kinds go at the end.
const (
	// RowChanged: Row was written. If its side is an inverse one, it is on both sides.
	RowChanged Kind = iota
	// UserChanged: something about User has changed.
	UserChanged
	// PostChanged: something has happened to Post.
	PostChanged
	// Gap: events may be missing. Caches forget what they know, subscriptions read again. It
	// concerns every subscriber. Those of a user get one if changes of this user were missed.
	Gap
)

// Event is a part of a change.
type Event struct {
	Kind Kind
	storage.Row
	User *storage.UserChange
	Post storage.ChangedPost
}

// Of are the parts of a change.
func Of(c storage.Change) []Event {
	list := make([]Event, 0, len(c.Rows)+len(c.Users)+len(c.Posts)+1)
	if c.Gap {
		list = append(list, Event{Kind: Gap})
	}
	for i := range c.Users {
		list = append(list, Event{Kind: UserChanged, User: &c.Users[i]})
	}
	for _, r := range c.Rows {
		list = append(list, Event{Row: r})
	}
	for _, p := range c.Posts {
		list = append(list, Event{Kind: PostChanged, Post: p})
	}
	return list
}

// AddTo adds the part to a change.
func (e Event) AddTo(c *storage.Change) {
	switch e.Kind {
	case RowChanged:
		c.Rows = append(c.Rows, e.Row)
	case UserChanged:
		c.Users = append(c.Users, *e.User)
	case PostChanged:
		c.Posts = append(c.Posts, e.Post)
	case Gap:
		*c = storage.Change{Gap: true} // what came before it is forgotten with everything else
	}
}

// Has reports whether the event says that an aspect of a user has changed.
func (e Event) Has(what storage.Aspects) bool { return e.User != nil && e.User.What.Has(what) }

// concerns returns the users an event is about; zero stands for none.
func (e Event) concerns() [2]storage.UserID {
	if e.User != nil {
		return [2]storage.UserID{e.User.User}
	}
	return [2]storage.UserID{e.Edge.From + e.Post.Author, e.Edge.To}
}

// about is the event reduced to what all events about the same row, user or post share.
func (e Event) about() Event {
	users := e.concerns()
	return Event{Kind: e.Kind, Row: storage.Row{Side: e.Side, Edge: storage.Edge{From: users[0], To: users[1], Item: e.Edge.Item}}, Post: e.Post}
}
