package model

import (
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

func (r *Request) State() RequestState {
	if r.Row.Kind == RequestKindFollow {
		switch r.Row.Type {
		case storage.Requested:
			return RequestStatePending
		case storage.Following:
			return RequestStateAccepted
		case storage.Denied:
			return RequestStateDeclined
		}
		return RequestStateWithdrawn
	}
	switch r.Row.Type {
	case storage.Pending:
		if !r.Now.Before(r.expiry()) {
			return RequestStateExpired
		}
		return RequestStatePending
	case storage.Accepted:
		return RequestStateAccepted
	case storage.Declined:
		return RequestStateDeclined
	case storage.Removed:
		return RequestStateRemoved
	}
	return RequestStateWithdrawn
}

func (r *Request) Message() *string     { return optional(r.Text) }
func (r *Request) UpdatedAt() time.Time { return r.Row.UpdateTime.Time() }

// ExpiresAt is nil unless the request is pending, and expires.
func (r *Request) ExpiresAt() *time.Time {
	if r.Row.Kind == RequestKindFollow || r.State() != RequestStatePending {
		return nil
	}
	return new(r.expiry())
}

func (r *Request) expiry() time.Time { return r.Row.UpdateTime.Time().Add(r.TTL) }
