package storage

import (
	"cmp"
	"context"
)

// A PostRow is a post as a store keeps it, with the key of its author's client. A deleted post keeps
// its row, without text and media, so that the key stays taken.
type PostRow struct {
	NewPost
	EditedAt Micros // 0: never
	Deleted  bool
}

// Compare orders posts by author, then by number.
func (p PostID) Compare(q PostID) int {
	return cmp.Or(cmp.Compare(p.Author, q.Author), cmp.Compare(p.Number, q.Number))
}

// ID names the comment.
func (c NewComment) ID() CommentID { return CommentID{Author: c.Post.Author, Number: c.Number} }

// Compare orders comments by the author of the post, then by number.
func (c CommentID) Compare(d CommentID) int { return PostID(c).Compare(PostID(d)) }

// PostRestorer writes posts and comments as they were elsewhere, for imports. Rows of one shard are
// written in several transactions: after an error some may have been written, and calling it again is
// harmless.
type PostRestorer interface {
	// RestorePosts writes those posts whose ids do not exist yet. Without an Err, the Value reports
	// whether the post was written. A post is not Found if its author does not exist. [ErrKeyTaken]
	// if the author has another post with the key. Posts that are not deleted are counted with their
	// authors, whose versions rise; no user becomes active.
	RestorePosts(ctx context.Context, posts []PostRow) []Result[bool]

	// RestoreComments writes those comments whose ids do not exist yet, and counts them with their
	// posts, whose versions rise. A comment is not Found if its post does not exist, or has been
	// deleted. [ErrKeyTaken] if its user has another comment with the key on the post. Blocks do
	// not prevent it, and whether the user exists is not checked.
	RestoreComments(ctx context.Context, comments []NewComment) []Result[bool]
}
