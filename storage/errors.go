package storage

import "errors"

// The errors of the contract. Engines wrap them with what was being done to
// whom; callers test with errors.Is.
var (
	// ErrUnavailable: a shard could not be reached or did not answer in its time.
	// The same call may succeed later.
	ErrUnavailable = errors.New("shard unavailable")

	// ErrInDoubt: the answer to a commit did not come. What was written may be there or
	// not, or come soon. It comes with another error that says why.
	ErrInDoubt = errors.New("commit in doubt")

	// ErrHandleTaken: the handle belongs to another user.
	ErrHandleTaken = errors.New("handle is taken")

	// ErrUserExists: there is a user with this id already.
	ErrUserExists = errors.New("user exists")

	// ErrUserUnknown: there is no user with this id.
	ErrUserUnknown = errors.New("no such user")

	// ErrPasswordChanged: somebody else has changed the password in the meantime.
	ErrPasswordChanged = errors.New("password has changed")

	// ErrLimitReached: the user follows as many as it may.
	ErrLimitReached = errors.New("limit of followings reached")

	// ErrForbidden: a rule between two users does not allow it, such as a block.
	ErrForbidden = errors.New("not allowed between these users")

	// ErrNoRequest: there is no pending request for friendship.
	ErrNoRequest = errors.New("no such request")

	// ErrNotFollowing: the user does not follow the other.
	ErrNotFollowing = errors.New("not following")

	// ErrLogPruned: a part of the log that was asked for has been removed.
	ErrLogPruned = errors.New("log pruned")

	// ErrNoLease: every slot is taken.
	ErrNoLease = errors.New("no slot is free")

	// ErrLayout: the shards do not fit together or do not fit this program: another
	// order or number of them than the store records, or a newer layout.
	ErrLayout = errors.New("store layout does not fit")
)
