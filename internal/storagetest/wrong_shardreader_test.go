package storagetest_test

import (
	"context"
	"slices"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes in reading whole shards.
var shardReaderMistakes = []mistake{
	{"a shard is read as it becomes", func(s *oracle.Store) storage.Store { return readsOnAndOn{s} }, "shardReader/AllIsOfOneMoment", promiseOnly},
	{"history is left out", momentsWith(func(m *wrongMoment) {
		m.row = func(e storage.Edge) bool { return e.Type != storage.None }
	}), "shardReader/EveryRowComesInKeyOrder", promiseOnly},
	{"pages of rows begin with an owner", momentsWith(func(m *wrongMoment) {
		m.after = func(p storage.Pair) storage.Pair { return storage.Pair{From: p.From, To: 1<<63 - 1} }
	}), "shardReader/EveryRowComesInKeyOrder", promiseOnly},
	{"pages of favorites begin with an author", momentsWith(func(m *wrongMoment) {
		m.after = func(p storage.Pair) storage.Pair {
			if p.Item > 0 {
				p.Item = 1<<63 - 1
			}
			return p
		}
	}), "shardReader/EveryRowComesInKeyOrder", promiseOnly},
	{"relations are read without details", momentsWith(func(m *wrongMoment) {
		m.detail = func(storage.Detail) storage.Detail { return storage.Detail{} }
	}), "shardReader/RelationsHaveTheirDetails", promiseOnly},
	{"hidden users are left out", momentsWith(func(m *wrongMoment) {
		m.user = func(u *storage.UserWithState) bool { return u.State == storage.Active }
	}), "shardReader/StatesComeAlong", promiseOnly},
	{"everybody is active", momentsWith(func(m *wrongMoment) {
		m.user = func(u *storage.UserWithState) bool { u.State = storage.Active; return true }
	}), "shardReader/StatesComeAlong", promiseOnly},
	{"read users are open to all", momentsWith(func(m *wrongMoment) {
		m.user = func(u *storage.UserWithState) bool { u.User.FollowersVisibility = storage.ToEveryone; return true }
	}), "shardReader/EveryUserComesOnceOnItsShard", promiseOnly},
	{"identities are read to the first page", momentsWith(func(m *wrongMoment) { m.firstIdentities = true }), "shardReader/EveryIdentityComesOnceInItsBucket", promiseOnly},
	{"pages of the log begin with an owner", momentsWith(func(m *wrongMoment) {
		m.after = func(p storage.Pair) storage.Pair { return storage.Pair{From: p.From, To: 1<<63 - 1} }
	}), "moderation/EveryEntryComesOnceWithItsShard", promiseOnly},
	{"pages of lists begin with an owner", momentsWith(func(m *wrongMoment) {
		m.after = func(p storage.Pair) storage.Pair { return storage.Pair{From: p.From, To: 1<<63 - 1} }
	}), "userLists/TheyAreRestored", promiseOnly},
	{"the reader's error is kept", func(s *oracle.Store) storage.Store { return keepsErrors{s} }, "shardReader/TheReadersErrorComesBack", promiseOnly},
}

// readsOnAndOn uses a new moment for each page.
type readsOnAndOn struct{ *oracle.Store }

func (s readsOnAndOn) ReadShard(_ context.Context, _ int, read func(storage.ShardMoment) error) error {
	return read(nowOf{s.Store})
}

// nowOf is a store as it is at the time of each call.
type nowOf struct{ store *oracle.Store }

func (n nowOf) Served() (served storage.Choice) {
	_ = n.store.ReadShard(context.Background(), 0, func(m storage.ShardMoment) error {
		served = m.Served()
		return nil
	})
	return served
}

func (n nowOf) Users(ctx context.Context, after storage.UserID, limit int) (page []storage.UserWithState, err error) {
	err = n.store.ReadShard(ctx, 0, func(m storage.ShardMoment) error {
		page, err = m.Users(ctx, after, limit)
		return err
	})
	return page, err
}

func (n nowOf) Rows(ctx context.Context, side storage.Side, after storage.Pair, limit int) (page []storage.Edge, err error) {
	err = n.store.ReadShard(ctx, 0, func(m storage.ShardMoment) error {
		page, err = m.Rows(ctx, side, after, limit)
		return err
	})
	return page, err
}

func (n nowOf) Relations(ctx context.Context, after storage.Pair, limit int) (page []storage.RelationRow, err error) {
	err = n.store.ReadShard(ctx, 0, func(m storage.ShardMoment) error {
		page, err = m.Relations(ctx, after, limit)
		return err
	})
	return page, err
}

func (n nowOf) Annotations(ctx context.Context, kind storage.AnnotationKind, after storage.Pair, limit int) (page []storage.Annotation, err error) {
	err = n.store.ReadShard(ctx, 0, func(m storage.ShardMoment) error {
		page, err = m.Annotations(ctx, kind, after, limit)
		return err
	})
	return page, err
}

func (n nowOf) Posts(ctx context.Context, after storage.PostID, limit int) (page []storage.PostRow, err error) {
	err = n.store.ReadShard(ctx, 0, func(m storage.ShardMoment) error {
		page, err = m.Posts(ctx, after, limit)
		return err
	})
	return page, err
}

func (n nowOf) Comments(ctx context.Context, after storage.CommentID, limit int) (page []storage.Comment, err error) {
	err = n.store.ReadShard(ctx, 0, func(m storage.ShardMoment) error {
		page, err = m.Comments(ctx, after, limit)
		return err
	})
	return page, err
}

func (n nowOf) Identities(ctx context.Context, after string, limit int) (page []storage.LinkedIdentity, err error) {
	err = n.store.ReadShard(ctx, 0, func(m storage.ShardMoment) error {
		page, err = m.Identities(ctx, after, limit)
		return err
	})
	return page, err
}

func (n nowOf) Moderation(ctx context.Context, after storage.ModerationEntry, limit int) (page []storage.ModerationEntry, err error) {
	err = n.store.ReadShard(ctx, 0, func(m storage.ShardMoment) error {
		page, err = m.Moderation(ctx, after, limit)
		return err
	})
	return page, err
}

func (n nowOf) Lists(ctx context.Context, after storage.ListID, limit int) (page []storage.UserList, err error) {
	err = n.store.ReadShard(ctx, 0, func(m storage.ShardMoment) error {
		page, err = m.Lists(ctx, after, limit)
		return err
	})
	return page, err
}

// wrongMoments changes what a moment says.
type wrongMoments struct {
	*oracle.Store
	set func(*wrongMoment)
}

func momentsWith(set func(*wrongMoment)) func(*oracle.Store) storage.Store {
	return func(s *oracle.Store) storage.Store { return wrongMoments{s, set} }
}

func (s wrongMoments) ReadShard(ctx context.Context, shard int, read func(storage.ShardMoment) error) error {
	return s.Store.ReadShard(ctx, shard, func(right storage.ShardMoment) error {
		m := &wrongMoment{
			right:  right,
			user:   func(*storage.UserWithState) bool { return true },
			row:    func(storage.Edge) bool { return true },
			post:   func(storage.PostRow) bool { return true },
			after:  func(p storage.Pair) storage.Pair { return p },
			detail: func(d storage.Detail) storage.Detail { return d },
		}
		s.set(m)
		return read(m)
	})
}

type wrongMoment struct {
	right  storage.ShardMoment
	detail func(storage.Detail) storage.Detail
	user   func(*storage.UserWithState) bool
	row    func(storage.Edge) bool
	post   func(storage.PostRow) bool
	after  func(storage.Pair) storage.Pair

	firstIdentities bool // no page after the first
}

func (m *wrongMoment) Served() storage.Choice { return m.right.Served() }

func (m *wrongMoment) Users(ctx context.Context, after storage.UserID, limit int) ([]storage.UserWithState, error) {
	all, err := m.right.Users(ctx, after, 1e6)
	kept := all[:0]
	for _, u := range all {
		if m.user(&u) {
			kept = append(kept, u)
		}
	}
	return kept[:min(limit, len(kept))], err
}

func (m *wrongMoment) Rows(ctx context.Context, side storage.Side, after storage.Pair, limit int) ([]storage.Edge, error) {
	all, err := m.right.Rows(ctx, side, m.after(after), 1e6)
	all = slices.DeleteFunc(all, func(e storage.Edge) bool { return !m.row(e) })
	return all[:min(limit, len(all))], err
}

func (m *wrongMoment) Relations(ctx context.Context, after storage.Pair, limit int) ([]storage.RelationRow, error) {
	rows, err := m.right.Relations(ctx, after, limit)
	for i := range rows {
		rows[i].Detail = m.detail(rows[i].Detail)
	}
	return rows, err
}

func (m *wrongMoment) Annotations(ctx context.Context, kind storage.AnnotationKind, after storage.Pair, limit int) ([]storage.Annotation, error) {
	return m.right.Annotations(ctx, kind, m.after(after), limit)
}

func (m *wrongMoment) Posts(ctx context.Context, after storage.PostID, limit int) ([]storage.PostRow, error) {
	all, err := m.right.Posts(ctx, after, 1e6)
	all = slices.DeleteFunc(all, func(p storage.PostRow) bool { return !m.post(p) })
	return all[:min(limit, len(all))], err
}

func (m *wrongMoment) Comments(ctx context.Context, after storage.CommentID, limit int) ([]storage.Comment, error) {
	last := m.after(storage.Pair{From: after.Author, To: storage.UserID(after.Number)})
	return m.right.Comments(ctx, storage.CommentID{Author: last.From, Number: int64(last.To)}, limit)
}

func (m *wrongMoment) Identities(ctx context.Context, after string, limit int) ([]storage.LinkedIdentity, error) {
	if m.firstIdentities && after != "" {
		return nil, nil
	}
	return m.right.Identities(ctx, after, limit)
}

// Moderation begins each page with an owner if after does.
func (m *wrongMoment) Lists(ctx context.Context, after storage.ListID, limit int) ([]storage.UserList, error) {
	pair := m.after(storage.Pair{From: after.Owner, To: storage.UserID(after.Number)})
	return m.right.Lists(ctx, storage.ListID{Owner: pair.From, Number: int64(pair.To)}, limit)
}

func (m *wrongMoment) Moderation(ctx context.Context, after storage.ModerationEntry, limit int) ([]storage.ModerationEntry, error) {
	last := m.after(storage.Pair{From: after.Owner, To: storage.UserID(after.At)})
	after.Owner, after.At = last.From, storage.Micros(last.To)
	return m.right.Moderation(ctx, after, limit)
}

type keepsErrors struct{ *oracle.Store }

func (s keepsErrors) ReadShard(ctx context.Context, shard int, read func(storage.ShardMoment) error) error {
	return s.Store.ReadShard(ctx, shard, func(m storage.ShardMoment) error {
		_ = read(m)
		return nil
	})
}
