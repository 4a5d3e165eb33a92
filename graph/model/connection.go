package model

import (
	"time"

	"kith/storage"
)

// UserConnection is a page of a list of users.
type UserConnection struct {
	Edges    []*UserEdge
	Nodes    []*User
	PageInfo *PageInfo
	Complete bool
	Total    storage.Result[int64]
}

// TotalCount fails when the shard of the list's owner did not answer.
func (c *UserConnection) TotalCount() (int32, error) { return int32(c.Total.Value), c.Total.Err }

// UserEdge is one user in such a list.
type UserEdge struct {
	Cursor     string
	Node       *User
	FollowedAt *time.Time
}

// PageInfo says how to continue a list.
type PageInfo struct {
	HasNextPage     bool
	HasPreviousPage bool
	StartCursor     *string
	EndCursor       *string
}

// SuggestionConnection is a page of suggestions.
type SuggestionConnection struct {
	Edges    []*SuggestionEdge
	Nodes    []*User
	PageInfo *PageInfo
	Complete bool
	Excluded *SuggestionExclusions
}

// SuggestionEdge is one suggestion.
type SuggestionEdge struct {
	Cursor      string
	Node        *User
	Score       float64
	MutualCount int32
	Reason      SuggestionReason

	Via []storage.UserID // the most that any `via` below asks for
}

// SuggestionExclusions is how many candidates were left out, by reason.
type SuggestionExclusions struct {
	Followed  int32
	Blocked   int32
	Dismissed int32
}

// UserSearchConnection is a page of users found by handle.
type UserSearchConnection struct {
	Edges    []*UserSearchEdge
	Nodes    []*User
	PageInfo *PageInfo
}

// UserSearchEdge is a user on such a page.
type UserSearchEdge struct {
	Cursor string
	Node   *User
}
