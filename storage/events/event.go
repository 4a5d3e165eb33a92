// Package events reports what has changed: a [Hub] to the subscriptions and the caches of this
// gateway, a [Bus] to those of the others.
//
// Events are hints to look again, not the data itself: an event may come twice, or after a newer
// one about the same edge. No event is lost unnoticed: if some may be missing, every subscriber
// gets a [Gap].
package events

import "kith/storage"

// Kind says what an event is about.
type Kind uint8

// The kinds. Messages between gateways contain these numbers: new kinds go at the end.
const (
	// EdgeChanged: Edge is a row of following whose follower row has been applied.
	EdgeChanged Kind = iota
	// UserChanged: the profile of User changed.
	UserChanged
	// CountsChanged: the counts of User changed.
	CountsChanged
	// Gap: events may be missing. Caches forget what they know, subscriptions read again. It
	// concerns every subscriber.
	Gap
	// RequestChanged: Edge is a row of friend_request whose inbox row has been applied.
	RequestChanged
	// StateChanged: User was deactivated, has come back, or is being deleted.
	StateChanged
	// Corrected: a shared cache had old data of User until now, and events about User may be missing,
	// because a writer died before it could report. Caches that may have read from the shared cache
	// forget what they have of User, and subscriptions of User read again.
	Corrected
	// PostPublished: Post can be read.
	PostPublished
	// PostDeleted: Post is gone. Of it, only the author and the number count.
	PostDeleted
	// FavoriteChanged: Edge is a row of favorite whose inbox row has been applied.
	FavoriteChanged
	// PostChanged: Post was edited, or its number of comments changed. Of it, only the author and the
	// number count; the number 0 stands for all posts of the author.
	PostChanged
	// CommentAdded: Comment can be read.
	CommentAdded
	// RelationChanged: Edge is a row of relation whose inbox row has been applied.
	RelationChanged
)

// Event is one change.
type Event struct {
	Kind Kind
	Edge storage.Edge   // of an EdgeChanged, RequestChanged, FavoriteChanged or RelationChanged
	User storage.UserID // of a UserChanged, CountsChanged, StateChanged or Corrected
	Post storage.PostAt // of a PostPublished, PostDeleted or PostChanged

	Comment storage.CommentID // of a CommentAdded: it names the author of the post

	// Version is that of the counts of User since which a UserChanged or CountsChanged is true; 0: not known. It stays in
	// this process.
	Version int64
}

// Since returns the event of a user with the version of the counts since which it is true.
func (e Event) Since(version int64) Event {
	e.Version = version
	return e
}

// Row is the event of a row that is on both sides: EdgeChanged, RequestChanged, FavoriteChanged or RelationChanged, by
// the row's pair of tables.
func Row(r storage.Row) Event {
	switch r.Side.Truth() {
	case storage.Requests:
		return Event{Kind: RequestChanged, Edge: r.Edge}
	case storage.Favorites:
		return Event{Kind: FavoriteChanged, Edge: r.Edge}
	case storage.Relations:
		return Event{Kind: RelationChanged, Edge: r.Edge}
	}
	return Edge(r.Edge)
}

// Side is the table of the truth of the row that an EdgeChanged, RequestChanged, FavoriteChanged or RelationChanged is about.
func (e Event) Side() storage.Side {
	switch e.Kind {
	case RequestChanged:
		return storage.Requests
	case FavoriteChanged:
		return storage.Favorites
	case RelationChanged:
		return storage.Relations
	}
	return storage.Forward
}

// Edge is the event of an edge.
func Edge(e storage.Edge) Event { return Event{Kind: EdgeChanged, Edge: e} }

// User is the event of a profile.
func User(id storage.UserID) Event { return Event{Kind: UserChanged, User: id} }

// Counts is the event of a user's counts.
func Counts(id storage.UserID) Event { return Event{Kind: CountsChanged, User: id} }

// Published is the event of a new post.
func Published(p storage.PostAt) Event { return Event{Kind: PostPublished, Post: p} }

// Deleted is the event of a deleted post.
func Deleted(id storage.PostID) Event {
	return Event{Kind: PostDeleted, Post: storage.PostAt{PostID: id}}
}

// Changed is the event of a post that has changed, or of all posts of an author.
func Changed(id storage.PostID) Event {
	return Event{Kind: PostChanged, Post: storage.PostAt{PostID: id}}
}

// Commented is the event of a new comment.
func Commented(id storage.CommentID) Event { return Event{Kind: CommentAdded, Comment: id} }

// State is the event of a user's state.
func State(id storage.UserID) Event { return Event{Kind: StateChanged, User: id} }

// concerns returns the users an event is about; zero stands for none.
func (e Event) concerns() [2]storage.UserID {
	switch e.Kind {
	case EdgeChanged, RequestChanged, FavoriteChanged, RelationChanged:
		return [2]storage.UserID{e.Edge.From, e.Edge.To}
	case UserChanged, CountsChanged, StateChanged, Corrected:
		return [2]storage.UserID{e.User}
	case PostPublished, PostDeleted, PostChanged:
		return [2]storage.UserID{e.Post.Author}
	case CommentAdded:
		return [2]storage.UserID{e.Comment.Author}
	default:
		return [2]storage.UserID{}
	}
}

// about is the event reduced to what all events about the same edge or user share.
func (e Event) about() Event {
	return Event{Kind: e.Kind, Edge: storage.Edge{From: e.Edge.From, To: e.Edge.To, Post: e.Edge.Post}, User: e.User, Post: e.Post, Comment: e.Comment}
}
