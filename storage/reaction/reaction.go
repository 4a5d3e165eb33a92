// Package reaction is the contract by which is read what others have done that concerns a user, and is about a post.
package reaction

import (
	"cmp"

	"kith/storage"
)

// Reaction is what a user has done that another is told of, and that is about a post.
type Reaction struct {
	storage.Place // the comment's; a favorite or mention is at its time, and at the number of the post
	By            storage.UserID
	Post          int64 // its number
}

// Kind says what reactions are.
type Kind uint8

const (
	Favorites Kind = iota // of posts of the user
	Comments              // on posts of the user
	Mentions              // of the user, in posts of others
)

// Query asks for a range of what concerns a user, newest first: in the order of [Reaction.Compare]. It is comparable.
type Query struct {
	User  storage.UserID
	Kind  Kind
	After Reaction // only those strictly behind its place and user (older), unless zero
	Limit int      // how many at most, ≥ 1
}

// Lookups reads a range of what others, and the user itself, have done. Reactions to posts that have been deleted are listed like
// the rest. Every query is Found.
var Lookups = storage.NewKind[Query, []Reaction]("reactions", nil)

// Compare orders reactions of one kind as lists run: negative when r comes before o. Several users may favorite a post at one time.
func (r Reaction) Compare(o Reaction) int {
	return cmp.Or(r.Place.Compare(o.Place), cmp.Compare(o.By, r.By))
}
