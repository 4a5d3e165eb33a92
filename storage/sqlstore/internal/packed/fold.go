package packed

import (
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

const (
	// Served by the primary key.
	sqlChangesAfter = `
SELECT peer, type, update_time
FROM packed_change
WHERE owner = ? AND side = ? AND peer > ?
ORDER BY peer LIMIT ?`

	// From the chunk that a peer belongs to. Served by the primary key.
	sqlChunksFrom = `
SELECT first_peer, data
FROM packed_chunk
WHERE owner = ? AND side = ? AND first_peer >= COALESCE((
  SELECT MAX(first_peer) FROM packed_chunk WHERE owner = ? AND side = ? AND first_peer <= ?
), 0)
ORDER BY first_peer LIMIT ?`

	// Served by the primary key.
	sqlDropTheseChunks = `
DELETE FROM packed_chunk
WHERE owner = ? AND side = ? AND first_peer IN (?)`
)

// fold puts the changes into the chunks, some chunks at a time, each time in one transaction: the
// list is the same before and after it. Changes that come behind are left for the next time.
func (p *packing) fold() error {
	after := storage.UserID(0)
	for more := true; more; {
		err := p.transact(func(tx *db.Tx, state packState) (err error) {
			if !p.isWhole(state) {
				return errLostList
			}
			after, more, err = p.foldSome(tx, after)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// foldSome puts changes of peers behind one into their chunks, and returns how far it has
// come.
func (p *packing) foldSome(tx *db.Tx, after storage.UserID) (upTo storage.UserID, more bool, err error) {
	changes, err := p.changesAfter(tx, after)
	if err != nil || len(changes) == 0 {
		return after, false, err
	}
	more = len(changes) == p.Sizes.Step
	chunks, err := p.chunksFrom(tx, changes[0].at.Peer)
	if err != nil {
		return after, false, err
	}
	if len(chunks) > p.Sizes.Window { // the last one only shows where the others end
		end := chunks[p.Sizes.Window].first
		chunks = chunks[:p.Sizes.Window]
		n := slices.IndexFunc(changes, func(c change) bool { return c.at.Peer >= end })
		if n >= 0 {
			changes, more = changes[:n], true
		}
	}
	upTo = changes[len(changes)-1].at.Peer
	old, changed, err := p.rewrite(chunks, changes)
	if err != nil {
		p.Doubted.Store(p.Name, err)
		return after, false, err
	}
	if err := p.replace(tx, old, changed); err != nil {
		return after, false, err
	}
	_, err = tx.Exec(len(changes), sqlDropChanges, int64(p.Owner), int64(p.Side), int64(after), int64(upTo))
	return upTo, more, err
}

// change is a row that counts instead of what a chunk has.
type change struct {
	at     storage.Position
	follow bool
}

func (p *packing) changesAfter(tx *db.Tx, after storage.UserID) (changes []change, err error) {
	args := []any{int64(p.Owner), int64(p.Side), int64(after), p.Sizes.Step}
	err = tx.Read(p.Sizes.Step, sqlChangesAfter, args, db.EachEntry(func(at *storage.Position, kind *storage.EdgeType) []any {
		return []any{&at.Peer, kind, &at.UpdateTime}
	}, func(at storage.Position, kind storage.EdgeType) {
		changes = append(changes, change{at: at, follow: kind == storage.Following})
	}))
	return changes, err
}

func (p *packing) chunksFrom(tx *db.Tx, peer storage.UserID) (chunks []chunk, err error) {
	owner, side := int64(p.Owner), int64(p.Side)
	args := []any{owner, side, owner, side, int64(peer), p.Sizes.Window + 1}
	err = tx.Read(p.Sizes.Window+1, sqlChunksFrom, args, db.AppendTo(&chunks, func(c *chunk) []any { return []any{&c.first, &c.data} }))
	return chunks, err
}

// rewrite makes the changes to the chunks that they belong to. It returns which of these are
// removed and what takes their place.
func (p *packing) rewrite(chunks []chunk, changes []change) (old []any, changed []chunk, err error) {
	for i := 0; len(changes) > 0; i++ {
		n := len(changes) // those before the next chunk belong to this one
		if i+1 < len(chunks) {
			if behind := slices.IndexFunc(changes, func(c change) bool { return c.at.Peer >= chunks[i+1].first }); behind >= 0 {
				n = behind
			}
		}
		if n == 0 {
			continue
		}
		var follows []storage.Position
		if i < len(chunks) {
			if follows, err = parseChunk(nil, chunks[i].data); err != nil {
				return nil, nil, err
			}
			old = append(old, int64(chunks[i].first))
		}
		follows = withChanges(follows, changes[:n])
		changed = append(changed, chunksOf(follows, evenly(len(follows), p.Sizes.Chunk))...)
		changes = changes[n:]
	}
	return old, changed, nil
}

// withChanges makes changes to follows; both are by ascending peer.
func withChanges(follows []storage.Position, changes []change) []storage.Position {
	all := make([]storage.Position, 0, len(follows)+len(changes))
	for _, c := range changes {
		for len(follows) > 0 && follows[0].Peer < c.at.Peer {
			all, follows = append(all, follows[0]), follows[1:]
		}
		if len(follows) > 0 && follows[0].Peer == c.at.Peer {
			follows = follows[1:]
		}
		if c.follow {
			all = append(all, c.at)
		}
	}
	return append(all, follows...)
}

// evenly is the size of chunks that are about equal, so that chunks that have grown too large have
// room again.
func evenly(n, most int) int {
	if n <= most {
		return most
	}
	chunks := (n + most - 1) / most
	return (n + chunks - 1) / chunks
}

func (p *packing) replace(tx *db.Tx, old []any, changed []chunk) error {
	if len(old) > 0 {
		args := append([]any{int64(p.Owner), int64(p.Side)}, old...)
		if _, err := tx.Exec(len(old), db.Listed(sqlDropTheseChunks, len(old)), args...); err != nil {
			return err
		}
	}
	return p.insert(tx, changed)
}
