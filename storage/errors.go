package storage

import "errors"

// The errors of the contract. Engines wrap them with what was being done to
// whom; callers test with errors.Is.
var (
	// ErrUnavailable: a shard could not be reached, or did not answer in time. The same call may
	// succeed later.
	ErrUnavailable = errors.New("shard unavailable")

	// ErrCopied: the store has been copied to another one, and takes no writes any more. It comes with [ErrUnavailable].
	ErrCopied = errors.New("the store has been copied to another one, which is to be used")

	// ErrHandleTaken: the handle belongs to another user.
	ErrHandleTaken = errors.New("handle is taken")

	// ErrUserExists: a user with this id exists already.
	ErrUserExists = errors.New("user exists")

	// ErrIDUnusable: no new user may have this id.
	ErrIDUnusable = errors.New("the id is above 4611686018427387903, or was that of a user who has been deleted")

	// ErrUserUnknown: there is no user with this id.
	ErrUserUnknown = errors.New("no such user")

	// ErrPasswordChanged: another caller has changed the password in the meantime.
	ErrPasswordChanged = errors.New("password has changed")

	// ErrLimitReached: the user has reached a limit, such as that of followings.
	ErrLimitReached = errors.New("limit of followings reached")

	// ErrForbidden: a rule between the two users, such as a block, does not allow it.
	ErrForbidden = errors.New("not allowed between these users")

	// ErrNoEdge: there is no pending request, or no follow, to be changed.
	ErrNoEdge = errors.New("no such request or follow")

	// ErrPostUnknown: the post does not exist, or no longer exists.
	ErrPostUnknown = errors.New("no such post")

	// ErrPostEmpty: the post would have neither a text nor media.
	ErrPostEmpty = errors.New("post is empty")

	// ErrKeyTaken: another post, or another comment of the user on the post, has the client key, or another user the identity.
	ErrKeyTaken = errors.New("is taken")

	// ErrListUnknown: the list does not exist, or no longer exists.
	ErrListUnknown = errors.New("no such list")

	// ErrAttributesTooLong: the attributes would take more than [MaxAttributes] bytes.
	ErrAttributesTooLong = errors.New("attributes are too long")

	// ErrLogPruned: a part of the requested log has been removed.
	ErrLogPruned = errors.New("log pruned")

	// ErrNoLease: every slot is taken.
	ErrNoLease = errors.New("no slot is free")

	// ErrLayout: the shards do not fit each other or this program: their order or number differs
	// from what the store records, or their layout is newer.
	ErrLayout = errors.New("store layout does not fit")
)
