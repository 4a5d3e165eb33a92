package sqlstore

import (
	"context"
	"database/sql"
	"math"
	"slices"

	"kith/storage"
	"kith/storage/contents"
	"kith/storage/sqlstore/internal/db"
)

// Served by the primary keys.
var sqlUsersOfShard = db.WithColumns(`
SELECT u.user_id, {u.times}, {u.choices},
  s.state,
  u.handle, {u.texts}, u.attributes
FROM users u
LEFT JOIN user_states s ON s.user_id = u.user_id
WHERE u.user_id > ?
ORDER BY u.user_id LIMIT ?`)

// Served by the primary keys.
var (
	edgesInOrder = storage.Each(storage.AllSides[:], func(side storage.Side) db.InOrder {
		return db.ReadInOrder(db.OfSide("{owner}, {peer}, type, update_time{, post_id}", side), side.String(), " AND (type <> 0 OR update_time <> 0)")
	})

	annotationsInOrder = [len(storage.AnnotationKinds)]db.InOrder{
		storage.AnnotationMark:    db.ReadInOrder("from_user_id, to_user_id, special, remark, 0, attributes", "edge_marks", ""),
		storage.AnnotationMessage: db.ReadInOrder("from_user_id, to_user_id, 0, message, 0, ''", "friend_request", " AND from_user_id <= ? AND type = 1 AND message <> ''"),
		storage.AnnotationFirst:   db.ReadInOrder("from_user_id, to_user_id, 0, '', first_at, ''", "following", " AND from_user_id <= ? AND first_at IS NOT NULL"),
	}
)

// The rest of the rows of a pair. Served by the primary key.
var sqlRestOfPair = db.ForSides(`
SELECT from_user_id, to_user_id, type, update_time{, post_id}
FROM {table} /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id = ?{ AND post_id > ?} AND (type <> 0 OR update_time <> 0)
ORDER BY {post_id} LIMIT ?`, storage.Favorites, storage.Relations)

// ReadShard implements [contents.Reader].
func (s *Store) ReadShard(ctx context.Context, shard int, read func(contents.Moment) error) error {
	_ = s.db.Refresh(ctx) // so that Shards counts new ones; the moment itself reads what the shard has
	return s.db.ReadMoment(ctx, shard, func(m *db.Moment) error {
		served, err := m.Served(ctx)
		if err != nil {
			return err
		}
		return read(moment{m, s.sql, served})
	})
}

// moment implements [contents.Moment].
type moment struct {
	*db.Moment
	sql    *db.Dialect
	served storage.Choice
}

func (m moment) Served() storage.Choice { return m.served }

func (m moment) Users(ctx context.Context, after storage.UserID, limit int) ([]contents.Account, error) {
	var users []contents.Account
	row := newUserRow(1 + 1)
	err := m.Scan(ctx, "shard.users", sqlUsersOfShard, []any{int64(after), limit}, row.Each(func() {
		users = append(users, contents.Account{
			User:  nextUser(storage.UserID(row.Next()), row),
			State: storage.UserState(row.Next()),
		})
	}))
	return users, err
}

func (m moment) Rows(ctx context.Context, side storage.Side, after storage.Pair, limit int) ([]storage.Edge, error) {
	var edges []storage.Edge
	each := eachEdge(side, func(e storage.Edge) { edges = append(edges, e) })
	if side.HasItem() && after.From > 0 {
		if err := m.Scan(ctx, "shard.rows", sqlRestOfPair[side], []any{int64(after.From), int64(after.To), after.Item, limit}, each); err != nil {
			return nil, err
		}
	}
	if len(edges) == limit {
		return edges, nil
	}
	return edges, m.behind(ctx, after, limit-len(edges), edgesInOrder[side], each)
}

func (m moment) Relations(ctx context.Context, after storage.Pair, limit int) ([]storage.RelationRow, error) {
	edges, err := m.Rows(ctx, storage.Relations, after, limit)
	rows := storage.Each(edges, func(e storage.Edge) storage.RelationRow { return storage.RelationRow{Edge: e} })
	at := make(map[storage.Pair]int, len(rows))
	for i, row := range rows {
		at[row.Pair()] = i
	}
	for chunk := range slices.Chunk(storage.Each(edges, storage.Edge.Pair), m.sql.MaxPairs*2/3) {
		text, args := detailsStatement(m.sql, chunk)
		if err == nil {
			err = m.Scan(ctx, "shard.details", text, args, db.EachEntry(detailColumns, func(p storage.Pair, d storage.Detail) { rows[at[p]].Detail = d }))
		}
	}
	return rows, err
}

// ownersAtOnce is of how many users one statement looks for rows that few have.
const ownersAtOnce = 5000

// Annotations implements [contents.Moment]. Few requests have messages, and few follows are not the first: no index leads to those, and one
// statement that went through all rows until it had found enough would take longer than a statement may.
func (m moment) Annotations(ctx context.Context, kind storage.AnnotationKind, after storage.Pair, limit int) (list []storage.Annotation, err error) {
	columns := func(b *storage.Annotation) []any {
		return []any{&b.From, &b.To, &b.Special, &b.Text, &b.At, &b.Attributes}
	}
	if kind == storage.AnnotationMark {
		return readInOrder(ctx, m, annotationsInOrder[kind], after.From, int64(after.To), limit, columns)
	}
	for more := true; more && err == nil && len(list) < limit; {
		upTo := storage.UserID(math.MaxInt64)
		more = false
		err = m.Scan(ctx, "shard.owners", sqlNextOwner, []any{int64(after.From), ownersAtOnce - 1}, func(rows *sql.Rows) error {
			more = true
			return rows.Scan(&upTo)
		})
		if err != nil {
			break
		}
		var page []storage.Annotation
		page, err = readInOrder(ctx, m, annotationsInOrder[kind], after.From, int64(after.To), limit-len(list), columns, int64(upTo))
		list, after = append(list, page...), storage.Pair{From: upTo, To: math.MaxInt64}
	}
	return list, err
}

// readInOrder reads rows behind a key, whose columns are values of T. bounds are the arguments of the condition, if it has any.
func readInOrder[T any](ctx context.Context, m moment, from db.InOrder, owner storage.UserID, key int64, limit int, columns func(*T) []any, bounds ...any) (list []T, err error) {
	err = m.behind(ctx, storage.Pair{From: owner, To: storage.UserID(key)}, limit, from, db.AppendTo(&list, columns), bounds...)
	return list, err
}

// behind reads the rest of an owner's rows, and then those of the owners behind.
func (m moment) behind(ctx context.Context, after storage.Pair, limit int, from db.InOrder, each func(*sql.Rows) error, bounds ...any) error {
	left := limit
	count := func(rows *sql.Rows) error {
		left--
		return each(rows)
	}
	if after.From > 0 && after.To < math.MaxInt64 {
		if err := m.Scan(ctx, "shard.rows", from.Rest, slices.Concat([]any{int64(after.From), int64(after.To)}, bounds, []any{left}), count); err != nil {
			return err
		}
	}
	if left == 0 {
		return nil
	}
	return m.Scan(ctx, "shard.rows", m.sql.Text(from.Behind), slices.Concat([]any{int64(after.From)}, bounds, []any{left}), count)
}
