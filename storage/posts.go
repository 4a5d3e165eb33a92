package storage

import (
	"cmp"
	"context"
)

// PostID names a post: its author, on whose shard it is, and its number, which is unique in the
// store.
type PostID struct {
	Author UserID
	Number int64
}

// Post is a post with its counts, at one moment. A deleted post does not count as a post.
type Post struct {
	PostID
	Text      string  // at most MaxPostLength characters
	Media     []Media // at most MaxMedia
	CreatedAt Micros
	EditedAt  Micros // 0: never
	Counts    PostCounts

	Attributes Attributes
}

// PostCounts is one row of `post_counts`.
type PostCounts struct {
	Comments  int64
	Favorites int64
	Version   int64 // rises with every change of the post or of its counts
}

// Media names a file that belongs to a post. The file itself is kept elsewhere. Stores keep it as JSON.
type Media struct {
	Name string    `json:"name"` // at most MaxMediaNameLength characters
	URL  string    `json:"url"`  // at most MaxMediaURLLength characters
	Kind MediaKind `json:"kind"` // what the file is
}

// MediaKind says what a file is. Stores keep the numbers.
type MediaKind uint8

const (
	Image MediaKind = 1
	Video MediaKind = 2
	Audio MediaKind = 3
	Cover MediaKind = 4 // the picture that stands for a video until it plays
)

// Comment is what a user has written below a post.
type Comment struct {
	CommentID
	Post      int64 // the number of the post, whose author is that of the id
	By        UserID
	Key       string // as of a [PostRow], of By for this post; look-ups leave it out
	Text      string // at most MaxCommentLength characters
	CreatedAt Micros
}

// On is the post that it is on.
func (c Comment) On() PostID { return PostID{c.Author, c.Post} }

// CommentID names a comment. It is stored with its post, on the shard of the post's author.
type CommentID struct {
	Author UserID // of the post
	Number int64
}

// Limits of posts and comments. Lengths are in characters.
const (
	MaxPostLength      = 2000
	MaxCommentLength   = 500
	MaxMedia           = 9
	MaxMediaNameLength = 100
	MaxMediaURLLength  = 500
	MaxClientKeyLength = 64
)

// Place is where a post or a comment is in a list that runs newest first: by CreatedAt descending,
// then by its number descending. It stays valid after its row is gone.
type Place struct {
	CreatedAt Micros
	Number    int64
}

// Compare orders places as lists run, newest first: negative when m comes before n in a list.
func (m Place) Compare(n Place) int {
	return cmp.Or(cmp.Compare(n.CreatedAt, m.CreatedAt), cmp.Compare(n.Number, m.Number))
}

// Place is where the post is in lists.
func (p Post) Place() Place { return Place{p.CreatedAt, p.Number} }

// Place is where the comment is in lists.
func (c Comment) Place() Place { return Place{c.CreatedAt, c.Number} }

// PlaceQuery asks for a range of a list that runs newest first. It is comparable, so that it can be a loader's key.
type PlaceQuery struct {
	Of    PostID // whose list it is: a post's or, without a Number, a user's
	After Place  // only what is strictly behind it (older), unless zero
	Limit int    // how many at most, ≥ 1
}

// Kinds of look-ups of posts and comments.
var (
	// PostLookups reads posts by id, each as of one moment; their versions are their own.
	PostLookups = NewKind[PostID, Post]("posts", nil)

	// PostPageLookups reads a range of each author's posts. Every query is Found.
	PostPageLookups = NewKind[PlaceQuery, []Post]("posts.pages", nil)

	// LatestPostLookups reads a range of the posts of all authors: a query names none. It asks every shard.
	LatestPostLookups = NewKind[PlaceQuery, []Post]("posts.latest", nil)

	// RecentPostLookups reads where posts of one shard are in time, newest first and not older than Until, without their texts. A post
	// whose bucket is moving may be on two shards.
	RecentPostLookups = NewKind[ShardQuery[Place], []PostAt]("posts.recent", nil)

	// LastPostLookups reads when an author published the newest post up to a time. If there is none, it is not Found.
	LastPostLookups = NewKind[LastQuery, Micros]("posts.last", nil)

	// CommentLookups reads comments by id. A comment on a post that has been deleted is not Found.
	CommentLookups = NewKind[CommentID, Comment]("comments", nil)

	// CommentPageLookups reads a range of each post's comments. Callers have read the post: comments on
	// deleted posts may still be listed. Every query is Found.
	CommentPageLookups = NewKind[PlaceQuery, []Comment]("comments.pages", nil)
)

// A PostRow is a post as it is published, and as a store keeps it. A deleted post keeps its row, without text, media and attributes, so
// that the key stays taken.
type PostRow struct {
	PostID
	Key   string // the author's client calls it so: printable ASCII, 1 to MaxClientKeyLength
	Text  string
	Media []Media
	At    Micros

	Attributes Attributes

	EditedAt Micros // 0: never
	Deleted  bool
}

// PostChange holds the new values; nil leaves a value as it is.
type PostChange struct {
	Text       *string
	Media      *[]Media
	Attributes AttributeChange
}

// postWriter writes posts and comments. Every change of a post, and of its comments, raises the post's version. To publish or delete one raises
// the author's, too.
type postWriter interface {
	// Publish makes a post and counts it with its author. If the author has published with the key
	// before, Publish changes nothing and returns that post and false; [ErrPostUnknown] if it has
	// been deleted since. [ErrUserUnknown] if the author does not exist or is being deleted.
	Publish(ctx context.Context, post PostRow) (p Post, published bool, err error)

	// EditPost changes the given values and sets EditedAt, and returns the post as it is afterwards.
	// If the values are what they were, nothing changes. [ErrPostUnknown], [ErrAttributesTooLong].
	EditPost(ctx context.Context, id PostID, change PostChange, at Micros) (p Post, changed bool, err error)

	// DeletePost permanently deletes a post with its text, media and attributes, and no longer counts it. If the
	// post does not exist, nothing changes.
	DeletePost(ctx context.Context, id PostID) (changed bool, err error)

	// AddComment writes a comment and counts it with its post. If the same user has commented on the
	// post with the key before, AddComment changes nothing and returns that comment and false.
	// [ErrPostUnknown] if there is no such post. [ErrForbidden] if, on the shard of the post's author,
	// one of the two blocks the other.
	AddComment(ctx context.Context, comment Comment) (c Comment, added bool, err error)

	// DeleteComment permanently deletes a comment, no longer counts it, and returns its post. Nothing changes, and the
	// post is zero, if the comment does not exist, or if by is neither the user who wrote it nor the author of the post:
	// to say which of the two would tell of comments that by may not see.
	DeleteComment(ctx context.Context, id CommentID, by UserID) (on PostID, err error)
}

// PostAt is a post and when it was published: what home feeds are made of before their posts are
// read.
type PostAt struct {
	PostID
	CreatedAt Micros
}

// Place is where the post is in lists.
func (p PostAt) Place() Place { return Place{p.CreatedAt, p.Number} }

// At is the post without the values that can be changed.
func (p Post) At() PostAt { return PostAt{p.PostID, p.CreatedAt} }

// LastQuery asks for the last post of an author up to a time.
type LastQuery struct {
	Author UserID
	UpTo   Micros
}

// Of asks for the same of authors.
func (q LastQuery) Of(authors []UserID) []LastQuery {
	return Each(authors, func(id UserID) LastQuery { return LastQuery{id, q.UpTo} })
}

// Compare orders posts by author, then by number.
func (p PostID) Compare(q PostID) int {
	return cmp.Or(cmp.Compare(p.Author, q.Author), cmp.Compare(p.Number, q.Number))
}
