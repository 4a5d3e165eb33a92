package model

import (
	"time"

	"kith/storage"
)

// Page is what all connections have.
type Page[E, N any] struct {
	Edges    []*E
	Nodes    []*N
	PageInfo *PageInfo
}

// Plain is the page of any connection.
func (p *Page[E, N]) Plain() *Page[E, N] { return p }

// CountedPage is what those have besides that know how long their list is.
type CountedPage[E, N any] struct {
	Page[E, N]
	Complete bool
	Total    storage.Result[int64]
}

// TotalCount fails when the shard of the list's owner did not answer.
func (p *CountedPage[E, N]) TotalCount() (int32, error) { return CountOf(p.Total.Value), p.Total.Err }

// ActivityConnection is a page of what has happened to a user.
type ActivityConnection struct {
	Page[ActivityEdge, Activity]
	Unseen *UnseenActivity
}

// CommentConnection is a page of comments.
type CommentConnection struct{ Page[CommentEdge, Comment] }

// FavoriteConnection is a page of posts, with the times at which they became favorites.
type FavoriteConnection struct{ Page[FavoriteEdge, Post] }

// FeedConnection is a page of a home feed.
type FeedConnection struct {
	Page[PostEdge, Post]
	Complete          bool
	NewerThan, Unseen *NewerPosts
}

// ListConnection is a page of lists.
type ListConnection struct{ Page[ListEdge, List] }

// ModerationConnection is a page of the moderation log.
type ModerationConnection struct {
	Page[ModerationEdge, ModerationEntry]
}

// PostConnection is a page of posts.
type PostConnection struct{ Page[PostEdge, Post] }

// RelationConnection is a page of users in a declared relation.
type RelationConnection struct {
	CountedPage[RelationEdge, User]
}

// RequestConnection is a page of requests that wait.
type RequestConnection struct {
	CountedPage[RequestEdge, Request]
}

// SuggestionConnection is a page of whom one might follow.
type SuggestionConnection struct {
	Page[SuggestionEdge, User]
	Complete bool
	Excluded *SuggestionExclusions
}

// UserConnection is a page of users, whatever the schema calls it.
type UserConnection struct{ CountedPage[UserEdge, User] }

// RelationEdge is an edge of a declared kind.
type RelationEdge struct {
	Cursor string
	Node   *User
	EndID  string
	Since  time.Time
	Detail storage.Result[storage.Detail] // from the shard of the user whom the edge leaves
}

// Until is nil for never.
func (e *RelationEdge) Until() (*time.Time, error) {
	return moment(e.Detail.Value.EndsAt), e.Detail.Err
}

// Attributes are those beside the edge.
func (e *RelationEdge) Attributes() (*storage.Attributes, error) {
	return &e.Detail.Value.Attributes, e.Detail.Err
}

// UserEdge is a user on a page, with the time since when it is in the list; zero if the schema tells none.
type UserEdge struct {
	Cursor string
	Node   *User
	Since  time.Time
}

// SuggestionEdge is one suggestion.
type SuggestionEdge struct {
	Cursor      string
	Node        *User
	Score       float64
	SharedCount int32
	Reason      SuggestionReason

	Via []storage.UserID // the most that any `via` below asks for
}
