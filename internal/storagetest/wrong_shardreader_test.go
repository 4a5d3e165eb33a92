package storagetest_test

import (
	"context"
	"errors"
	"slices"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/contents"
)

// Mistakes in reading whole shards.
var shardReaderMistakes = []mistake{
	{"a shard is read as it becomes", func(s *oracle.Store, w *double.Store) {
		// It uses a new moment after each write.
		w.Instead.ReadShard = func(ctx context.Context, shard int, read func(contents.Moment) error) error {
			now := new(struct{ contents.Moment })
			renew := func(m contents.Moment) error { now.Moment = m; return nil }
			s.OnCommit(func(ctx context.Context, _ storage.Change) { _ = s.ReadShard(ctx, shard, renew) })
			return errors.Join(s.ReadShard(ctx, shard, renew), read(now))
		}
	}, "shardReader/AllIsOfOneMoment", promiseOnly},
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
		m.user = func(u *contents.Account) bool { return u.State == storage.Active }
	}), "shardReader/StatesComeAlong", promiseOnly},
	{"everybody is active", momentsWith(func(m *wrongMoment) {
		m.user = func(u *contents.Account) bool { u.State = storage.Active; return true }
	}), "shardReader/StatesComeAlong", promiseOnly},
	{"read users are open to all", momentsWith(func(m *wrongMoment) {
		m.user = func(u *contents.Account) bool { u.User.FollowersVisibility = storage.ToEveryone; return true }
	}), "shardReader/EveryUserComesOnceOnItsShard", promiseOnly},
	{"identities are read to the first page", momentsWith(func(m *wrongMoment) { m.firstIdentities = true }), "shardReader/EveryIdentityComesOnceInItsBucket", promiseOnly},
	{"the reader's error is kept", func(s *oracle.Store, w *double.Store) {
		w.Instead.ReadShard = func(ctx context.Context, shard int, read func(contents.Moment) error) error {
			return s.ReadShard(ctx, shard, func(m contents.Moment) error {
				_ = read(m)
				return nil
			})
		}
	}, "shardReader/TheReadersErrorComesBack", promiseOnly},
	{"pages of the log begin with an owner", momentsWith(func(m *wrongMoment) {
		m.after = func(p storage.Pair) storage.Pair { return storage.Pair{From: p.From, To: 1<<63 - 1} }
	}), "moderation/EveryEntryComesOnceWithItsShard", promiseOnly},
	{"pages of lists begin with an owner", momentsWith(func(m *wrongMoment) {
		m.after = func(p storage.Pair) storage.Pair { return storage.Pair{From: p.From, To: 1<<63 - 1} }
	}), "userLists/TheyAreRestored", promiseOnly},
}

// momentsWith changes what a moment says.
func momentsWith(set func(*wrongMoment)) spoil {
	return func(s *oracle.Store, w *double.Store) {
		w.Instead.ReadShard = func(ctx context.Context, shard int, read func(contents.Moment) error) error {
			return s.ReadShard(ctx, shard, func(right contents.Moment) error {
				m := &wrongMoment{
					Moment: right,
					user:   func(*contents.Account) bool { return true },
					row:    func(storage.Edge) bool { return true },
					post:   func(storage.PostRow) bool { return true },
					after:  func(p storage.Pair) storage.Pair { return p },
					detail: func(d storage.Detail) storage.Detail { return d },
				}
				set(m)
				return read(m)
			})
		}
	}
}

type wrongMoment struct {
	contents.Moment
	detail func(storage.Detail) storage.Detail
	user   func(*contents.Account) bool
	row    func(storage.Edge) bool
	post   func(storage.PostRow) bool
	after  func(storage.Pair) storage.Pair

	firstIdentities bool // no page after the first
}

func (m *wrongMoment) Users(ctx context.Context, after storage.UserID, limit int) ([]contents.Account, error) {
	all, err := m.Moment.Users(ctx, after, 1e6)
	kept := all[:0]
	for _, u := range all {
		if m.user(&u) {
			kept = append(kept, u)
		}
	}
	return kept[:min(limit, len(kept))], err
}

func (m *wrongMoment) Rows(ctx context.Context, side storage.Side, after storage.Pair, limit int) ([]storage.Edge, error) {
	all, err := m.Moment.Rows(ctx, side, m.after(after), 1e6)
	all = slices.DeleteFunc(all, func(e storage.Edge) bool { return !m.row(e) })
	return all[:min(limit, len(all))], err
}

func (m *wrongMoment) Relations(ctx context.Context, after storage.Pair, limit int) ([]storage.RelationRow, error) {
	rows, err := m.Moment.Relations(ctx, after, limit)
	for i := range rows {
		rows[i].Detail = m.detail(rows[i].Detail)
	}
	return rows, err
}

func (m *wrongMoment) Annotations(ctx context.Context, kind storage.AnnotationKind, after storage.Pair, limit int) ([]storage.Annotation, error) {
	return m.Moment.Annotations(ctx, kind, m.after(after), limit)
}

func (m *wrongMoment) Posts(ctx context.Context, after storage.PostID, limit int) ([]storage.PostRow, error) {
	all, err := m.Moment.Posts(ctx, after, 1e6)
	all = slices.DeleteFunc(all, func(p storage.PostRow) bool { return !m.post(p) })
	return all[:min(limit, len(all))], err
}

func (m *wrongMoment) Comments(ctx context.Context, after storage.CommentID, limit int) ([]storage.Comment, error) {
	last := m.after(storage.Pair{From: after.Author, To: storage.UserID(after.Number)})
	return m.Moment.Comments(ctx, storage.CommentID{Author: last.From, Number: int64(last.To)}, limit)
}

func (m *wrongMoment) Identities(ctx context.Context, after string, limit int) ([]storage.LinkedIdentity, error) {
	if m.firstIdentities && after != "" {
		return nil, nil
	}
	return m.Moment.Identities(ctx, after, limit)
}

// Moderation begins each page with an owner if after does.
func (m *wrongMoment) Lists(ctx context.Context, after storage.ListID, limit int) ([]storage.UserList, error) {
	pair := m.after(storage.Pair{From: after.Owner, To: storage.UserID(after.Number)})
	return m.Moment.Lists(ctx, storage.ListID{Owner: pair.From, Number: int64(pair.To)}, limit)
}

func (m *wrongMoment) Moderation(ctx context.Context, after storage.ModerationEntry, limit int) ([]storage.ModerationEntry, error) {
	last := m.after(storage.Pair{From: after.Owner, To: storage.UserID(after.At)})
	after.Owner, after.At = last.From, storage.Micros(last.To)
	return m.Moment.Moderation(ctx, after, limit)
}
