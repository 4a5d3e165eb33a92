package packed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/sqlstore/internal/db"
)

// How a list is packed, see the package's comment for what that is:
//
//  1. under the lock on the owner's counts, the flag is set by which every write keeps
//     its changes from then on;
//  2. without a lock, the rows are read in the order of the key, slice by slice, and
//     written as chunks. A row that changes meanwhile is in packed_change;
//  3. with the last slice the flag is set that reports that the list is whole.
//
// packed_list has the time of the first step, which names the packer. A packer that finds
// another time there, or no flag, stops: the list is no longer its own. One that is
// cancelled sets the time to 0, so that the next may begin at once. One that has died leaves
// a list that nobody reads; after Sizes.Stale it is begun again.
const (
	// Served by the primary key.
	sqlLock = `
SELECT user_id
FROM user_counts
WHERE user_id = ? /*! FOR UPDATE */`

	// Served by the primary key.
	sqlCountChanges = `
SELECT COUNT(*)
FROM (SELECT 1 FROM packed_change WHERE owner = ? AND side = ? LIMIT ?) AS counted`

	// Served by the primary key.
	sqlSetPacked = `
UPDATE user_counts
SET packed = ?, packed_version = version
WHERE user_id = ?`

	// Served by the primary key.
	sqlEndOfChanges = `
SELECT peer
FROM packed_change
WHERE owner = ? AND side = ?
ORDER BY peer LIMIT 1 OFFSET ?`

	// Served by the primary key.
	sqlDropChanges = `
DELETE FROM packed_change
WHERE owner = ? AND side = ? AND peer > ? AND peer <= ?`

	// Served by the primary key.
	sqlLeavePacking = `
UPDATE packed_list
SET began_at = 0
WHERE owner = ? AND side = ? AND began_at = ?`

	// Served by the primary key.
	sqlDropChunks = `
DELETE FROM packed_chunk
WHERE owner = ? AND side = ? AND first_peer > ? AND first_peer <= ?`

	sqlInsertChunks = `
INSERT INTO packed_chunk (owner, side, first_peer, data)
VALUES (?, ?, ?, ?)`
)

var sqlBeginPacking = db.Both(`
INSERT INTO packed_list (owner, side, began_at)
VALUES (?, ?, ?)
ON CONFLICT (owner, side) DO UPDATE SET began_at = excluded.began_at`)

// Served by the primary keys.
var sqlPacking = db.ForSides(`
SELECT c.{count}, c.packed, c.version - c.packed_version, COALESCE(l.began_at, 0)
FROM user_counts c
LEFT JOIN packed_list l ON l.owner = c.user_id AND l.side = ?
WHERE c.user_id = ?`, db.Follows...)

// Served by the primary keys.
var sqlFollowsAfter = db.ForSides(`
SELECT {peer}, update_time
FROM {table} /*! FORCE INDEX (PRIMARY) */
WHERE {owner} = ? AND {peer} > ? AND type = 1
ORDER BY {peer} LIMIT ?`, db.Follows...)

// Pack packs a list that is worth it and puts its changes into one that is packed, as localcache.Packer says.
func (l *Lists) Pack(ctx context.Context, side storage.Side, owner storage.UserID) error {
	if side.Truth() != storage.Forward {
		return fmt.Errorf("pack a list of %s: they are not counted", side)
	}
	p := &packing{Lists: l, Name: Name{side, owner}, ctx: ctx, shard: l.db.Map.Of(owner)}
	err := p.run()
	if err != nil && !errors.Is(err, errLostList) {
		p.leave()
		return fmt.Errorf("pack the list %s of user %s: %w", side, owner, err)
	}
	return nil
}

// leave lets another packer begin at once, without waiting until this one must have died. Writes of
// this one that are under way either still count or do not: see where began_at is read.
func (p *packing) leave() {
	if p.began == 0 {
		return // it has begun nothing
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), p.db.StatementTimeout())
	defer cancel()
	// If this fails, it is as if this one had died.
	_ = p.db.Transact(ctx, p.what(), p.shard, func(tx *db.Tx) error {
		tx.Touch(db.MovedRow{Kind: db.UserRows, Owner: p.Owner})
		_, err := tx.Exec(1, sqlLeavePacking, int64(p.Owner), int64(p.Side), int64(p.began))
		return err
	})
}

// errLostList reports that another packer has the list, or that no packer has it any more.
var errLostList = errors.New("somebody else has the list")

// packing is the work on one list.
type packing struct {
	*Lists
	Name
	ctx   context.Context
	shard int
	began storage.Micros // what names this work
}

// packState is what exists of a packed list.
type packState struct {
	count   int64
	flags   int64
	unkept  int64 // changes that were not kept: somebody has made them by hand
	began   storage.Micros
	counted bool
}

func (p *packing) run() error {
	var state packState
	err := p.db.Query(p.ctx, p.what(), p.shard, 1, sqlPacking[p.Side], []any{int64(p.Side), int64(p.Owner)}, state.scan)
	if err != nil || state.count < int64(p.Sizes.From) {
		return err
	}
	if !p.isWhole(state) {
		if err := p.begin(); err != nil {
			return err
		}
		return p.fill()
	}
	var changes int
	args := []any{int64(p.Owner), int64(p.Side), p.Sizes.Changes + 1}
	err = p.db.Query(p.ctx, p.what(), p.shard, 1, sqlCountChanges, args, func(rows *sql.Rows) error { return rows.Scan(&changes) })
	if err != nil || changes <= p.Sizes.Changes {
		return err
	}
	return p.fold()
}

func (p *packing) what() string { return "pack." + p.Side.String() }

func (s *packState) scan(rows *sql.Rows) error {
	s.counted = true
	return rows.Scan(&s.count, &s.flags, &s.unkept, &s.began)
}

// isWhole reports that the list can be read packed.
func (p *packing) isWhole(state packState) bool {
	_, doubted := p.Doubted.Load(p.Name)
	return state.flags&wholeFlag(p.Side) != 0 && state.unkept == 0 && !doubted
}

// transact runs a step under the lock on the counts.
func (p *packing) transact(step func(*db.Tx, packState) error) error {
	return p.db.Transact(p.ctx, p.what(), p.shard, func(tx *db.Tx) error {
		tx.Touch(db.MovedRow{Kind: db.UserRows, Owner: p.Owner})
		err := tx.Read(1, sqlLock, []any{int64(p.Owner)}, func(*sql.Rows) error { return nil })
		if err != nil {
			return err
		}
		var state packState
		if err := tx.Read(1, sqlPacking[p.Side], []any{int64(p.Side), int64(p.Owner)}, state.scan); err != nil {
			return err
		}
		if !state.counted {
			return errLostList
		}
		return step(tx, state)
	})
}

// begin takes the list: from then on changes are kept.
func (p *packing) begin() error {
	now := storage.MicrosOf(time.Now())
	for more := true; more; {
		err := p.transact(func(tx *db.Tx, state packState) error {
			own := keptFlag(p.Side) | wholeFlag(p.Side)
			begun := state.flags&own == keptFlag(p.Side) && state.unkept == 0 && now-state.began < p.Sizes.Stale
			if begun || p.isWhole(state) {
				return errLostList
			}
			flags := state.flags &^ own
			if state.unkept != 0 {
				flags = 0 // the other side is no better
			}
			var err error
			if more, err = p.dropOldChanges(tx); err != nil {
				return err
			}
			if !more {
				flags |= keptFlag(p.Side)
				p.began = max(now, state.began+1)
				if _, err := tx.Exec(1, p.db.Dialect.Text(sqlBeginPacking), int64(p.Owner), int64(p.Side), int64(p.began)); err != nil {
					return err
				}
			}
			_, err = tx.Exec(1, sqlSetPacked, flags, int64(p.Owner))
			return err
		})
		if err != nil {
			return err
		}
	}
	p.Doubted.Delete(p.Name)
	return nil
}

// dropOldChanges removes some of the changes that were kept until the list was unpacked,
// and reports whether there are more.
func (p *packing) dropOldChanges(tx *db.Tx) (more bool, err error) {
	upTo := int64(math.MaxInt64)
	args := []any{int64(p.Owner), int64(p.Side), p.Sizes.Slice}
	if more, err = tx.ReadOne(sqlEndOfChanges, args, &upTo); err != nil {
		return false, err
	}
	_, err = tx.Exec(1, sqlDropChanges, int64(p.Owner), int64(p.Side), 0, upTo)
	return more, err
}

// fill reads the rows and writes the chunks.
func (p *packing) fill() error {
	row := db.NewNumbers(2, 0)
	after := storage.UserID(0)
	for more := true; more; {
		var follows []storage.Position
		args := []any{int64(p.Owner), int64(after), p.Sizes.Slice}
		err := p.db.Query(p.ctx, p.what(), p.shard, p.Sizes.Slice, sqlFollowsAfter[p.Side], args, row.Each(func() {
			follows = append(follows, storage.Position{Peer: storage.UserID(row.At(0)), UpdateTime: storage.Micros(row.At(1))})
		}))
		if err != nil {
			return err
		}
		more = len(follows) == p.Sizes.Slice
		upTo := storage.UserID(math.MaxInt64)
		if more {
			upTo = follows[len(follows)-1].Peer
		}
		if err := p.writeSlice(follows, after, upTo, !more); err != nil {
			return err
		}
		after = upTo
	}
	return nil
}

// writeSlice writes all chunks of the peers behind one, up to another.
func (p *packing) writeSlice(follows []storage.Position, after, upTo storage.UserID, last bool) error {
	chunks := chunksOf(follows, p.Sizes.Chunk)
	return p.transact(func(tx *db.Tx, state packState) error {
		own := keptFlag(p.Side) | wholeFlag(p.Side)
		if state.flags&own != keptFlag(p.Side) || state.unkept != 0 || state.began != p.began {
			return errLostList
		}
		// Chunks that exist there were left by an earlier packer.
		if _, err := tx.Exec(1, sqlDropChunks, int64(p.Owner), int64(p.Side), int64(after), int64(upTo)); err != nil {
			return err
		}
		if err := p.insert(tx, chunks); err != nil || !last {
			return err
		}
		_, err := tx.Exec(1, sqlSetPacked, state.flags|wholeFlag(p.Side), int64(p.Owner))
		return err
	})
}

// chunksOf makes chunks of follows by ascending peer.
func chunksOf(follows []storage.Position, size int) (chunks []chunk) {
	for some := range slices.Chunk(follows, size) {
		chunks = append(chunks, chunk{some[0].Peer, packChunk(some)})
	}
	return chunks
}

func (p *packing) insert(tx *db.Tx, chunks []chunk) error {
	_, err := db.WriteRows(tx, sqlInsertChunks, chunks, func(args []any, c chunk) []any {
		return append(args, int64(p.Owner), int64(p.Side), int64(c.first), c.data)
	})
	return err
}

// maxChunk is how many follows a chunk may have.
const maxChunk = idset.ChunkSize

// packChunk is the binary form of 1 to maxChunk follows, by ascending peer, with a
// checksum.
func packChunk(follows []storage.Position) []byte {
	return idset.Seal(idset.AppendChunk(nil, follows))
}

// parseChunk appends the follows of a chunk. The error wraps [idset.ErrMalformed]; then
// nothing is appended.
func parseChunk(to []storage.Position, data []byte) ([]storage.Position, error) {
	body, err := idset.Unseal(data)
	if err != nil {
		return to, err
	}
	all, rest, err := idset.ParseChunk(to, body)
	if err == nil && len(rest) > 0 {
		return to, fmt.Errorf("%w: %d bytes too many", idset.ErrMalformed, len(rest))
	}
	return all, err
}

// parsePeers appends the peers of a chunk, without looking at their times. The error is as
// parseChunk's.
func parsePeers(to []storage.UserID, data []byte) ([]storage.UserID, error) {
	body, err := idset.Unseal(data)
	if err != nil {
		return to, err
	}
	return idset.ParsePeers(to, body)
}
