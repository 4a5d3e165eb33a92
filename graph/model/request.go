package model

import (
	"cmp"
	"time"

	"kith/storage"
)

// RequestRow is the row of a request: From asks To. The type is the state.
type RequestRow struct {
	storage.Edge
	Kind RequestKind
}

// Request is a request, as the store has it at a time.
type Request struct {
	Row  RequestRow
	Now  time.Time     // when it was read: by this time it has expired or not
	TTL  time.Duration // how long it can be accepted
	Text string        // the message; empty: none

	From *User // nil unless selected, or hidden
	To   *User
}

func (*Request) IsNode() {}

func (r *Request) ID() string {
	prefix := "req_"
	if r.Row.Kind == RequestKindFollow {
		prefix = "wait_"
	}
	return prefix + r.Row.From.String() + "_" + r.Row.To.String()
}

func (r *Request) Kind() RequestKind { return r.Row.Kind }

// requestStates are the states of rows; those of all other types are withdrawn.
var requestStates = map[RequestKind]map[storage.EdgeType]RequestState{
	RequestKindFriend: {
		storage.Pending: RequestStatePending, storage.Accepted: RequestStateAccepted, storage.Declined: RequestStateDeclined, storage.Removed: RequestStateRemoved,
	},
	RequestKindFollow: {storage.Requested: RequestStatePending, storage.Following: RequestStateAccepted, storage.Denied: RequestStateDeclined},
}

func (r *Request) State() RequestState {
	if r.Row.Type == storage.Pending && !r.Now.Before(r.expiry()) {
		return RequestStateExpired
	}
	return cmp.Or(requestStates[r.Row.Kind][r.Row.Type], RequestStateWithdrawn)
}

// Message is nil once the request is no longer pending, although the store keeps that of one that has expired.
func (r *Request) Message() *string {
	if r.State() != RequestStatePending {
		return nil
	}
	return optional(r.Text)
}

func (r *Request) UpdatedAt() time.Time { return r.Row.UpdateTime.Time() }

// ExpiresAt is nil unless the request is pending, and expires.
func (r *Request) ExpiresAt() *time.Time {
	if r.Row.Kind == RequestKindFollow || r.State() != RequestStatePending {
		return nil
	}
	return new(r.expiry())
}

func (r *Request) expiry() time.Time { return r.Row.UpdateTime.Time().Add(r.TTL) }
