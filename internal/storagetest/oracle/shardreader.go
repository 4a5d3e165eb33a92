package oracle

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/contents"
)

var _ contents.Reader = (*Store)(nil)

// ReadShard implements [contents.Reader]: it copies the store, whose only shard this is.
func (s *Store) ReadShard(ctx context.Context, _ int, read func(contents.Moment) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return read(s.moment())
}

// moment is everything that the store holds, as of now.
type moment struct {
	users  []contents.Account
	rows   map[storage.Side][]storage.Edge
	beside map[storage.AnnotationKind][]storage.Annotation

	posts    []storage.PostRow
	comments []storage.Comment

	identities []storage.LinkedIdentity
	details    map[storage.Pair]storage.Detail
	moderation []storage.ModerationEntry
	lists      []storage.UserList
}

func (s *Store) moment() *moment {
	s.mu.RLock()
	defer s.mu.RUnlock()
	m := &moment{rows: make(map[storage.Side][]storage.Edge), beside: s.allAnnotations(), posts: s.postRows(), comments: s.commentRows(), identities: s.allIdentities(), moderation: slices.Clone(s.moderation), details: maps.Clone(s.details), lists: slices.Collect(maps.Values(s.lists))}
	for _, id := range slices.Sorted(maps.Keys(s.users)) {
		m.users = append(m.users, contents.Account{User: s.users[id], State: s.states[id].State})
	}
	for _, side := range storage.Truths {
		m.rows[side] = s.edges(side)
	}
	return m
}

// Served implements [contents.Moment]: there is one shard, which has all buckets.
func (m *moment) Served() storage.Choice { return bytes.Repeat([]byte{'1'}, storage.Buckets) }

// Users implements [contents.Moment].
func (m *moment) Users(ctx context.Context, after storage.UserID, limit int) (page []contents.Account, err error) {
	for _, u := range m.users {
		if u.User.ID > after && len(page) < limit {
			page = append(page, u)
		}
	}
	return page, ctx.Err()
}

// Rows implements [contents.Moment].
func (m *moment) Rows(ctx context.Context, side storage.Side, after storage.Pair, limit int) ([]storage.Edge, error) {
	page := slices.DeleteFunc(slices.Clone(m.rows[side]), func(e storage.Edge) bool {
		return side.Compare(e.Pair(), after) <= 0 || e.Type == storage.None && e.UpdateTime == 0
	})
	return page[:min(limit, len(page))], ctx.Err()
}

// Relations implements [contents.Moment].
func (m *moment) Relations(ctx context.Context, after storage.Pair, limit int) ([]storage.RelationRow, error) {
	rows, err := m.Rows(ctx, storage.Relations, after, limit)
	return storage.Each(rows, func(e storage.Edge) storage.RelationRow {
		return storage.RelationRow{Edge: e, Detail: m.details[e.Pair()]}
	}), err
}

// Annotations implements [contents.Moment].
func (m *moment) Annotations(ctx context.Context, kind storage.AnnotationKind, after storage.Pair, limit int) ([]storage.Annotation, error) {
	page := slices.DeleteFunc(slices.Clone(m.beside[kind]), func(b storage.Annotation) bool {
		return storage.Forward.Compare(b.Pair, after) <= 0
	})
	return page[:min(limit, len(page))], ctx.Err()
}
