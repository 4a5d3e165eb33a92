package storage

import (
	"context"
	"time"
)

// RequestAct is what somebody does about the request From → To.
type RequestAct uint8

const (
	// Ask (by From) makes it pending. Where To has asked From, and that has not expired,
	// it is accepted at once: From follows To. One that is pending stays as it is.
	Ask RequestAct = iota
	// Accept (by To) makes From follow To. That To follows From is written where the
	// Inbox is applied.
	Accept
	// Decline (by To) ends it; From may ask again after a pause.
	Decline
	// Cancel (by From) ends it.
	Cancel
	// Remove (by From) ends the friendship of the two: From follows To no longer. That To
	// follows From no longer is written where the Inbox is applied.
	Remove
)

// RequestChange is one act.
type RequestChange struct {
	Act     RequestAct
	At      Micros // the clock, read once for a request
	Message string // of an Ask, at most MaxMessageLength characters
}

// RequestOptions bound and widen an act.
type RequestOptions struct {
	// TTL is how long a request stays pending. One that is older counts as none.
	TTL time.Duration
	// Pause is how long after a decline one may not ask again: [ErrForbidden].
	Pause time.Duration
	// MaxFollowing is as in [ChangeOptions], for From. 0 means no limit.
	MaxFollowing int64
	// MaxPending is how many requests of From may be pending: one more gets
	// [ErrLimitReached]. 0 means no limit.
	MaxPending int
	// Inverse writes the Inbox, and what follows from it, in the same transaction where
	// To lies in the same database.
	Inverse bool
}

// DefaultRequestTTL is how long a request stays pending. Stores are opened with the
// one that gateways use: crossing requests are judged by it.
const DefaultRequestTTL = 90 * 24 * time.Hour

// MaxMessageLength is the length of a request's message, in characters.
const MaxMessageLength = 300

// ChangedRequest tells what became of an act.
type ChangedRequest struct {
	Row     Edge      // the request as it is now; Type None and UpdateTime 0 where there is none
	Changed bool      // false when it was so before
	Written []Written // forward rows that were written, the request first
}

// RequestChanger changes requests for friendship. A friend is a mutual follow (seeds:
// weak and strong friends).
type RequestChanger interface {
	// ChangeRequest does one act in one transaction on the shard of From, in the lock
	// order of [EdgeWriter]. Times rise as in [EdgeChanger].
	//
	// [ErrNoRequest] means that there is nothing to accept, decline or cancel, or not any
	// more: it has expired, or another act was faster. Doing the same again is no
	// error: it changes nothing. [ErrForbidden] tells that one blocks the other, or
	// that the pause after a decline has not passed. [ErrUserUnknown] is From without
	// counts.
	ChangeRequest(ctx context.Context, request Pair, change RequestChange, o RequestOptions) (ChangedRequest, error)
}
