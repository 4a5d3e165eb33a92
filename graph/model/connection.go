package model

import "kith/storage"

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

// SuggestionEdge is one suggestion.
type SuggestionEdge struct {
	Cursor      string
	Node        *User
	Score       float64
	MutualCount int32
	Reason      SuggestionReason

	Via []storage.UserID // the most that any `via` below asks for
}
