package rediscache

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"kith/storage"
)

// told are the changes that this process reported to Redis last: if the log, or another writer of
// the same transaction, reports them again, there is nothing to do.
type told struct {
	known *lru.Cache[madeVersion, toldSides]
}

// madeVersion names a transaction by the version it gave a user.
type madeVersion struct {
	user    storage.UserID
	version int64
}

type toldSides struct{ forward, inverse bool }

// toldKept is how many are remembered, some 2 MB: usually more than a log is behind.
const toldKept = 1 << 14

func newTold() told {
	known, err := lru.New[madeVersion, toldSides](toldKept)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return told{known}
}

func (t told) has(w storage.UserChange) bool {
	sides, known := t.known.Peek(madeVersion{w.User, w.Counts.Version})
	return known && (sides.forward || !w.Forward) && (sides.inverse || !w.Inverse)
}

// add remembers changes, except those that have only seen a version which another transaction has
// made. If two calls add the sides of one change at once, one may be lost, and is told again.
func (t told) add(what []storage.UserChange) {
	for _, w := range what {
		if w.Before < w.Counts.Version {
			made := madeVersion{w.User, w.Counts.Version}
			sides, _ := t.known.Peek(made)
			t.known.Add(made, toldSides{sides.forward || w.Forward, sides.inverse || w.Inverse})
		}
	}
}
