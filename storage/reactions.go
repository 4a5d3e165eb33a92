package storage

import "cmp"

// Reaction is what a user has done that another is told of, and that is about a post.
type Reaction struct {
	Place // the comment's; a favorite or mention is at its time, and at the number of the post
	By    UserID
	Post  int64 // its number
}

// ReactionKind says what reactions are.
type ReactionKind uint8

const (
	PostFavorites ReactionKind = iota // of posts of the user
	PostComments                      // on posts of the user
	PostMentions                      // of the user, in posts of others
)

// ReactionsQuery asks for a range of what concerns a user, newest first: in the order of [Reaction.Compare]. It is comparable.
type ReactionsQuery struct {
	User  UserID
	Kind  ReactionKind
	After Reaction // only those strictly behind its place and user (older), unless zero
	Limit int      // how many at most, ≥ 1
}

// ReactionLookups reads a range of what others, and the user itself, have done. Reactions to posts that have been deleted are listed like
// the rest. Every query is Found.
var ReactionLookups = newLookupKind[ReactionsQuery, []Reaction]("reactions", nil)

// Compare orders reactions of one kind as lists run: negative when r comes before o. Several users may favorite a post at one time.
func (r Reaction) Compare(o Reaction) int {
	return cmp.Or(r.Place.Compare(o.Place), cmp.Compare(o.By, r.By))
}
