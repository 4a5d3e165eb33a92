package model

import (
	"time"

	"kith/storage"
)

// FriendRequest is a friend request, as the store has it at a time.
type FriendRequest struct {
	Row  storage.Edge  // From asks To; the type is the state
	Now  time.Time     // when it was read: by this time it has expired or not
	TTL  time.Duration // how long it can be accepted
	Text string        // the message; empty: none

	From *User // nil unless selected, or hidden
	To   *User
}

func (*FriendRequest) IsNode() {}

func (r *FriendRequest) ID() string {
	return "req_" + r.Row.From.String() + "_" + r.Row.To.String()
}

func (r *FriendRequest) State() FriendRequestState {
	switch r.Row.Type {
	case storage.Pending:
		if !r.Now.Before(r.expiry()) {
			return FriendRequestStateExpired
		}
		return FriendRequestStatePending
	case storage.Accepted:
		return FriendRequestStateAccepted
	case storage.Declined:
		return FriendRequestStateDeclined
	case storage.Removed:
		return FriendRequestStateRemoved
	}
	return FriendRequestStateCancelled
}

func (r *FriendRequest) Message() *string     { return optional(r.Text) }
func (r *FriendRequest) UpdatedAt() time.Time { return r.Row.UpdateTime.Time() }

// ExpiresAt is nil unless the request is pending.
func (r *FriendRequest) ExpiresAt() *time.Time {
	if r.State() != FriendRequestStatePending {
		return nil
	}
	t := r.expiry()
	return &t
}

func (r *FriendRequest) expiry() time.Time { return r.Row.UpdateTime.Time().Add(r.TTL) }

// FriendRequestConnection is a page of requests.
type FriendRequestConnection struct {
	Edges    []*FriendRequestEdge
	Nodes    []*FriendRequest
	PageInfo *PageInfo
	Complete bool
	Total    storage.Result[int64]
}

// TotalCount fails when the viewer's shard did not answer.
func (c *FriendRequestConnection) TotalCount() (int32, error) {
	return int32(c.Total.Value), c.Total.Err
}
