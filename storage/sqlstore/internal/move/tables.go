package move

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A table is one whose rows move with their buckets. Packed lists do not: they are made again where
// the rows have gone.
type table struct {
	name    string
	kind    db.RowKind
	keys    []string // of the primary key: a user, or a handle or digest, and perhaps another user or a post, or both
	columns []string // the others that are copied
	texts   []string // those of both that are not integers
}

var tables = []table{
	{"users", db.UserRows, []string{"user_id"}, []string{"handle", "name", "bio", "avatar_url", "password_hash", "created_at", "updated_at",
		"followings_visibility", "followers_visibility", "undiscoverable", "locked", "attributes"}, []string{"handle", "name", "bio", "avatar_url", "password_hash", "attributes"}},
	{"user_counts", db.UserRows, []string{"user_id"}, []string{"following_count", "follower_count", "version", "friend_count", "active_day", "post_count",
		"favorite_count", "total_favorited"}, nil},
	{"user_words", db.UserRows, []string{"user_id", "word"}, nil, []string{"word"}},
	{"feed_seen", db.UserRows, []string{"user_id"}, []string{"seen_at"}, nil},
	{"user_list", db.UserRows, []string{"owner", "number"}, []string{"name", "public"}, []string{"name"}},
	{"user_states", db.UserRows, []string{"user_id"}, []string{"state", "changed_at", "password_at", "suspended_at"}, nil},
	{"moderation_log", db.UserRows, []string{"owner_id", "at"}, []string{"user_id", "action", "operator", "reason", "ends_at", "number"}, []string{"operator", "reason"}},
	{"handles", db.HandleRow, []string{"handle"}, []string{"user_id", "claimed_at"}, []string{"handle"}},
	{"identities", db.IdentityRow, []string{"digest"}, []string{"user_id", "issuer", "subject", "linked_at"}, []string{"digest", "issuer", "subject"}},
	{"following", db.KindOf(storage.Forward), []string{"from_user_id", "to_user_id"}, []string{"type", "update_time", "first_at"}, nil},
	{"follower", db.KindOf(storage.Inverse), []string{"to_user_id", "from_user_id"}, []string{"type", "update_time"}, nil},
	{"friend_request", db.KindOf(storage.Requests), []string{"from_user_id", "to_user_id"}, []string{"type", "update_time", "message"}, []string{"message"}},
	{"friend_request_inbox", db.KindOf(storage.Inbox), []string{"to_user_id", "from_user_id"}, []string{"type", "update_time"}, nil},
	{"edge_marks", db.MarkRow, []string{"from_user_id", "to_user_id"}, []string{"special", "remark", "attributes"}, []string{"remark", "attributes"}},
	{"post", db.PostRows, []string{"author_id", "post_id"}, []string{"client_key", "text", "media", "created_at", "edited_at", "state", "attributes"}, []string{"client_key", "text", "media", "attributes"}},
	{"post_counts", db.PostRows, []string{"author_id", "post_id"}, []string{"comment_count", "favorite_count", "version"}, nil},
	{"favorite", db.KindOf(storage.Favorites), []string{"from_user_id", "to_user_id", "post_id"}, []string{"type", "update_time"}, nil},
	{"favorite_inbox", db.KindOf(storage.FavoriteInbox), []string{"to_user_id", "from_user_id", "post_id"}, []string{"type", "update_time"}, nil},
	{"relation", db.KindOf(storage.Relations), []string{"from_user_id", "to_user_id", "kind"}, []string{"type", "update_time", "ends_at", "attributes"}, []string{"attributes"}},
	{"relation_inbox", db.KindOf(storage.RelationInbox), []string{"to_user_id", "from_user_id", "kind"}, []string{"type", "update_time"}, nil},
	{"relation_counts", db.CountRow, []string{"owner", "kind"}, []string{"outgoing", "incoming"}, nil},
	{"comment", db.CommentRow, []string{"author_id", "comment_id"}, []string{"post_id", "user_id", "client_key", "text", "created_at"}, []string{"client_key", "text"}},
}

// packedTables are the tables from which rows that have moved away are only removed.
var packedTables = []table{
	{name: "packed_list", keys: []string{"owner", "side"}},
	{name: "packed_change", keys: []string{"owner", "side", "peer"}},
	{name: "packed_chunk", keys: []string{"owner", "side", "first_peer"}},
	{name: "packed_short", keys: []string{"owner", "side"}},
}

// A row is the values of a table's keys and columns, in that order: int64, string or nil.
type row []any

// key is the values of the keys.
func (t table) key(r row) row { return r[:len(t.keys)] }

// note is what is noted when the row of a key is written.
func (t table) note(key row) db.MovedRow {
	r := db.MovedRow{Kind: t.kind}
	switch {
	case t.kind.ByText():
		r.Handle = key[0].(string)
		return r
	case t.kind != db.UserRows:
		r.Peer = storage.UserID(key[1].(int64))
	}
	r.Owner = storage.UserID(key[0].(int64))
	return r
}

// bucket is the bucket in which a row is.
func (t table) bucket(r row) int {
	if text, ok := r[0].(string); ok {
		return storage.BucketOfHandle(text)
	}
	return storage.BucketOf(storage.UserID(r[0].(int64)))
}

// text distinguishes rows.
func (r row) text() string { return fmt.Sprintf("%#v", []any(r)) }

func (t table) all() []string { return slices.Concat(t.keys, t.columns) }

// list is the names of columns, with commas.
func list(columns []string) string { return strings.Join(columns, ", ") }

// reader reads rows: a pool of connections, or a transaction.
type reader interface {
	read(ctx context.Context, text string, args []any, each func(*sql.Rows) error) error
}

// within reads in a transaction.
type within struct{ *db.Tx }

func (w within) read(_ context.Context, text string, args []any, each func(*sql.Rows) error) error {
	return w.Read(1, text, args, each)
}

func (t table) scan(rows *sql.Rows) (row, error) {
	columns := t.all()
	numbers, strs, into := make([]sql.NullInt64, len(columns)), make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i, c := range columns {
		if into[i] = &numbers[i]; slices.Contains(t.texts, c) {
			into[i] = &strs[i]
		}
	}
	err := rows.Scan(into...)
	r := make(row, len(columns))
	for i := range columns {
		switch {
		case numbers[i].Valid:
			r[i] = numbers[i].Int64
		case strs[i].Valid:
			r[i] = strs[i].String
		}
	}
	return r, err
}

func (t table) query(ctx context.Context, from reader, text string, args []any) (rows []row, err error) {
	err = from.read(ctx, text, args, func(each *sql.Rows) error {
		r, err := t.scan(each)
		rows = append(rows, r)
		return err
	})
	return rows, err
}

// hint makes the engines read in the order of the primary key, and not sort an index.
func (t table) hint(sqlite bool) string {
	if len(t.keys) == 1 {
		return ""
	}
	if sqlite {
		return " INDEXED BY sqlite_autoindex_" + t.name + "_1"
	}
	return " FORCE INDEX (PRIMARY)"
}

// A span is a part of a table, in the order of the keys.
type span struct {
	after row                  // the rows behind a key, or behind all rows of the first columns of one; nil: from the beginning
	upTo  any                  // of the first column; nil: to the end
	of    *storage.BucketRange // only those of some buckets; nil: of all
}

// ofBuckets is a condition on the first column of a key. No index serves it: the rows of a span are read for
// it, but not sent.
func (t table) ofBuckets() string {
	return fmt.Sprintf("CRC32(%s) %% %d BETWEEN ? AND ?", t.keys[0], storage.Buckets)
}

// page reads the first rows of a span, at most so many. No engine takes a condition on several columns of a key
// for a range of its index, so there is a statement for each: first for what is left of the last key but one.
func (t table) page(ctx context.Context, from reader, sqlite bool, s span, limit int) (rows []row, err error) {
	for fixed := max(0, len(s.after)-1); fixed >= 0; fixed-- {
		var conditions []string
		var args []any
		if fixed > 0 && s.of != nil && !s.of.Contains(t.bucket(s.after)) {
			continue
		}
		for i, value := range s.after[:min(fixed+1, len(s.after))] {
			how := " = ?"
			if i == fixed {
				how = " > ?"
			}
			conditions, args = append(conditions, t.keys[i]+how), append(args, value)
		}
		if fixed == 0 && s.upTo != nil {
			conditions, args = append(conditions, t.keys[0]+" <= ?"), append(args, s.upTo)
		}
		if fixed == 0 && s.of != nil {
			conditions, args = append(conditions, t.ofBuckets()), append(args, s.of.First, s.of.Last)
		}
		where := ""
		if len(conditions) > 0 {
			where = "WHERE " + strings.Join(conditions, " AND ") + "\n"
		}
		text := fmt.Sprintf("SELECT %s\nFROM %s%s\n%sORDER BY %s LIMIT ?", list(t.all()), t.name, t.hint(sqlite), where, list(t.keys[fixed:]))
		more, err := t.query(ctx, from, text, append(args, limit-len(rows)))
		if rows = append(rows, more...); err != nil || len(rows) == limit {
			return rows, err
		}
	}
	return rows, nil
}

// bound is the first column of the key that is so many rows behind another; nil if there are fewer.
func (t table) bound(ctx context.Context, from reader, sqlite bool, after row, rows int) (upTo any, err error) {
	where, args := "", row{}
	if after != nil {
		where, args = fmt.Sprintf("WHERE %s > ?\n", t.keys[0]), slices.Clone(after[:1])
	}
	text := fmt.Sprintf("SELECT %s\nFROM %s%s\n%sORDER BY %s LIMIT 1 OFFSET ?", t.keys[0], t.name, t.hint(sqlite), where, t.keys[0])
	first := table{name: t.name, keys: t.keys[:1], texts: t.texts}
	found, err := first.query(ctx, from, text, append(args, rows-1))
	if len(found) > 0 {
		upTo = found[0][0]
	}
	return upTo, err
}

// condition is for rows by their keys, or, if of is 1, by the first one alone.
func (t table) condition(of int) string {
	if of == 1 {
		return fmt.Sprintf("WHERE %s IN (?)", t.keys[0])
	}
	return fmt.Sprintf("WHERE (%s) IN ((%s))", list(t.keys[:of]), strings.TrimSuffix(strings.Repeat("?, ", of), ", "))
}

// find reads rows by their keys, at most [atOnce] of them.
func (t table) find(ctx context.Context, from reader, keys []row) ([]row, error) {
	text := fmt.Sprintf("SELECT %s\nFROM %s\n%s", list(t.all()), t.name, t.condition(len(keys[0])))
	return t.query(ctx, from, db.Listed(text, len(keys)), slices.Concat(keys...))
}

// remove deletes rows by their keys, at most [atOnce] of them.
func (t table) remove(to *db.Tx, keys []row) error {
	text := fmt.Sprintf("DELETE FROM %s\n%s", t.name, t.condition(len(keys[0])))
	_, err := to.Exec(len(keys), db.Listed(text, len(keys)), slices.Concat(keys...)...)
	return err
}

// write puts rows in, in the place of those with the same keys, at most [atOnce] of them.
func (t table) write(to *db.Tx, rows []row) error {
	text := fmt.Sprintf("REPLACE INTO %s (%s)\nVALUES (%s)", t.name, list(t.all()), strings.TrimSuffix(strings.Repeat("?, ", len(rows[0])), ", "))
	_, err := to.Exec(len(rows), db.Listed(text, len(rows)), slices.Concat(rows...)...)
	return err
}
