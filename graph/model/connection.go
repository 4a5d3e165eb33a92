package model

import "kith/storage"

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
