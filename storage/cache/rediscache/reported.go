package rediscache

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"kith/storage"
)

// reported are the changes that this process reported to Redis last: if the log, or another writer of
// the same transaction, reports them again, there is nothing to do.
type reported struct {
	known *lru.Cache[madeVersion, madeSides]
}

// madeVersion names a transaction by the version it gave a user.
type madeVersion struct {
	user    storage.UserID
	version int64
}

type madeSides struct{ forward, inverse bool }

// reportedKept is how many are remembered, some 2 MB: usually more than a log is behind.
const reportedKept = 1 << 14

func newReported() reported {
	known, err := lru.New[madeVersion, madeSides](reportedKept)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return reported{known}
}

func (r reported) has(w storage.UserChange) bool {
	sides, known := r.known.Peek(madeVersion{w.User, w.Counts.Version})
	return known && (sides.forward || !w.Forward) && (sides.inverse || !w.Inverse)
}

// add remembers changes, except those that have only seen a version which another transaction has
// made. If two calls add the sides of one change at once, one may be lost, and is reported again.
func (r reported) add(what []storage.UserChange) {
	for _, w := range what {
		if w.Before < w.Counts.Version {
			made := madeVersion{w.User, w.Counts.Version}
			sides, _ := r.known.Peek(made)
			r.known.Add(made, madeSides{sides.forward || w.Forward, sides.inverse || w.Inverse})
		}
	}
}
