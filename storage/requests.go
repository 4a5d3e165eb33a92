package storage

import (
	"context"
	"time"
)

// RequestAct is what a user does about the request From → To.
type RequestAct uint8

const (
	// Ask (by From) makes the request pending. If To has asked From, and To's request has not
	// expired, the new one is accepted at once: From follows To. A pending request stays as it is.
	Ask RequestAct = iota
	// Accept (by To) makes From follow To. The follow To → From is written when the Inbox row is
	// applied.
	Accept
	// Decline (by To) ends the request; From may ask again after a pause.
	Decline
	// Cancel (by From) ends the request.
	Cancel
	// Remove (by From) ends the friendship: From no longer follows To. The follow To → From is
	// ended when the Inbox row is applied.
	Remove
)

// RequestChange is one act.
type RequestChange struct {
	Act     RequestAct
	At      Micros // the clock, read once per request
	Message string // of an Ask, at most MaxMessageLength characters
}

// RequestOptions limit and extend an act.
type RequestOptions struct {
	// TTL is how long a request stays pending. An older request counts as none.
	TTL time.Duration
	// Pause is how long From may not ask again after a decline: [ErrForbidden].
	Pause time.Duration
	// MaxFollowing is as in [ChangeOptions], for From. 0 means no limit.
	MaxFollowing int64
	// MaxPending is how many requests of From may be pending: one more gets [ErrLimitReached]. 0
	// means no limit.
	MaxPending int
	// Inverse also writes the Inbox, and what follows from it, in the same transaction if To is in
	// the same database.
	Inverse bool
}

// DefaultRequestTTL is how long a request stays pending. A store needs the value that
// the gateways use, because it judges crossing requests by it.
const DefaultRequestTTL = 90 * 24 * time.Hour

// MaxMessageLength is the greatest length of a request's message, in characters.
const MaxMessageLength = 300

// ChangedRequest is the outcome of an act.
type ChangedRequest struct {
	Row     Edge      // the request as it is now; Type None and UpdateTime 0 if there is none
	Changed bool      // false if the request was already so
	Written []Written // forward rows that were written, the request first
}

// RequestChanger changes friend requests. A friend is a mutual follow (seeds: weak and strong
// friends).
type RequestChanger interface {
	// ChangeRequest performs one act in one transaction on the shard of From, in the lock order of
	// [EdgeWriter]. Times rise as in [EdgeChanger].
	//
	// [ErrNoRequest] means that there is nothing to accept, decline or cancel, or no longer: the
	// request has expired, or another act came first. Repeating an act is no error, and changes
	// nothing. [ErrForbidden] means that one of the two blocks the other, or that the pause after a
	// decline has not passed. [ErrUserUnknown] means that From has no counts.
	ChangeRequest(ctx context.Context, request Pair, change RequestChange, o RequestOptions) (ChangedRequest, error)
}
