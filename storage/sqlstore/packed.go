package sqlstore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

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
// A gateway of a version that knows nothing of this writes rows without keeping changes.
// It raises user_counts.version but not packed_version, which otherwise rise together, and
// where these two differ a packed list is not read, and made again.
//
// See [Store.Pack] for how it is made, [Store.Lists] and [Store.PackedNeighbours] for how
// it is read.

// keptFlag tells that the changes of a side's rows are kept.
func keptFlag(side storage.Side) int64 { return 1 << side }

// allFlags are those of both sides.
const allFlags = 15

// wholeFlag tells that the chunks and the changes are all of a side.
func wholeFlag(side storage.Side) int64 { return 4 << side }

const (
	sqlKeepChanges = `INSERT INTO packed_change
  (owner, side, peer, type, update_time)
VALUES `

	sqlUnpack = `
UPDATE user_counts
SET packed = packed & ?
WHERE user_id IN (`
)

// notePacked notes the flags of an owner whose counts have been locked.
func (w *writer) notePacked(owner storage.UserID, flags int64) {
	if flags == 0 {
		return // nearly everybody
	}
	if w.packed == nil {
		w.packed = make(map[storage.UserID]int64)
	}
	w.packed[owner] = flags
}

// keepChanges adds rows that have been written, each once, to the packed lists of their
// owners, where there are such.
func (w *writer) keepChanges(side storage.Side, edges []storage.Edge) error {
	if len(w.packed) == 0 || side > storage.Inverse {
		return nil
	}
	kept := make([]storage.Edge, 0, len(edges))
	for _, e := range edges {
		if w.packed[side.Owner(e.Pair())]&keptFlag(side) != 0 {
			kept = append(kept, e)
		}
	}
	for chunk := range slices.Chunk(kept, w.store.sql.MaxRows) {
		args := make([]any, 0, 5*len(chunk))
		for _, e := range chunk {
			p := e.Pair()
			args = append(args, int64(side.Owner(p)), int64(side), int64(side.Peer(p)), int64(e.Type), int64(e.UpdateTime))
		}
		text := sqlKeepChanges + db.Tuples(len(chunk), 5) +
			w.store.sql.Upsert("owner, side, peer", "type = NEW.type, update_time = NEW.update_time")
		if _, err := w.Exec(len(chunk), text, args...); err != nil {
			return err
		}
	}
	return nil
}

// unpack gives up the packed lists of a side, of owners whose counts are locked: their
// rows were found to be other than Kith has written them. What lies in the tables beside
// is removed when the list is packed again.
func (w *writer) unpack(side storage.Side, owners []storage.UserID) error {
	flags := keptFlag(side) | wholeFlag(side)
	args := []any{allFlags &^ flags}
	for _, id := range owners {
		if w.packed[id]&flags != 0 {
			args = append(args, int64(id))
			w.packed[id] &^= flags
		}
	}
	n := len(args) - 1
	if n == 0 {
		return nil
	}
	_, err := w.Exec(n, sqlUnpack+db.Marks(n)+")", args...)
	return err
}

// packingSizes are bounds on how lists are packed. Tests have smaller ones.
type packingSizes struct {
	from    int            // how long a list is that is worth it
	chunk   int            // follows in a chunk, at most
	slice   int            // rows read and written at once, when a list is packed
	changes int            // how many changes are kept until they go into the chunks
	window  int            // chunks that are written at once then
	step    int            // changes that go into these, at most
	stale   storage.Micros // after which a list that somebody began to pack may be begun again
	again   time.Duration  // after which a list that was packed in the background may be asked for again
}

var defaultPacking = packingSizes{
	from:    10_000,
	chunk:   maxChunk,
	slice:   16 * maxChunk,
	changes: 10_000,
	window:  16,
	step:    1000,
	stale:   600_000_000,
	again:   time.Minute,
}

// packedSpelled fills in what tells that a side's list is packed, of user_counts c.
func packedSpelled(side storage.Side, text string) string {
	is := fmt.Sprintf("(COALESCE(c.packed, 0) & %d <> 0 AND c.packed_version = c.version)", wholeFlag(side))
	return strings.ReplaceAll(text, "{is packed}", is)
}
