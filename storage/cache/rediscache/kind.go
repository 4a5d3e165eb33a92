package rediscache

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/cache/packing"
)

// A kind is one sort of cached value: what is asked for, what is kept under one key, and which
// scripts read and write it.
type kind[Q comparable, V any] interface {
	name() string

	// widen returns what is read from the store in place of a query, so that the kept value answers
	// other queries, too. narrow returns the answer to a query from what was read or kept.
	widen(Q) Q
	narrow(V, Q) V

	read(ctx context.Context, source storage.Snapshots, queries []Q) []storage.Result[V]

	// get, fill and release call scripts. parse reads what get returned for a kept value.
	get(ctx context.Context, pipe redis.Pipeliner, e *epoch, q Q, token string, lease time.Duration) *redis.Cmd
	parse(reply any, q Q) (storage.Result[V], error)
	fill(ctx context.Context, pipe redis.Pipeliner, e *epoch, q Q, v V, token string, life time.Duration) *redis.Cmd
	release(ctx context.Context, pipe redis.Pipeliner, e *epoch, q Q, token string) *redis.Cmd

	// nothing reports whether a value says that there is nothing in the store.
	nothing(V) bool
	drop(ctx context.Context, pipe redis.Pipeliner, e *epoch, q Q)
}

// users is the kind of profiles with counts.
type users struct{}

func (users) name() string                                               { return "user" }
func (users) widen(id storage.UserID) storage.UserID                     { return id }
func (users) narrow(p storage.Profile, _ storage.UserID) storage.Profile { return p }
func (users) nothing(p storage.Profile) bool                             { return !p.Exists && !p.Counted }

func (users) read(ctx context.Context, source storage.Snapshots, ids []storage.UserID) []storage.Result[storage.Profile] {
	return source.Profiles(ctx, ids)
}

func (users) get(ctx context.Context, pipe redis.Pipeliner, e *epoch, id storage.UserID, token string, lease time.Duration) *redis.Cmd {
	return userGet.call(ctx, pipe, []string{e.user(id)}, token, lease.Milliseconds())
}

func (users) parse(reply any, id storage.UserID) (storage.Result[storage.Profile], error) {
	fields, ok := reply.([]any)
	if !ok || len(fields) != 3 {
		return storage.Result[storage.Profile]{}, errMalformed
	}
	var texts [3]string
	for i := range fields {
		texts[i], _ = fields[i].(string)
	}
	p, err := parseUser(id, texts[0], texts[1], texts[2])
	return storage.Result[storage.Profile]{Value: p, Found: p.Exists || p.Counted}, err
}

func (users) fill(ctx context.Context, pipe redis.Pipeliner, e *epoch, id storage.UserID, p storage.Profile, token string, life time.Duration) *redis.Cmd {
	return userFill.call(ctx, pipe, []string{e.user(id)}, token, p.Counts.Version, packing.AppendProfile(nil, p), packing.AppendCounts(nil, p.Counts), life.Milliseconds())
}

func (users) release(ctx context.Context, pipe redis.Pipeliner, e *epoch, id storage.UserID, token string) *redis.Cmd {
	return userRelease.call(ctx, pipe, []string{e.user(id)}, token)
}

func (users) drop(ctx context.Context, pipe redis.Pipeliner, e *epoch, id storage.UserID) {
	pipe.Unlink(ctx, e.user(id))
}

// lists is the kind of whole lists of one side.
type lists struct{ side storage.Side }

func (l lists) name() string              { return l.side.String() }
func (lists) nothing(l storage.List) bool { return l.Version == 0 && !l.Long && len(l.Edges) == 0 }

// endedEarlier is how much further back than asked for tombstones are kept: the clocks of gateways
// differ, and each asks for a time of its own.
const endedEarlier = storage.Micros(60_000_000)

func (lists) widen(q storage.ListQuery) storage.ListQuery {
	if q.EndedSince > 0 {
		q.EndedSince = max(0, q.EndedSince-endedEarlier)
	}
	return q
}

// narrow drops from a list read for a wider query what this query does not ask for.
func (lists) narrow(l storage.List, q storage.ListQuery) storage.List {
	follows, tooOld := 0, 0
	for _, e := range l.Edges {
		switch {
		case e.Type == storage.Following:
			follows++
		case e.Type == storage.None && e.UpdateTime < q.EndedSince:
			tooOld++
		}
	}
	switch {
	case l.Long, follows > q.Longest:
		return storage.List{Version: l.Version, Long: true}
	case tooOld == 0:
		return l
	}
	narrowed := storage.List{Version: l.Version, Edges: make([]storage.Edge, 0, len(l.Edges)-tooOld)}
	for _, e := range l.Edges {
		if e.Type != storage.None || e.UpdateTime >= q.EndedSince {
			narrowed.Edges = append(narrowed.Edges, e)
		}
	}
	return narrowed
}

func (l lists) read(ctx context.Context, source storage.Snapshots, queries []storage.ListQuery) []storage.Result[storage.List] {
	return source.Lists(ctx, l.side, queries)
}

func (l lists) get(ctx context.Context, pipe redis.Pipeliner, e *epoch, q storage.ListQuery, token string, lease time.Duration) *redis.Cmd {
	return listGet.call(ctx, pipe, []string{e.list(l.side, q.Owner)}, token, lease.Milliseconds(), q.Longest, int64(q.EndedSince))
}

func (l lists) parse(reply any, q storage.ListQuery) (storage.Result[storage.List], error) {
	text, ok := reply.(string)
	if !ok {
		return storage.Result[storage.List]{}, errMalformed
	}
	k, err := parseList(l.side, q.Owner, text)
	return storage.Result[storage.List]{Value: k.list, Found: true}, err
}

func (l lists) fill(ctx context.Context, pipe redis.Pipeliner, e *epoch, q storage.ListQuery, list storage.List, token string, life time.Duration) *redis.Cmd {
	data := listBytes(l.side, kept{list, q.Longest, q.EndedSince})
	return listFill.call(ctx, pipe, []string{e.list(l.side, q.Owner)}, token, list.Version, data, life.Milliseconds())
}

func (l lists) release(ctx context.Context, pipe redis.Pipeliner, e *epoch, q storage.ListQuery, token string) *redis.Cmd {
	return listRelease.call(ctx, pipe, []string{e.list(l.side, q.Owner)}, token)
}

func (l lists) drop(ctx context.Context, pipe redis.Pipeliner, e *epoch, q storage.ListQuery) {
	pipe.Unlink(ctx, e.list(l.side, q.Owner))
}

// inEight is a version as written in marks.
func inEight(version int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(version)) }
