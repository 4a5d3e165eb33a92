package sqlstore

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
	"kith/storage/sqlstore/internal/packed"
)

// Users with their counts, by one look-up by key for each. A user without a row in users is asked
// for once more. Served by the primary keys.
var sqlProfilesByKey = db.WithColumns(`
SELECT u.user_id, {u.times}, {u.choices},
  c.version, {c.counts},
  u.handle, {u.texts}, u.attributes
FROM users u
LEFT JOIN user_counts c ON c.user_id = u.user_id
WHERE u.user_id IN (?)`)

// Answers that caches keep have to be as of one moment, and on every engine one statement is. An
// owner is answered whether it has a user, counts, edges or nothing. A list that is too long by its
// count is not read. Nearly every owner has a user and counts, so these are looked up by key first.
// For the others there is a statement in which the keys are a table of their own, and everything
// else is joined to it. That takes half as long again on MariaDB.
//
// Served by the primary keys.
var sqlProfiles = db.WithColumns(`
SELECT wanted.user_id, c.version, {c.counts},
  {u.times}, {u.choices},
  u.handle, {u.texts}, u.attributes
FROM (SELECT ? AS user_id) wanted
LEFT JOIN user_counts c ON c.user_id = wanted.user_id
LEFT JOIN users u ON u.user_id = wanted.user_id`)

// Lists of owners with counts, each as it is packed (shortlists.go), or else as one text of its edges' types, peers and times: a
// row for each edge takes the driver, and the server, twice as long. Long lists that are packed, and lists that are
// longer than asked for, have neither. Served by the primary keys. The bound is in the key that is
// looked up: if it were a condition beside the key, MariaDB would check it for every row of a list,
// which takes 80 ms for a million rows.
var sqlListTexts = db.Both(`
SELECT c.user_id, c.version, c.{count}, (c.packed & {whole} <> 0 AND c.packed_version = c.version), s.data,
  (SELECT GROUP_CONCAT(e.type || e.{peer} || ' ' || e.update_time) FROM {table} e
   WHERE e.{owner} = CASE WHEN s.owner IS NULL AND c.{count} <= ? AND NOT (c.packed & {whole} <> 0 AND c.packed_version = c.version) THEN c.user_id END
     AND e.{peer} > 0 AND (e.type NOT IN (0, 4) OR e.update_time >= ?))
FROM user_counts c
LEFT JOIN packed_short s ON s.owner = c.user_id AND s.side = {side} AND s.version = c.version AND c.{count} <= ?
WHERE c.user_id IN (?)`).ForSides(db.Follows...)

// Lists row by row, except those that are packed. Served by the primary keys, so that peers ascend: all
// ids are positive, and SQLite takes the list index unless there is a condition on the peer. The bound is in the key, as above.
var sqlLists = db.ForSides(`
SELECT wanted.query, COALESCE(c.version, 0), COALESCE(c.{count}, 0), (COALESCE(c.packed, 0) & {whole} <> 0 AND c.packed_version = c.version), e.{peer}, e.type, e.update_time
FROM (SELECT ? AS query, ? AS owner, ? AS longest, ? AS ended_since) wanted
LEFT JOIN user_counts c ON c.user_id = wanted.owner
LEFT JOIN {table} e /*! FORCE INDEX (PRIMARY) */
  ON e.{owner} = CASE WHEN COALESCE(c.{count}, 0) <= wanted.longest AND NOT (COALESCE(c.packed, 0) & {whole} <> 0 AND c.packed_version = c.version) THEN wanted.owner END
  AND e.{peer} > 0 AND (e.type NOT IN (0, 4) OR e.update_time >= wanted.ended_since)`, db.Follows...)

// One list, also one that is packed. Served by the primary keys.
var sqlList = db.ForSides(`
SELECT wanted.query, COALESCE(c.version, 0), COALESCE(c.{count}, 0), 0, e.{peer}, e.type, e.update_time
FROM (SELECT ? AS query, ? AS owner, ? AS longest, ? AS ended_since) wanted
LEFT JOIN user_counts c ON c.user_id = wanted.owner
LEFT JOIN {table} e /*! FORCE INDEX (PRIMARY) */
  ON e.{owner} = CASE WHEN COALESCE(c.{count}, 0) <= wanted.longest THEN wanted.owner END
  AND e.{peer} > 0 AND (e.type NOT IN (0, 4) OR e.update_time >= wanted.ended_since)`, db.Follows...)

// readProfiles answers [storage.ProfileLookups].
func (s *Store) readProfiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	results := s.profilesByKey(ctx, ids)
	var rest []storage.UserID // those who are not in users
	var at []int
	for i, r := range results {
		if r.Err == nil && !r.Found {
			rest, at = append(rest, ids[i]), append(at, i)
		}
	}
	for k, r := range s.profilesOfAnybody(ctx, rest) {
		results[at[k]] = r
	}
	return results
}

func (s *Store) profilesByKey(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	return db.LookUp(s.db, ids, s.sql.MaxKeys, s.shards.Of, func(shard int, ids []storage.UserID, found func(storage.UserID, storage.Profile)) error {
		text, args := db.In(sqlProfilesByKey, ids)
		row := newUserRow(1 + countNumbers)
		return s.db.Query(ctx, "profiles", shard, len(ids), text, args, row.Each(func() {
			p := storage.Profile{Exists: true, User: nextUser(storage.UserID(row.Next()), row), Counted: !row.NextIsNull()}
			p.Counts = nextCounts(row)
			found(p.User.ID, p)
		}))
	})
}

// profilesOfAnybody also reads the counts of owners who are not in users. Metrics name these look-ups "counts".
func (s *Store) profilesOfAnybody(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	return db.LookUp(s.db, ids, s.sql.MaxKeys, s.shards.Of, func(shard int, ids []storage.UserID, found func(storage.UserID, storage.Profile)) error {
		wanted := db.Filled(ids)
		text := db.Listed(sqlProfiles, len(wanted))
		row := newUserRow(1 + countNumbers)
		return s.db.Query(ctx, "counts", shard, len(ids), text, db.Arguments(wanted), row.Each(func() {
			id := storage.UserID(row.Next())
			p := storage.Profile{Counted: !row.NextIsNull(), Counts: nextCounts(row)}
			if p.Exists = !row.NextIsNull(); p.Exists {
				p.User = nextUser(id, row)
			}
			if p.Exists || p.Counted {
				found(id, p)
			}
		}))
	})
}

// readLists answers [storage.SnapshotLookups]. Lists that are packed are read after the others.
func (s *Store) readLists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	shardOf := func(q storage.ListQuery) int { return s.shards.Of(q.Owner) }
	return db.LookUp(s.db, queries, s.sql.MaxPages, shardOf, func(shard int, queries []storage.ListQuery, found func(storage.ListQuery, storage.List)) error {
		byRow, whole, err := s.listTexts(ctx, "lists."+side.String(), side, shard, queries, found, s.packShortSoon)
		if err == nil && len(byRow) > 0 {
			var more []storage.ListQuery
			more, err = s.listRows(ctx, side, shard, db.Listed(sqlLists[side], len(byRow)), byRow, found)
			whole = append(whole, more...)
		}
		for _, q := range whole {
			if err == nil {
				err = s.packedList(ctx, side, shard, q, found)
			}
		}
		return err
	})
}

// mostInText is the length up to which a list is read as one text. Ended edges and blocks come in addition; a text that is
// too long is not trusted.
const mostInText = 5000

// listTexts reads lists of one shard as they are packed, or as texts. It leaves out long lists that are packed, and lists that have
// to be read row by row: those of owners without counts, who may have rows all the same, those that are too long for a text, and all on
// TiDB. It also passes lists that were read as texts to asText.
func (s *Store) listTexts(
	ctx context.Context, what string, side storage.Side, shard int, queries []storage.ListQuery, found func(storage.ListQuery, storage.List),
	asText func(storage.Side, storage.UserID, int64, storage.List),
) (byRow, whole []storage.ListQuery, err error) {
	if s.db.Dialect.ScansSubqueries {
		return queries, nil, nil
	}
	first := queries[0]
	asked := make(map[storage.UserID]storage.ListQuery, len(queries))
	owners := make([]storage.UserID, 0, len(queries))
	for _, q := range queries {
		if _, twice := asked[q.Owner]; twice || q.Longest != first.Longest || q.EndedSince != first.EndedSince {
			byRow = append(byRow, q)
			continue
		}
		asked[q.Owner] = q
		owners = append(owners, q.Owner)
	}
	longest := int64(min(first.Longest, mostInText))
	text, args := db.In(s.sql.Text(sqlListTexts[side]), owners, longest, int64(first.EndedSince), longest)
	err = s.db.Query(ctx, what, shard, len(owners), text, args, func(rows *sql.Rows) error {
		var owner storage.UserID
		var version, count int64
		var isPacked bool
		var short, edges sql.RawBytes
		if err := rows.Scan(&owner, &version, &count, &isPacked, &short, &edges); err != nil {
			return err
		}
		q := asked[owner]
		list := storage.List{Version: version, Long: count > int64(q.Longest)}
		switch {
		case list.Long:
			found(q, list)
		case len(short) > 0:
			var wrong error
			if list.Edges, wrong = packed.ParseShort(side, q, count, short); wrong == nil {
				found(q, list)
				delete(asked, owner)
			}
			return nil // if it is wrong, its rows are read
		case isPacked:
			whole = append(whole, q)
		case count > longest, len(edges) >= db.MaxText, len(edges) == 0 && count > 0:
			return nil // stays among those that are asked for row by row
		default:
			var ok bool
			if list.Edges, ok = parseEdges(side, owner, edges, int(min(max(0, count), db.MaxForeseen))); !ok {
				return nil
			}
			db.SortByPeer(side, list.Edges)
			found(q, list)
			asText(side, owner, count, list)
		}
		delete(asked, owner)
		return nil
	})
	return slices.AppendSeq(byRow, maps.Values(asked)), whole, err
}

// parseEdges reads edges of an owner that are separated by commas: the type, which is a digit, the peer, a space and the
// time. It is false for any other text.
func parseEdges(side storage.Side, owner storage.UserID, text []byte, foreseen int) ([]storage.Edge, bool) {
	if len(text) == 0 {
		return nil, true
	}
	edges := make([]storage.Edge, 0, foreseen+1)
	for at := 0; at < len(text); at++ { // behind the comma
		e := storage.Edge{Type: storage.EdgeType(text[at] - '0')}
		peer, n := digits(text[at+1:])
		at += 1 + n + 1
		time, n := digits(text[min(at, len(text)):])
		if at += n; n == 0 || at < len(text) && text[at] != ',' || e.Type > storage.Denied {
			return nil, false
		}
		p := side.Pair(owner, storage.UserID(peer))
		e.From, e.To, e.UpdateTime = p.From, p.To, storage.Micros(time)
		edges = append(edges, e)
	}
	return edges, text[len(text)-1] != ','
}

// digits reads the number that a text begins with, and says how long it is.
func digits(text []byte) (number int64, length int) {
	for length < len(text) && text[length]-'0' <= 9 {
		number = number*10 + int64(text[length]-'0')
		length++
	}
	return number, length
}

// packedList answers a query for a list that is packed. If it cannot be read packed, its rows are
// read.
func (s *Store) packedList(ctx context.Context, side storage.Side, shard int, q storage.ListQuery, found func(storage.ListQuery, storage.List)) error {
	list, ok, err := s.packed.List(ctx, side, shard, q)
	if err != nil {
		return err
	}
	if ok {
		found(q, list)
		return nil
	}
	_, err = s.listRows(ctx, side, shard, sqlList[side], []storage.ListQuery{q}, found)
	return err
}

// Pack implements localcache.Packer.
func (s *Store) Pack(ctx context.Context, side storage.Side, owner storage.UserID) error {
	return s.packed.Pack(ctx, side, owner)
}

// listRows reads lists of one shard row by row, and leaves out those that are packed, unless the statement reads these, too.
func (s *Store) listRows(
	ctx context.Context, side storage.Side, shard int, text string, queries []storage.ListQuery, found func(storage.ListQuery, storage.List),
) (left []storage.ListQuery, err error) {
	args := make([]any, 0, 4*len(queries))
	for i, q := range queries {
		args = append(args, i, int64(q.Owner), int64(q.Longest), int64(q.EndedSince))
	}
	lists := make([]storage.List, len(queries))
	row := db.NewNumbers(7, 0)
	err = s.db.Query(ctx, "lists."+side.String(), shard, len(queries), text, args, row.Each(func() {
		q, list, count := queries[row.At(0)], &lists[row.At(0)], row.At(2)
		list.Version = row.At(1)
		list.Long = count > int64(q.Longest)
		if row.At(3) != 0 && !list.Long {
			left = append(left, q)
		}
		if row.IsNull(4) { // no edge
			return
		}
		if list.Edges == nil {
			list.Edges = make([]storage.Edge, 0, min(max(count, 0), db.MaxForeseen)+1)
		}
		pair := side.Pair(q.Owner, storage.UserID(row.At(4)))
		list.Edges = append(list.Edges, pair.Edge(storage.EdgeType(row.At(5)), storage.Micros(row.At(6))))
	}))
	for i, q := range queries {
		db.SortByPeer(side, lists[i].Edges)
		found(q, lists[i])
	}
	return left, err
}
