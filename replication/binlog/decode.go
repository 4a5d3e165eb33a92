package binlog

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"kith/replication/binlog/replica"
	"kith/storage"
)

// A table is a table of the store, as replication sees it.
type table uint8

const (
	foreign table = iota
	users
	userCounts
	userStates
	postCounts  // every change of a post raises its version there
	comments    // inserts are new comments
	bookkeeping // written all the time by running programs: checkpoints, leases
	mover       // written first by transactions that copy or remove rows of buckets that move
	edges       // of the first of [storage.AllSides]; those of the others follow

	follower = edges + table(storage.Inverse)
)

var tables = func() map[string]table {
	all := map[string]table{
		"users": users, "user_counts": userCounts, "user_states": userStates, "post_counts": postCounts, "comment": comments,
		"kith_checkpoints": bookkeeping, "kith_leases": bookkeeping, "kith_mover": mover,
	}
	for _, side := range storage.AllSides {
		all[side.String()] = edges + table(side)
	}
	return all
}()

// isEdges reports whether the table holds edges, isInverse whether replication writes it.
func (t table) isEdges() bool   { return t >= edges }
func (t table) isInverse() bool { return t.isEdges() && t.side().IsInverse() }

// side is the store's name for the table of edges.
func (t table) side() storage.Side { return storage.Side(t - edges) }

// tableNames are the tables whose rows must change only row by row.
var tableNames = append(storage.Each(storage.AllSides[:], storage.Side.String), "users", "user_counts", "user_states")

// tableOf returns which table of the store this is, if the database belongs to the store.
func (a *assembler) tableOf(schema, name string) table {
	if !slices.Contains(a.databases, schema) {
		return foreign
	}
	return tables[name]
}

// A mapped table is what the last table map of an id says. A server repeats the map in every transaction,
// so it is parsed again only if its bytes differ.
type mapped struct {
	table table
	body  []byte
	info  *replica.Table // nil for tables of which no rows are read
}

// mapped notes what a table map says. Rows of other tables are skipped without parsing them: most rows of a binlog have been written by
// replication itself, and tables of others may have columns that this program cannot read.
func (a *assembler) mapped(e replica.Event) (*mapped, error) {
	id, err := e.TableID()
	if err != nil {
		return nil, err
	}
	if known := a.known[id]; known != nil && bytes.Equal(known.body, e.Body()) {
		return known, nil
	}
	info, err := e.Table(slotOf)
	unknown := errors.Is(err, replica.ErrUnknown)
	if err != nil && !unknown {
		return nil, err
	}
	if a.joined != nil && tables[info.Name] != foreign && !slices.Contains(a.databases, info.Schema) {
		if is, err := a.joined(info.Schema); err != nil {
			return nil, err
		} else if is {
			a.databases = append(slices.Clip(a.databases), info.Schema)
		}
	}
	m := &mapped{table: a.tableOf(info.Schema, info.Name), body: bytes.Clone(e.Body())}
	if a.reads(m.table, replica.Deleted) {
		if unknown {
			delete(a.known, id)
			return m, a.stop(err.Error(), remedyOfColumns)
		}
		m.info = info
	}
	if a.known == nil {
		a.known = map[uint64]*mapped{}
	}
	a.known[id] = m
	return m, nil
}

// reads reports whether rows of a table are parsed. Replication itself writes the rows of inverse
// tables, so they are parsed only if they are deleted, because most of them must not be deleted.
func (a *assembler) reads(t table, what replica.Operation) bool {
	return t != foreign && t != bookkeeping && t != mover && (t.isEdges() || a.values) && (!t.isInverse() || what == replica.Deleted || a.both)
}

// A column that is read of any table.
type column int

const (
	fromUser column = iota
	toUser
	kind
	updateTime
	user
	version
	followingCount
	followerCount
	friendCount
	postCount
	favoriteCount
	totalFavorited
	post
	author
	comment
	columns
)

var columnNames = [columns]string{
	"from_user_id", "to_user_id", "type", "update_time", "user_id", "version", "following_count", "follower_count", "friend_count",
	"post_count", "favorite_count", "total_favorited", "post_id", "author_id", "comment_id",
}

var columnOf = func() map[string]column {
	of := make(map[string]column, columns)
	for c, name := range columnNames {
		of[name] = column(c)
	}
	of["kind"] = post // the item of an edge
	return of
}()

// slotOf is the place in a [row] where a column's value goes, −1 if it is not read.
func slotOf(name string) int {
	if c, ok := columnOf[name]; ok {
		return int(c)
	}
	return -1
}

// A row is the columns of a table's row that are read; nil if there is none.
type row []replica.Value

// number is the value of a column, 0 if it has none.
func (r row) number(c column) int64 {
	if r == nil || !r[c].OK {
		return 0
	}
	return r[c].N
}

// counted reads a row of user_counts; before is nil if it was inserted.
func (r row) counted(before row) storage.UserChange {
	return storage.UserChange{User: storage.UserID(r.number(user)), What: storage.Beside, Before: before.number(version), Counts: storage.Counts{
		Following: r.number(followingCount), Follower: r.number(followerCount), Friend: r.number(friendCount),
		Posts: r.number(postCount), Favorites: r.number(favoriteCount), Favorited: r.number(totalFavorited),
		Version: r.number(version),
	}}
}

// post reads a row of post_counts or comment.
func (r row) post(news storage.PostNews) storage.ChangedPost {
	id := storage.PostID{Author: storage.UserID(r.number(author)), Number: r.number(post)}
	return storage.ChangedPost{PostAt: storage.PostAt{PostID: id}, News: news, Comment: r.number(comment)}
}

// edge reads a row of a table of edges.
func (r row) edge(of storage.Side) (storage.Edge, error) {
	for _, c := range [...]column{fromUser, toUser, kind, updateTime, post} {
		if !r[c].OK && (c != post || of.HasItem()) {
			return storage.Edge{}, fmt.Errorf("a row of edges has no %s", columnNames[c])
		}
	}
	if r[kind].N < 0 || r[kind].N > math.MaxUint8 {
		return storage.Edge{}, fmt.Errorf("a row of edges has type %d", r[kind].N)
	}
	return storage.Edge{
		Item:       r[post].N,
		From:       storage.UserID(r[fromUser].N),
		To:         storage.UserID(r[toUser].N),
		Type:       storage.EdgeType(r[kind].N),
		UpdateTime: storage.Micros(r[updateTime].N),
	}, nil
}
