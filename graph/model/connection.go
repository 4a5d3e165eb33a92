package model

import (
	"time"

	"kith/storage"
)

// UserPage is what all pages of users have, whatever their edges say.
type UserPage struct {
	Nodes    []*User
	PageInfo *PageInfo
	Complete bool
	Total    storage.Result[int64]
}

// TotalCount fails when the shard of the list's owner did not answer.
func (p *UserPage) TotalCount() (int32, error) { return int32(p.Total.Value), p.Total.Err }

// FollowConnection is a page of a list of follows.
type FollowConnection struct {
	UserPage
	Edges []*FollowEdge
}

// MatchConnection is a page of friends.
type MatchConnection struct {
	UserPage
	Edges []*MatchEdge
}

// BlockConnection is a page of blocked users.
type BlockConnection struct {
	UserPage
	Edges []*BlockEdge
}

// FollowRequestConnection is a page of users who wait, or for whom one waits.
type FollowRequestConnection struct {
	UserPage
	Edges []*FollowRequestEdge
}

// RelationConnection is a page of edges of a declared kind.
type RelationConnection struct {
	UserPage
	Edges []*RelationEdge
}

// RelationEdge is one of them.
type RelationEdge struct {
	Cursor string
	Node   *User
	EndID  string
	Since  time.Time
	Detail storage.Detail
}

// Until is nil for never.
func (e *RelationEdge) Until() *time.Time {
	if e.Detail.EndsAt == 0 {
		return nil
	}
	t := e.Detail.EndsAt.Time()
	return &t
}

// Attributes is nil if there are none.
func (e *RelationEdge) Attributes() *storage.Attributes {
	return (*storage.Attributes)(&e.Detail.Attributes)
}

// UserConnection is a page of users in whose list no single edge puts them.
type UserConnection struct {
	UserPage
	Edges []*UserEdge
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
