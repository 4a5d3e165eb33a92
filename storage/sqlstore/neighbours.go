package sqlstore

import (
	"context"
	"database/sql"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
	"kith/storage/sqlstore/internal/packed"
)

// The lists of owners who have counts, as they are packed (shortlists.go), or else as texts. Served by the primary keys. SQLite
// reads texts from the list index: {list}.
var sqlNeighbourTexts = db.ForSides(`
SELECT c.user_id, c.{count}, s.data,
  (SELECT GROUP_CONCAT(e.{peer}) FROM {table} e /*! FORCE INDEX (PRIMARY) */
   WHERE e.type = 1 AND e.{owner} = CASE WHEN s.owner IS NULL THEN c.user_id END)
FROM user_counts c
LEFT JOIN packed_short s ON s.owner = c.user_id AND s.side = {side} AND s.version = c.version
WHERE c.user_id IN (?)`, db.Follows...)

// Lists by their rows alone.
//
// Served by the primary key, which has the peers in order. Naming an index saves MariaDB the time
// to choose one, which is a fifth of the time of many short lists; SQLite chooses the list index: {list}.
// A list comes as one text, as those of snapshots do.
var sqlNeighbours = db.ForSides(`
SELECT {owner}, COUNT(*), GROUP_CONCAT({peer})
FROM {table} /*! FORCE INDEX (PRIMARY) */
WHERE type = 1 AND {owner} IN (?)
GROUP BY {owner}`, storage.Sides[:]...)

// Served by {list} or the primary key.
var sqlNeighboursByRow = db.ForSides(`
SELECT {peer}
FROM {table}
WHERE {owner} = ? AND type = 1`, storage.Sides[:]...)

// readNeighbours answers [storage.NeighbourLookups].
func (s *Store) readNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	return db.LookUp(s.db, owners, s.sql.MaxKeys, s.shards.Of, func(shard int, owners []storage.UserID, found func(storage.UserID, []storage.UserID)) error {
		lists := make(map[storage.UserID][]storage.UserID, len(owners))
		rest := owners
		var cut []storage.UserID
		var err error
		if side.Truth() == storage.Forward && !s.sql.ScansSubqueries {
			rest, cut, err = s.neighboursOfCounted(ctx, shard, side, owners, lists)
		}
		if err == nil && len(rest) > 0 {
			var more []storage.UserID
			more, err = s.neighboursOfAnybody(ctx, shard, side, rest, lists)
			cut = append(cut, more...)
		}
		for _, owner := range cut {
			if err == nil {
				lists[owner], err = s.neighboursByRow(ctx, shard, side, owner)
			}
		}
		for _, owner := range owners {
			list := lists[owner]
			slices.Sort(list) // the engine may have taken another index
			found(owner, list)
		}
		return err
	})
}

// neighboursOfCounted reads the lists of owners who have counts, and returns the others, and those whose texts were cut.
func (s *Store) neighboursOfCounted(
	ctx context.Context, shard int, side storage.Side, owners []storage.UserID, lists map[storage.UserID][]storage.UserID,
) (rest, cut []storage.UserID, err error) {
	text, args := db.In(sqlNeighbourTexts[side], owners)
	err = s.db.Query(ctx, "neighbours."+side.String(), shard, len(owners), text, args, func(rows *sql.Rows) error {
		var owner storage.UserID
		var count int64
		var short, peers sql.RawBytes
		if err := rows.Scan(&owner, &count, &short, &peers); err != nil {
			return err
		}
		if len(short) > 0 {
			if list, err := packed.ParseShortPeers(count, short); err == nil {
				lists[owner] = list
			}
			return nil
		}
		if len(peers) == 0 && count > 0 {
			return nil // the count is wrong, or the packed list is
		}
		list, whole := parseIDs(peers, int(min(max(count, 0), db.MaxForeseen)))
		if lists[owner] = list; !whole {
			cut = append(cut, owner)
		} else if int64(len(list)) == count && s.isShort(count) {
			s.toPack.Soon(packed.Name{Side: side, Owner: owner})
		}
		return nil
	})
	for _, owner := range owners {
		if _, read := lists[owner]; !read {
			rest = append(rest, owner)
		}
	}
	return rest, cut, err
}

// neighboursOfAnybody reads lists by their rows alone, and returns the owners whose texts were cut.
func (s *Store) neighboursOfAnybody(
	ctx context.Context, shard int, side storage.Side, owners []storage.UserID, lists map[storage.UserID][]storage.UserID,
) (cut []storage.UserID, err error) {
	text, args := db.In(sqlNeighbours[side], owners)
	err = s.db.Query(ctx, "neighbours."+side.String(), shard, len(owners), text, args, func(rows *sql.Rows) error {
		var owner storage.UserID
		var length int
		var peers sql.RawBytes
		if err := rows.Scan(&owner, &length, &peers); err != nil {
			return err
		}
		list, whole := parseIDs(peers, length)
		if lists[owner] = list; !whole || len(list) != length {
			cut = append(cut, owner)
		}
		return nil
	})
	return cut, err
}

// neighboursByRow reads a list that is longer than a server puts into one text
// (group_concat_max_len, max_allowed_packet).
func (s *Store) neighboursByRow(ctx context.Context, shard int, side storage.Side, owner storage.UserID) (list []storage.UserID, err error) {
	err = s.db.Query(ctx, "neighbours."+side.String(), shard, 1, sqlNeighboursByRow[side], []any{int64(owner)}, db.AppendTo(&list, db.OneColumn))
	return list, err
}

// parseIDs reads ids that are separated by commas. It returns false if the end of the text may be
// missing: then the last id may be cut as well.
func parseIDs(text []byte, foreseen int) ([]storage.UserID, bool) {
	list := make([]storage.UserID, 0, foreseen)
	var id storage.UserID
	for _, c := range text {
		if c == ',' {
			list, id = append(list, id), 0
			continue
		}
		id = id*10 + storage.UserID(c-'0')
	}
	if len(text) > 0 {
		list = append(list, id)
	}
	return list, len(text) < db.MaxText
}
