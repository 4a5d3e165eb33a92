package rediscache

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/wire"
)

// A kind is one sort of cached value: what is asked for, what is kept under one key, and which
// scripts read and write it.
type kind[Q comparable, V any] interface {
	name() string
	key(*epoch, Q) string

	read(ctx context.Context, source storage.Snapshots, queries []Q) []storage.Result[V]

	// get is the script that asks for a value, with its arguments after the token and the lease. parse returns the answer to the
	// query from the kept value that it returned.
	get(Q) (script *redis.Script, args []any)
	parse(reply any, q Q) (storage.Result[V], error)

	// fill is the script that stores a value, with the version and the arguments after the TTL.
	fill(Q, V) (script *redis.Script, version int64, args []any)

	// nothing reports whether a value says that there is nothing in the store.
	nothing(V) bool
}

// users is the kind of profiles with counts.
type users struct{}

func (users) name() string                           { return "user" }
func (users) key(e *epoch, id storage.UserID) string { return e.user(id) }
func (users) nothing(p storage.Profile) bool         { return !p.Exists && !p.Counted }

func (users) read(ctx context.Context, source storage.Snapshots, ids []storage.UserID) []storage.Result[storage.Profile] {
	return source.Profiles(ctx, ids)
}

func (users) get(storage.UserID) (*redis.Script, []any) { return userGet, nil }

func (u users) parse(reply any, id storage.UserID) (storage.Result[storage.Profile], error) {
	fields, ok := reply.([]any)
	if !ok || len(fields) != 3 {
		return storage.Result[storage.Profile]{}, errMalformed
	}
	var texts [3]string
	for i := range fields {
		texts[i], _ = fields[i].(string)
	}
	p, err := parseUser(id, texts[0], texts[1], texts[2])
	return storage.Result[storage.Profile]{Value: p, Found: !u.nothing(p)}, err
}

func (users) fill(_ storage.UserID, p storage.Profile) (*redis.Script, int64, []any) {
	return userFill, p.Counts.Version, []any{wire.AppendProfile(nil, p), wire.AppendCounts(nil, p.Counts)}
}

// lists is the kind of whole lists of one side.
type lists struct{ side storage.Side }

func (l lists) name() string                             { return l.side.String() }
func (l lists) key(e *epoch, q storage.ListQuery) string { return e.list(l.side, q.Owner) }
func (lists) nothing(l storage.List) bool                { return l.Version == 0 && !l.Long && len(l.Edges) == 0 }
func (lists) get(q storage.ListQuery) (*redis.Script, []any) {
	return listGet, []any{q.Longest, int64(q.EndedSince)}
}

func (l lists) read(ctx context.Context, source storage.Snapshots, queries []storage.ListQuery) []storage.Result[storage.List] {
	return source.Lists(ctx, l.side, queries)
}

func (l lists) parse(reply any, q storage.ListQuery) (storage.Result[storage.List], error) {
	text, ok := reply.(string)
	if !ok {
		return storage.Result[storage.List]{}, errMalformed
	}
	list, err := parseList(l.side, q.Owner, text)
	return storage.Result[storage.List]{Value: narrowed(list, q), Found: true}, err
}

// narrowed drops from a list that was read for another query what this query does not ask for.
func narrowed(l storage.List, q storage.ListQuery) storage.List {
	l.Edges = slices.DeleteFunc(l.Edges, func(e storage.Edge) bool { return e.Type == storage.None && e.UpdateTime < q.EndedSince })
	follows := 0
	for _, e := range l.Edges {
		if e.Type == storage.Following {
			follows++
		}
	}
	if l.Long || follows > q.Longest {
		return storage.List{Version: l.Version, Long: true}
	}
	return l
}

func (l lists) fill(q storage.ListQuery, list storage.List) (*redis.Script, int64, []any) {
	return listFill, list.Version, []any{listBytes(l.side, list, q)}
}
