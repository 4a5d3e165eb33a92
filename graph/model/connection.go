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
func (e *RelationEdge) Until() *time.Time { return moment(e.Detail.EndsAt) }

// Attributes is nil if there are none.
func (e *RelationEdge) Attributes() *storage.Attributes {
	return (*storage.Attributes)(&e.Detail.Attributes)
}

// UserConnection is a page of users, whatever the schema calls it.
type UserConnection struct {
	UserPage
	Edges []*UserEdge
}

// UserEdge is a user on such a page, with the time since when it is in the list; zero if the schema tells none.
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
