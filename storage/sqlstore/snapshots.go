package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"kith/storage"
)

// What caches keep has to be of one moment, and on every engine one statement is. So what is
// asked for comes as a table of its own, to which all else is joined: an owner is answered
// whether it has a user, counts, edges or nothing, and a list is left unread by its count.
// On MariaDB that takes about as long as a join from an IN list, for a single profile some 10 µs
// longer, and two thirds of the time of a UNION ALL of the parts.
const (
	// Served by the primary keys.
	sqlProfiles = `
SELECT wanted.user_id, c.version, c.following_count, c.follower_count, c.friend_count,
  u.created_at, u.updated_at, u.followings_visibility, u.followers_visibility, u.undiscoverable,
  u.handle, u.name, u.bio, u.avatar_url
FROM {wanted}
LEFT JOIN user_counts c ON c.user_id = wanted.user_id
LEFT JOIN users u ON u.user_id = wanted.user_id`

	// Served by the primary keys, so that peers ascend: all ids are positive, and SQLite takes
	// the list index unless it is told something of the peer. The bound is in the key that is
	// looked up: as a condition beside it MariaDB asks it of every row of a list, which takes
	// 80 ms where there are a million.
	sqlLists = `
SELECT wanted.query, COALESCE(c.version, 0), COALESCE(c.{count}, 0), {is packed}, e.{peer}, e.type, e.update_time
FROM {wanted}
LEFT JOIN user_counts c ON c.user_id = wanted.owner
LEFT JOIN {table} e{by key}
  ON e.{owner} = CASE WHEN COALESCE(c.{count}, 0) <= wanted.longest AND NOT {is packed} THEN wanted.owner END
  AND e.{peer} > 0 AND (e.type <> 0 OR e.update_time >= wanted.ended_since)`
)

// Profiles implements [storage.Snapshots].
func (s *Store) Profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	return lookUp(s, ids, s.sql.maxPages, s.place.Of, func(shard int, ids []storage.UserID, found func(storage.UserID, storage.Profile)) error {
		wanted := filled(ids)
		text := s.fromWanted(sqlProfiles, len(wanted), "user_id")
		row := newNumbers(10)
		var handle, name, bio, avatar sql.RawBytes
		into := append(slices.Clone(row.into), &handle, &name, &bio, &avatar)
		return s.query(ctx, "profiles", shard, len(ids), text, arguments(wanted), func(rows *sql.Rows) error {
			if err := rows.Scan(into...); err != nil {
				return err
			}
			p := storage.Profile{Counted: !row.isNull(1), Exists: !row.isNull(5)}
			id := storage.UserID(row.at(0))
			p.Counts = storage.Counts{Version: row.at(1), Following: row.at(2), Follower: row.at(3), Friend: row.at(4)}
			if p.Exists {
				p.User = storage.User{
					ID: id, Handle: string(handle), Name: string(name), Bio: string(bio), AvatarURL: string(avatar),
					CreatedAt: storage.Micros(row.at(5)), UpdatedAt: storage.Micros(row.at(6)),
					FollowingsVisibility: storage.Visibility(row.at(7)), FollowersVisibility: storage.Visibility(row.at(8)),
					Undiscoverable: row.at(9) != 0,
				}
			}
			if p.Exists || p.Counted {
				found(id, p)
			}
			return row.err
		})
	})
}

// Lists implements [storage.Snapshots]. Lists that are packed are read after the others.
func (s *Store) Lists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	shardOf := func(q storage.ListQuery) int { return s.place.Of(q.Owner) }
	return lookUp(s, queries, s.sql.maxPages, shardOf, func(shard int, queries []storage.ListQuery, found func(storage.ListQuery, storage.List)) error {
		packed, err := s.listRows(ctx, side, shard, queries, true, found)
		for _, q := range packed {
			if err == nil {
				err = s.packedList(ctx, side, shard, q, found)
			}
		}
		return err
	})
}

// listRows reads lists of one shard row by row, but leaves those that are packed, if it
// is told so.
func (s *Store) listRows(
	ctx context.Context, side storage.Side, shard int, queries []storage.ListQuery, leave bool, found func(storage.ListQuery, storage.List),
) (packed []storage.ListQuery, err error) {
	t := tableOf(side)
	if t.count == "" {
		return nil, fmt.Errorf("read the lists of %s: they are not counted", t.name)
	}
	text := t.spell(strings.NewReplacer("{count}", t.count, "{by key}", s.sql.byKey).Replace(sqlLists))
	if !leave {
		text = strings.ReplaceAll(text, "{is packed}", "0")
	}
	text = s.fromWanted(packedSpelled(side, text), len(queries), "query", "owner", "longest", "ended_since")
	args := make([]any, 0, 4*len(queries))
	for i, q := range queries {
		args = append(args, i, int64(q.Owner), int64(q.Longest), int64(q.EndedSince))
	}
	lists := make([]storage.List, len(queries))
	row := newNumbers(7)
	err = s.query(ctx, "lists."+side.String(), shard, len(queries), text, args, func(rows *sql.Rows) error {
		if err := rows.Scan(row.into...); err != nil {
			return err
		}
		q, list, count := queries[row.at(0)], &lists[row.at(0)], row.at(2)
		list.Version = row.at(1)
		list.Long = count > int64(q.Longest)
		if row.at(3) != 0 && !list.Long {
			packed = append(packed, q)
		}
		if row.isNull(4) { // no edge
			return row.err
		}
		if list.Edges == nil {
			list.Edges = make([]storage.Edge, 0, min(count, maxForeseen)+1)
		}
		pair := side.Pair(q.Owner, storage.UserID(row.at(4)))
		list.Edges = append(list.Edges, storage.Edge{
			From: pair.From, To: pair.To, Type: storage.EdgeType(row.at(5)), UpdateTime: storage.Micros(row.at(6)),
		})
		return row.err
	})
	for i, q := range queries {
		sortByPeer(side, lists[i].Edges)
		found(q, lists[i])
	}
	return packed, err
}

// maxForeseen bounds the edges that room is made for before they come: a count may be wrong.
const maxForeseen = 1 << 20

// sortByPeer sorts only if the engine has taken another index than the one named above.
func sortByPeer(side storage.Side, edges []storage.Edge) {
	ascending := func(a, b storage.Edge) int { return cmp.Compare(side.Peer(a.Pair()), side.Peer(b.Pair())) }
	if !slices.IsSortedFunc(edges, ascending) {
		slices.SortFunc(edges, ascending)
	}
}

// fromWanted fills a table of so many rows, whose values come as arguments, into a
// statement.
func (s *Store) fromWanted(text string, rows int, columns ...string) string {
	with, table := s.sql.wanted(columns, rows)
	return with + strings.Replace(text, "{wanted}", table, 1)
}

// numbers is a row's whole numbers, with NULLs among them. They are scanned as the driver
// gives them, because database/sql takes every other target through reflection. That
// counts where a list has a million rows.
type numbers struct {
	values []any
	into   []any // what Scan takes
	err    error // a value that was no whole number
}

func newNumbers(n int) *numbers {
	row := &numbers{values: make([]any, n), into: make([]any, n)}
	for i := range row.values {
		row.into[i] = &row.values[i]
	}
	return row
}

func (n *numbers) isNull(i int) bool { return n.values[i] == nil }

// at is a value; 0 where it is NULL.
func (n *numbers) at(i int) int64 {
	switch v := n.values[i].(type) {
	case int64:
		return v
	case uint64:
		return int64(v)
	case nil:
	default:
		n.err = fmt.Errorf("column %d is %v (%T), not a whole number", i, v, v)
	}
	return 0
}
