package sqlstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
	"kith/storage/sqlstore/internal/packed"
)

// A list of 32 to 5,000 follows that had to be read from its rows is packed in the background as one value, with the
// version of its owner's counts. Statements that read lists take the value while the counts have that version: a tenth
// of what the rows take. See packed.AppendShort and ADR 30.

const (
	// shortsWaiting is how many lists may wait. Further ones are packed when they are read again.
	shortsWaiting = 1024
	// shortsAtOnce is how many lists are read at once and written in one transaction.
	shortsAtOnce = 64
)

// packShort is what statements that pack are for.
const packShort = "pack.short"

// An equal version is written again: the value may have been broken.
var sqlKeepShort = db.Both(`
INSERT INTO packed_short (owner, side, version, data)
VALUES (?, ?, ?, ?)
ON CONFLICT (owner, side) DO UPDATE SET
  data = CASE WHEN version <= excluded.version THEN excluded.data ELSE data END,
  version = MAX(version, excluded.version)`)

// isShort reports whether a list is worth packing as one value.
func (s *Store) isShort(count int64) bool {
	return count >= int64(s.packed.Sizes.ShortFrom) && count <= int64(s.packed.Sizes.ShortTo)
}

// packShortSoon has a list packed that had to be read from its rows.
func (s *Store) packShortSoon(side storage.Side, owner storage.UserID, count int64, list storage.List) {
	if s.isShort(count) && s.isQuiet(list) {
		s.toPack.Soon(packed.Name{Side: side, Owner: owner})
	}
}

// isQuiet reports that a list has not changed for a while, as far as its rows say.
func (s *Store) isQuiet(list storage.List) bool {
	before := storage.MicrosOf(time.Now()) - s.packed.Sizes.ShortQuiet
	return !slices.ContainsFunc(list.Edges, func(e storage.Edge) bool { return e.UpdateTime > before })
}

// packShorts packs short lists, and returns those that it does not.
func (s *Store) packShorts(ctx context.Context, lists []packed.Name) (left []packed.Name) {
	type part struct {
		side  storage.Side
		shard int
	}
	parts := make(map[part][]packed.Name)
	for _, l := range lists {
		p := part{l.Side, s.shards.Of(l.Owner)}
		parts[p] = append(parts[p], l)
	}
	for p, lists := range parts {
		if ctx.Err() != nil {
			return lists
		}
		left = append(left, s.packShortsOf(ctx, p.side, p.shard, lists)...)
	}
	return left
}

func (s *Store) packShortsOf(ctx context.Context, side storage.Side, shard int, lists []packed.Name) []packed.Name {
	endedSince := max(0, storage.MicrosOf(time.Now())-s.packed.Sizes.ShortEnded)
	queries := storage.Each(lists, func(l packed.Name) storage.ListQuery {
		return storage.ListQuery{Owner: l.Owner, Longest: s.packed.Sizes.ShortTo, EndedSince: endedSince}
	})
	done := make(map[storage.UserID]bool, len(lists))
	read := make(map[storage.UserID]storage.List, len(lists))
	alreadyPacked := func(q storage.ListQuery, _ storage.List) { done[q.Owner] = true } // by another gateway
	_, _, err := s.listTexts(ctx, packShort, side, shard, queries, alreadyPacked, func(side storage.Side, owner storage.UserID, count int64, list storage.List) {
		follows := int64(0)
		for _, e := range list.Edges {
			follows += judge.Counted(e.Type)
		}
		if done[owner] = follows == count && s.isShort(count) && s.isQuiet(list); done[owner] {
			read[owner] = list
		}
	})
	if err == nil && len(read) > 0 {
		err = s.keepShorts(ctx, side, shard, read, endedSince)
	}
	return storage.Filter(lists, func(l packed.Name) bool { return err != nil || !done[l.Owner] }) // Config.OnStatement has been called with the error
}

// Served by the primary key.
const sqlLockVersions = `
SELECT user_id, version
FROM user_counts
WHERE user_id IN (?)
ORDER BY user_id /*! FOR UPDATE */`

// keepShorts stores lists whose owners' counts still have their versions. The lock keeps a user from being erased meanwhile.
func (s *Store) keepShorts(ctx context.Context, side storage.Side, shard int, lists map[storage.UserID]storage.List, endedSince storage.Micros) error {
	owners := slices.Sorted(maps.Keys(lists))
	return s.db.Transact(ctx, packShort, shard, func(tx *db.Tx) error {
		for _, owner := range owners {
			tx.Touch(db.MovedRow{Kind: db.UserRows, Owner: owner})
		}
		var same []storage.UserID
		text, ids := db.In(sqlLockVersions, owners)
		err := tx.Read(len(owners), text, ids, db.EachEntry(db.TwoColumns, func(owner storage.UserID, version int64) {
			if version == lists[owner].Version {
				same = append(same, owner)
			}
		}))
		if err != nil {
			return err
		}
		_, err = db.WriteRows(tx, s.sql.Text(sqlKeepShort), same, func(args []any, owner storage.UserID) []any {
			list := lists[owner]
			return append(args, int64(owner), int64(side), list.Version, packed.AppendShort(side, list.Edges, endedSince))
		})
		return err
	})
}
