package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// Edges that name an item are favorites, and relations of declared kinds.

var (
	// Served by the primary key.
	sqlDetails = db.Both(`
WITH wanted(o, p, n) AS (VALUES (?, ?, ?))
SELECT from_user_id, to_user_id, kind, ends_at, attributes
FROM wanted
CROSS JOIN relation ON from_user_id = o AND to_user_id = p AND kind = n
WHERE type = 1`)

	// Served by the primary key.
	sqlKindCounts = db.Both(`
WITH wanted(o, n) AS (VALUES (?, ?))
SELECT owner, kind, outgoing, incoming
FROM wanted
CROSS JOIN relation_counts ON owner = o AND kind = n`)

	sqlCountKinds = db.Both(`
INSERT INTO relation_counts (owner, kind, outgoing, incoming)
VALUES (?, ?, ?, ?)
ON CONFLICT (owner, kind) DO UPDATE SET outgoing = outgoing + excluded.outgoing, incoming = incoming + excluded.incoming`)

	sqlWriteRelations = db.Both(`
INSERT INTO relation (from_user_id, to_user_id, kind, type, update_time, ends_at, attributes)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (from_user_id, to_user_id, kind) DO UPDATE SET
  type = excluded.type, update_time = excluded.update_time, ends_at = excluded.ends_at, attributes = excluded.attributes`)
)

// The first bound is that of SQLite's index. Served by idx_relation_end.
const sqlDueRelations = `
SELECT from_user_id, to_user_id, kind, update_time, ends_at
FROM relation
WHERE ends_at > 0 AND ends_at >= ? AND ends_at <= ?
  AND (ends_at > ? OR from_user_id > ? OR from_user_id = ? AND (to_user_id > ? OR to_user_id = ? AND kind > ?))
ORDER BY ends_at, from_user_id, to_user_id, kind LIMIT ?`

// readDetails answers [storage.DetailLookups].
func (s *Store) readDetails(ctx context.Context, pairs []storage.Pair) []storage.Result[storage.Detail] {
	return db.LookUp(s.db, pairs, s.maxPairs(storage.Relations, pairs), s.shardOfFrom, func(shard int, pairs []storage.Pair, found func(storage.Pair, storage.Detail)) error {
		text, args := detailsStatement(s.sql, pairs)
		return s.db.Query(ctx, "details", shard, len(pairs), text, args, db.EachEntry(detailColumns, func(p storage.Pair, d storage.Detail) {
			if d != (storage.Detail{}) {
				found(p, d)
			}
		}))
	})
}

func detailsStatement(dialect *db.Dialect, pairs []storage.Pair) (string, []any) {
	return db.Listed(dialect.Text(sqlDetails), len(pairs)), pairArguments(storage.Relations, pairs)
}

func detailColumns(p *storage.Pair, d *storage.Detail) []any {
	return []any{&p.From, &p.To, &p.Item, &d.EndsAt, &d.Attributes}
}

// readKindCounts answers [storage.KindLookups].
func (s *Store) readKindCounts(ctx context.Context, of []storage.OwnerKind) []storage.Result[storage.KindCount] {
	shardOf := func(k storage.OwnerKind) int { return s.shards.Of(k.Owner) }
	return db.LookUp(s.db, of, s.sql.MaxPairs, shardOf, func(shard int, of []storage.OwnerKind, found func(storage.OwnerKind, storage.KindCount)) error {
		for _, k := range of {
			found(k, storage.KindCount{})
		}
		text, args := s.kindCountsStatement(of)
		return s.db.Query(ctx, "kinds", shard, len(of), text, args, db.EachEntry(kindColumns, found))
	})
}

func (s *Store) kindCountsStatement(of []storage.OwnerKind) (string, []any) {
	var args []any
	for _, k := range of {
		args = append(args, int64(k.Owner), k.Kind)
	}
	return db.Listed(s.sql.Text(sqlKindCounts), len(of)), args
}

func kindColumns(k *storage.OwnerKind, n *storage.KindCount) []any {
	return []any{&k.Owner, &k.Kind, &n.Outgoing, &n.Incoming}
}

// readDue answers [storage.DueLookups].
func (s *Store) readDue(ctx context.Context, q storage.ShardQuery[storage.RelationRow]) ([]storage.RelationRow, error) {
	after := q.After
	return ownPage(q.Limit, func(limit int, own func(storage.RelationRow, bool)) error {
		at, from, to := int64(after.EndsAt), int64(after.From), int64(after.To)
		args := []any{at, int64(q.Until), at, from, from, to, to, after.Item, limit}
		return s.db.Query(ctx, "relations.due", q.Shard, limit, sqlDueRelations, args, db.EachRow(func(row *storage.RelationRow) []any {
			return []any{&row.From, &row.To, &row.Item, &row.UpdateTime, &row.EndsAt}
		}, func(row storage.RelationRow) {
			row.Type = storage.Related
			own(row, s.shards.Of(row.From) == q.Shard)
			after = row
		}))
	})
}

// lookItems reads what decides about changes of edges that name items.
func (c *edgeChange) lookItems() error {
	var pairs, inline, users []storage.Pair
	for _, j := range c.jobs {
		pair := storage.Pair{From: j.user, To: j.change.To, Item: j.change.Item}
		pairs = append(pairs, pair)
		if c.inverse && c.isLocal(j.change.To) {
			inline = append(inline, pair)
		}
		if j.options.Peace && j.change.Type != storage.None {
			users = append(users, storage.Pair{From: j.user, To: j.change.To})
		}
	}
	if err := c.lookRows(c.Judge, c.side, pairs); err != nil {
		return err
	}
	if err := c.lookRows(c.Judge, c.side.Replica(), inline); err != nil {
		return err
	}
	if len(users) > 0 {
		if err := c.writer.look(c.Judge, users, storage.Forward, storage.Inverse); err != nil {
			return err
		}
	}
	if c.side != storage.Relations {
		return nil
	}
	c.Details = make(map[storage.Pair]storage.Detail)
	statement := func(pairs []storage.Pair) (string, []any) { return detailsStatement(c.store.sql, pairs) }
	return db.ReadChunks(c.Tx, pairs, c.store.maxPairs(c.side, pairs), statement, db.EachEntry(detailColumns, func(p storage.Pair, d storage.Detail) { c.Details[p] = d }))
}

// lookActor reads how many edges of the kinds of its changes leave a user, and which of their lists do not exist.
// [storage.ErrUserUnknown] if the user does not exist, or is being deleted.
func (c *edgeChange) lookActor(by *judge.Actor) error {
	state, err := c.lockedState(by.User)
	if err == nil {
		err = judge.MayPublish(by.User, state.State)
	}
	by.Items = make(map[int64]int64)
	if err != nil || c.side != storage.Relations {
		return err
	}
	var kinds []storage.OwnerKind
	for _, j := range c.jobs {
		if j.user == by.User {
			kinds = append(kinds, storage.OwnerKind{Owner: j.user, Kind: j.change.Item})
		}
	}
	slices.SortFunc(kinds, func(a, b storage.OwnerKind) int { return cmp.Compare(a.Kind, b.Kind) })
	kinds = slices.Compact(kinds)
	for _, k := range kinds {
		id, is := storage.OwnerKind{Owner: by.User, Kind: k.Kind}.List()
		if !is {
			continue
		}
		if _, err := c.list(id); errors.Is(err, storage.ErrListUnknown) {
			by.NoLists = append(by.NoLists, k.Kind)
		} else if err != nil {
			return err
		}
	}
	return db.ReadChunks(c.Tx, kinds, c.store.sql.MaxPairs, c.store.kindCountsStatement, db.EachEntry(kindColumns, func(k storage.OwnerKind, n storage.KindCount) {
		by.Items[k.Kind] = n.Outgoing
	}))
}

// lookRows reads rows that name items as they are, under the lock of their owners, and on the
// FavoriteInbox side also which of the posts exist.
func (w *writer) lookRows(j *judge.Judge, side storage.Side, pairs []storage.Pair) error {
	pairs = slices.SortedFunc(slices.Values(pairs), side.Compare)
	for chunk := range slices.Chunk(slices.Compact(pairs), w.store.maxPairs(side, pairs)) {
		text, args := w.store.edgesStatement(side, chunk)
		err := w.Read(len(chunk), text, args, eachEdge(side, func(e storage.Edge) { j.Know(side, e) }))
		if err == nil && side == storage.FavoriteInbox {
			err = w.lookPosts(j, chunk)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// countKinds changes the numbers of edges of kinds of owners, who are locked, in key order.
func (w *writer) countKinds(diffs map[storage.OwnerKind]storage.KindCount) error {
	keys := slices.SortedFunc(maps.Keys(diffs), func(a, b storage.OwnerKind) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Kind, b.Kind))
	})
	_, err := db.WriteRows(w.Tx, w.store.sql.Text(sqlCountKinds), keys, func(args []any, k storage.OwnerKind) []any {
		w.Touch(db.MovedRow{Kind: db.CountRow, Owner: k.Owner, Peer: storage.UserID(k.Kind)})
		return append(args, int64(k.Owner), k.Kind, diffs[k].Outgoing, diffs[k].Incoming)
	})
	return err
}
