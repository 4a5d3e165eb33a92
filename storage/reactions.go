package storage

import "cmp"

// Reaction is a favorite of a post, or a comment on it, as the post's author is told of it.
type Reaction struct {
	Place // the comment's; a favorite is at its time, and at the number of the post
	By    UserID
	Post  int64 // its number
}

// ReactionsQuery asks for a range of the favorites of an author's posts, or of the comments on them, newest first: in the order of
// [Reaction.Compare]. It is comparable.
type ReactionsQuery struct {
	Author   UserID
	Comments bool     // not favorites
	After    Reaction // only those strictly behind its place and user (older), unless zero
	Limit    int      // how many at most, ≥ 1
}

// ReactionLookups reads a range of what others, and the author itself, have made of each author's posts. Those to posts that have been
// deleted are listed like others. Every query is Found.
var ReactionLookups = NewLookupKind[ReactionsQuery, []Reaction]("reactions", nil)

// Compare orders reactions of one kind as lists run: negative when r comes before o. Several users may favorite a post at one time.
func (r Reaction) Compare(o Reaction) int {
	return cmp.Or(r.Place.Compare(o.Place), cmp.Compare(o.By, r.By))
}
