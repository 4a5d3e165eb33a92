// Package packed is the packed lists of followings and followers.
//
// A list that is long and read often is kept packed as well, beside its rows, which stay
// the truth. There are three parts, all on the owner's shard:
//
//   - user_counts.packed has two flags for each side: changes are kept, and the list is
//     whole. They are read with the lock on the counts that every write takes anyway.
//   - packed_chunk has the follows, by ascending peer, 2,048 in a row, as they were at
//     some time since changes are kept.
//   - packed_change has the rows that have changed since then, as they are now. They are
//     written in the transaction of the change, so a follow costs tens of bytes here, and
//     count instead of what the chunks have on their peers. It does not matter therefore
//     when a chunk was made, nor whether it has a change already.
//
// Blocks and tombstones are read from the rows: the list index has them together.
//
// Whoever changes rows by hand raises user_counts.version but not packed_version, which otherwise
// rise together. If these two differ, a packed list is not read, and is made again.
//
// Lists that are shorter are kept packed in another way, see [AppendShort].
//
// See [Lists.Pack] for how it is made, [Lists.List] and [Lists.Neighbours] for how it is
// read, and [Flags] for how it is kept.
package packed

import (
	"sync"
	"time"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// keptFlag reports that the changes of a side's rows are kept.
func keptFlag(side storage.Side) int64 { return 1 << side }

// allFlags are those of both sides.
const allFlags = 15

// wholeFlag reports that the chunks and the changes are all of a side: the list can be read packed
// where it is set and packed_version = version. In statements it is a number, 4 or 8.
func wholeFlag(side storage.Side) int64 { return 4 << side }

var sqlKeepChanges = db.Both(`
INSERT INTO packed_change (owner, side, peer, type, update_time)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (owner, side, peer) DO UPDATE SET type = excluded.type, update_time = excluded.update_time`)

// Served by the primary key.
const sqlUnpack = `
UPDATE user_counts
SET packed = packed & ?
WHERE user_id IN (?)`

// Flags are those of the owners whose counts a transaction has locked, user_counts.packed, if they have any.
type Flags map[storage.UserID]int64

// Keep adds rows that have been written, each once, to the packed lists of their owners, if there
// are any.
func (f Flags) Keep(tx *db.Tx, side storage.Side, edges []storage.Edge) error {
	if side.Truth() != storage.Forward {
		return nil
	}
	kept := make([]storage.Edge, 0, len(edges))
	for _, e := range edges {
		if f[side.Owner(e.Pair())]&keptFlag(side) != 0 {
			kept = append(kept, e)
		}
	}
	_, err := db.WriteRows(tx, tx.DB.Dialect.Text(sqlKeepChanges), kept, func(args []any, e storage.Edge) []any {
		p := e.Pair()
		return append(args, int64(side.Owner(p)), int64(side), int64(side.Peer(p)), int64(e.Type), int64(e.UpdateTime))
	})
	return err
}

// Unpack gives up the packed lists of a side, of owners whose counts are locked: their rows were
// found to differ from what Kith has written. Their chunks are removed when the list is packed
// again.
func (f Flags) Unpack(tx *db.Tx, side storage.Side, owners []storage.UserID) error {
	flags := keptFlag(side) | wholeFlag(side)
	args := []any{allFlags &^ flags}
	for _, id := range owners {
		if f[id]&flags != 0 {
			args = append(args, int64(id))
			f[id] &^= flags
		}
	}
	n := len(args) - 1
	if n == 0 {
		return nil
	}
	_, err := tx.Exec(n, db.Listed(sqlUnpack, n), args...)
	return err
}

// Sizes are bounds on how lists are packed. Tests have smaller ones.
type Sizes struct {
	From    int            // the length from which a list is worth packing
	Chunk   int            // follows in a chunk, at most
	Slice   int            // rows read and written at once, when a list is packed
	Changes int            // how many changes are kept until they go into the chunks
	Window  int            // chunks that are written at once then
	Step    int            // changes that go into these, at most
	Stale   storage.Micros // after which a list that somebody began to pack may be begun again
	Again   time.Duration  // after which a list that was packed in the background may be asked for again

	ShortFrom  int            // the length from which a list is worth packing as one value
	ShortTo    int            // and up to which
	ShortQuiet storage.Micros // how long it must not have changed, because a change undoes the work
	ShortEnded storage.Micros // how far back it has tombstones
	ShortIdle  int            // the pauses between packing some lists and the next, as a multiple of the time it takes
}

var Defaults = Sizes{
	From:    10_000,
	Chunk:   maxChunk,
	Slice:   16 * maxChunk,
	Changes: 10_000,
	Window:  16,
	Step:    1000,
	Stale:   600_000_000,
	Again:   time.Minute,

	ShortFrom:  32,
	ShortTo:    5000,
	ShortQuiet: 600_000_000,
	ShortEnded: 3_600_000_000,
	ShortIdle:  3,
}

// Name names a list.
type Name struct {
	Side  storage.Side
	Owner storage.UserID
}

// Lists packs the lists of a store, and reads those that are packed.
type Lists struct {
	Sizes Sizes

	// Doubted are the lists (Name) that were not what their counts say when they were read,
	// with the reason. They are not read until they are packed again.
	Doubted sync.Map

	db    *db.DB
	queue Queue
}

// packsWaiting is how many long lists may wait.
const packsWaiting = 64

// New is for the lists in some databases.
func New(d *db.DB) *Lists {
	l := &Lists{Sizes: Defaults, db: d}
	l.queue = Queue{Work: l.packWaiting, Most: packsWaiting, Size: 1, Rest: func() time.Duration { return l.Sizes.Again }, Idle: func() int { return 0 }}
	return l
}

// Close cancels what is being packed in the background.
func (l *Lists) Close() { l.queue.Close() }
