package sqlstore

import (
	"context"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sqlstore/internal/db"
)

// Edges are counted for each item, too: favorites with their post, if it exists, and relations with each kind of their owner.
const (
	// Posts with favorites whose counts are wrong or missing. Served by idx_favorite_inbox_list and the
	// primary keys of post and post_counts.
	sqlWrongPostCounts = `
SELECT /*+ INL_JOIN(p, c) */ e.author, e.number, COALESCE(c.favorite_count, 0), e.n
FROM (
  SELECT to_user_id AS author, post_id AS number, COUNT(*) AS n
  FROM favorite_inbox
  WHERE to_user_id > ? AND to_user_id <= ? AND type = 1
  GROUP BY to_user_id, post_id
) e
JOIN post p ON p.author_id = e.author AND p.post_id = e.number
LEFT JOIN post_counts c ON c.author_id = e.author AND c.post_id = e.number
WHERE c.author_id IS NULL OR c.favorite_count <> e.n`

	// Counts of posts that nobody has favorited. Served by the primary key of post_counts and
	// idx_favorite_inbox_list.
	sqlPostCountsOfNone = `
SELECT c.author_id, c.post_id, c.favorite_count, 0
FROM post_counts c
WHERE c.author_id > ? AND c.author_id <= ? AND c.favorite_count <> 0
  AND NOT EXISTS (SELECT /*+ NO_DECORRELATE() */ 1 FROM favorite_inbox e WHERE e.to_user_id = c.author_id AND e.post_id = c.post_id AND e.type = 1)`

	// Served by idx_post_list and the primary keys.
	sqlCountsOfPosts = `
SELECT p.post_id, COALESCE(c.favorite_count, 0)
FROM post p
LEFT JOIN post_counts c ON c.author_id = p.author_id AND c.post_id = p.post_id
WHERE p.author_id = ?`

	// Served by the primary key.
	sqlSetPostFavorites = `
UPDATE post_counts
SET favorite_count = ?, version = version + 1
WHERE author_id = ? AND post_id = ? AND favorite_count <> ?`
)

var (
	// The same for kinds. The hint is for TiDB, which would read all counts for a range of owners. Served by {list} and the primary
	// key of relation_counts.
	sqlWrongKindCounts = db.ForSides(`
SELECT /*+ INL_JOIN(c) */ e.owner, e.kind, COALESCE(c.{count}, 0), e.n
FROM (
  SELECT {owner} AS owner, kind, COUNT(*) AS n
  FROM {table} /*! FORCE INDEX ({list}) */
  WHERE {owner} > ? AND {owner} <= ? AND type = 1
  GROUP BY {owner}, kind
) e
LEFT JOIN relation_counts c ON c.owner = e.owner AND c.kind = e.kind
WHERE c.owner IS NULL OR c.{count} <> e.n`, storage.Relations, storage.RelationInbox)

	// Served by {list} and the primary key of relation_counts.
	sqlKindCountsOfNone = db.ForSides(`
SELECT c.owner, c.kind, c.{count}, 0
FROM relation_counts c
WHERE c.owner > ? AND c.owner <= ? AND c.{count} <> 0
  AND NOT EXISTS (SELECT /*+ NO_DECORRELATE() */ 1 FROM {table} e WHERE e.{owner} = c.owner AND e.kind = c.kind AND e.type = 1)`, storage.Relations, storage.RelationInbox)

	// Served by the primary key.
	sqlCountsOfKinds = db.ForSides(`
SELECT kind, {count}
FROM relation_counts
WHERE owner = ?`, storage.Relations, storage.RelationInbox)

	// The items of one owner's edges, see [Store.eachPart]. Served by the primary key.
	sqlItemsOfPeers = db.Both(`
SELECT {post_id}, COUNT(*)
FROM {table} INDEXED BY sqlite_autoindex_{table}_1
WHERE {owner} > ? AND {owner} <= ? AND type = 1
GROUP BY {post_id}`).ForSides(storage.FavoriteInbox, storage.Relations, storage.RelationInbox)

	// Served by {list}.
	sqlEdgesOfItem = db.ForSides(`
SELECT COUNT(*)
FROM {table} /*! FORCE INDEX ({list}) */
WHERE {owner} = ? AND {post_id} = ? AND type = 1`, storage.FavoriteInbox, storage.Relations, storage.RelationInbox)

	// Served by the primary key.
	sqlSetKindCount = db.ForSides(`
UPDATE relation_counts
SET {count} = ?
WHERE owner = ? AND kind = ? AND {count} <> ?`, storage.Relations, storage.RelationInbox)
)

// WrongItemCounts implements [sides.Comparer].
func (s *Store) WrongItemCounts(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange) ([]sides.WrongCount, error) {
	if owners.UpTo-owners.After == 1 {
		return s.wrongItemsOfOwner(ctx, side, shard, owners, func() error { return nil })
	}
	texts := []string{sqlWrongKindCounts[side], sqlKindCountsOfNone[side]}
	if side == storage.FavoriteInbox {
		texts = []string{sqlWrongPostCounts, sqlPostCountsOfNone}
	}
	return s.wrongIn(ctx, "reconcile.itemcounts", shard, owners, ofItems, texts...)
}

// wrongItemsOfOwner counts the edges of one owner's items, of which there may be a billion, in parts, all of one moment. It calls begin before each.
func (s *Store) wrongItemsOfOwner(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange, begin func() error) ([]sides.WrongCount, error) {
	if !isOf(owners, owners.UpTo) {
		return nil, nil
	}
	counted, ofNone := sqlCountsOfKinds[side], sqlKindCountsOfNone[side]
	if side == storage.FavoriteInbox {
		counted, ofNone = sqlCountsOfPosts, sqlPostCountsOfNone
	}
	wrong := make(map[storage.PostID]sides.WrongCount)
	err := s.db.ReadMoment(ctx, shard, func(m *db.Moment) error {
		read := func(text string, args []any, found func(item, n int64)) error {
			return m.Scan(ctx, "reconcile.itemcounts", text, args, db.EachEntry(db.TwoColumns, found))
		}
		err := read(counted, []any{int64(owners.UpTo)}, func(item, n int64) {
			wrong[storage.PostID{Author: owners.UpTo, Number: item}] = sides.WrongCount{User: owners.UpTo, Item: item, Have: n}
		})
		if err != nil {
			return err
		}
		err = s.eachPart(ctx, m.Scan, side, owners, s.sql.Text(sqlItemsOfPeers[side]), func(text string, args []any) error {
			if err := begin(); err != nil {
				return err
			}
			return read(text, args, func(item, n int64) {
				id := storage.PostID{Author: owners.UpTo, Number: item}
				if w, known := wrong[id]; known || side != storage.FavoriteInbox { // posts that have been deleted count nothing
					wrong[id] = sides.WrongCount{User: id.Author, Item: item, Have: w.Have, Are: w.Are + n}
				}
			})
		})
		if err != nil {
			return err
		}
		maps.DeleteFunc(wrong, func(_ storage.PostID, w sides.WrongCount) bool { return w.Have == w.Are })
		return m.Scan(ctx, "reconcile.itemcounts", ofNone, []any{int64(owners.After), int64(owners.UpTo)}, db.EachRow(ofItems, func(w sides.WrongCount) {
			wrong[storage.PostID{Author: w.User, Number: w.Item}] = w
		}))
	})
	return sortedCounts(wrong), err
}

// RecountItems implements [sides.Repairer], in the lock order of [Store.Apply]. Each owner takes
// one transaction.
func (s *Store) RecountItems(ctx context.Context, side storage.Side, items []storage.PostID) []storage.Result[bool] {
	shardOf := func(id storage.PostID) int { return s.shards.Of(id.Author) }
	return recountByShard(ctx, s, items, shardOf, func(shard int, items []storage.PostID) error {
		byOwner := make(map[storage.UserID][]storage.PostID)
		for _, id := range items {
			byOwner[id.Author] = append(byOwner[id.Author], id)
		}
		for owner, items := range byOwner {
			many, err := s.hasMany(ctx, side, shard, owner)
			switch {
			case err != nil:
			case many:
				err = s.recountMany(ctx, shard, owner, func(renew func() error) ([]sides.WrongCount, error) {
					return s.wrongItemsOfOwner(ctx, side, shard, sides.OwnerRange{After: owner - 1, UpTo: owner}, renew)
				}, func(w *writer, wrong []sides.WrongCount) error { return w.correctItems(side, wrong) })
			default:
				err = s.transactOn(ctx, "recount.items", shard, func(w *writer) error { return w.recountItems(side, owner, items) })
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// correctItems adds to counts of items of one owner, who is locked, what they are off.
func (w *writer) correctItems(side storage.Side, wrong []sides.WrongCount) error {
	posts, kinds := make(map[storage.PostID]int64), make(map[storage.OwnerKind]storage.KindCount)
	for _, c := range wrong {
		off := c.Are - c.Have
		switch side {
		case storage.FavoriteInbox:
			posts[storage.PostID{Author: c.User, Number: c.Item}] = off
		case storage.Relations:
			kinds[storage.OwnerKind{Owner: c.User, Kind: c.Item}] = storage.KindCount{Outgoing: off}
		default:
			kinds[storage.OwnerKind{Owner: c.User, Kind: c.Item}] = storage.KindCount{Incoming: off}
		}
	}
	w.unchanged(nil)
	err := w.countFavorites(posts)
	if err == nil {
		err = w.countKinds(kinds)
	}
	if err == nil {
		err = w.removeUnneeded(nil)
	}
	return err
}

func (w *writer) recountItems(side storage.Side, owner storage.UserID, items []storage.PostID) error {
	if err := w.lockCounts([]storage.UserID{owner}); err != nil {
		return err
	}
	for _, id := range slices.SortedFunc(slices.Values(items), storage.PostID.Compare) {
		set := sqlSetKindCount[side]
		if side == storage.FavoriteInbox {
			set = sqlSetPostFavorites
			w.touchPost(id)
		} else if err := w.countKinds(map[storage.OwnerKind]storage.KindCount{{Owner: owner, Kind: id.Number}: {}}); err != nil {
			return err
		}
		var n int64
		if _, err := w.ReadOne(sqlEdgesOfItem[side], []any{int64(owner), id.Number}, &n); err != nil {
			return err
		}
		if _, err := w.Exec(1, set, n, int64(owner), id.Number, n); err != nil {
			return err
		}
	}
	w.unchanged(nil)
	return w.removeUnneeded(nil)
}
