package storagetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// cancellation: a call whose context has ended answers every key with an error,
// and writes nothing.
type cancellation struct{ *harness }

func (s cancellation) ReadsAreRefused(t *testing.T) {
	known := s.newUsers(t, 2)
	ids, handles := idsOf(known), handlesOf(known)
	rows := []storage.Edge{follow(storage.Forward, ids[0], ids[1], 1), follow(storage.Forward, ids[1], ids[0], 2)}
	ctx := ended(t)

	wantEnded(t, "users", storage.UserLookups.Read(ctx, s.store, ids...), 2)
	wantEnded(t, "handles", storage.HandleLookups.Read(ctx, s.store, handles...), 2)
	wantEnded(t, "counts", storage.CountLookups.Read(ctx, s.store, ids...), 2)
	eachSide(t, func(t *testing.T, side storage.Side) {
		s.apply(t, side, rows...)
		wantEnded(t, "edges", storage.EdgeLookups[side].Read(ctx, s.store, pairsOf(rows)...), 2)
		wantEnded(t, "neighbours", storage.NeighbourLookups[side].Read(ctx, s.store, ids...), 2)
		wantEnded(t, "pages", storage.PageLookups[side].Read(ctx, s.store, storage.PageQuery{Owner: ids[0], Limit: 1}, storage.PageQuery{Owner: ids[1], Limit: 1}), 2)
	})
}

func (s cancellation) NoUserIsMade(t *testing.T) {
	users := []storage.User{person(s.id()), person(s.id())}
	wantEnded(t, "users", s.store.CreateUsers(ended(t), users), 2)
	wantMissing(t, storage.UserLookups.Read(t.Context(), s.store, idsOf(users)...), 2)
	wantMissing(t, storage.CountLookups.Read(t.Context(), s.store, idsOf(users)...), 2)
	wantList(t, "made later", answers(t, s.store.CreateUsers(t.Context(), users), 2), []bool{true, true})
}

func (s cancellation) NoEdgeIsWritten(t *testing.T, side storage.Side) {
	owners, peer := s.ids(8), s.id()
	rows := storage.Each(owners, func(owner storage.UserID) storage.Edge { return follow(side, owner, peer, 1) })
	wantEnded(t, "edges", s.store.Apply(ended(t), side, rows, storage.IfNewer), len(rows))
	wantMissing(t, storage.EdgeLookups[side].Read(t.Context(), s.store, pairsOf(rows)...), len(rows))
	wantMissing(t, storage.CountLookups.Read(t.Context(), s.store, owners...), len(owners))
}

func (s cancellation) NoEdgeIsChanged(t *testing.T) {
	from, to := s.newUsers(t, 1)[0].ID, s.ids(3)
	counts := s.countsOf(t, from)
	wantEnded(t, "changes", s.store.ChangeEdges(ended(t), storage.Forward, from, changeAll(to, storage.Following, 1), withInverse), 3)
	eachSide(t, func(t *testing.T, side storage.Side) {
		wantMissing(t, storage.EdgeLookups[side].Read(t.Context(), s.store, pairsFrom(from, to...)...), 3)
	})
	wantEqual(t, "counts", s.countsOf(t, from), counts)
}

func (s cancellation) NoAccountIsChanged(t *testing.T) {
	old, user, name := person(s.id()), person(s.id()), "Changed"
	s.register(t, old)
	ids := []storage.UserID{old.ID}
	wantEndedErr(t, "register", s.store.Register(ended(t), user, "hash"))
	wantMissing(t, storage.UserLookups.Read(t.Context(), s.store, user.ID), 1)
	s.register(t, user)

	_, err := s.store.SetPassword(ended(t), old.ID, storage.PasswordChange{Old: hashOf(old.ID), New: "hash", At: at(9), EndsTokens: true})
	wantEndedErr(t, "set password", err)
	_, _, err = s.store.UpdateProfile(ended(t), old.ID, storage.ProfileChange{Name: &name}, at(9))
	wantEndedErr(t, "update profile", err)
	wantEnded(t, "passwords", storage.PasswordLookups.Read(ended(t), s.store, ids...), 1)
	wantEqual(t, "user", s.userOf(t, old.ID), old)
	wantList(t, "password", found(t, storage.PasswordLookups.Read(t.Context(), s.store, ids...), 1), []storage.Password{{Hash: hashOf(old.ID)}})
}

func (s cancellation) NoIdentityIsLinked(t *testing.T) {
	id := []storage.Identity{identities(s).identity()}
	wantEndedErr(t, "link", s.store.LinkIdentity(ended(t), id[0], s.id(), at(1)))
	wantEnded(t, "identities", storage.IdentityLookups.Read(ended(t), s.store, id...), 1)
	wantEnded(t, "restored", s.store.Restore(ended(t), storage.Restored{Identities: []storage.LinkedIdentity{{Identity: id[0], User: s.id(), At: at(1)}}}), 1)
	wantMissing(t, storage.IdentityLookups.Read(t.Context(), s.store, id...), 1)
	user := s.id()
	identities(s).link(t, id[0], user)
	_, err := s.store.UnlinkIdentity(ended(t), id[0], user)
	wantEndedErr(t, "unlink", err)
	_, err = storage.LinkLookups.Get(ended(t), s.store, user)
	wantEndedErr(t, "identities", err)
	identities(s).wantOwners(t, id, user)
}

func (s cancellation) NoPostIsWritten(t *testing.T) {
	post := s.post(t, s.newUsers(t, 1)[0].ID, 1)
	c, text := s.comment(t, post.PostID, s.id(), 1), "changed"
	_, _, err := s.store.Publish(ended(t), s.newPost(post.Author, 2))
	wantEndedErr(t, "publish", err)
	_, _, err = s.store.EditPost(ended(t), post.PostID, storage.PostChange{Text: &text}, at(3))
	wantEndedErr(t, "edit", err)
	_, err = changeFavorite(ended(t), s.store, post.Author, favorite(post.PostID, 1), storage.ChangeOptions{})
	wantEndedErr(t, "favorite", err)
	_, err = s.store.DeletePost(ended(t), post.PostID)
	wantEndedErr(t, "delete", err)
	_, _, err = s.store.AddComment(ended(t), s.newComment(post.PostID, s.id(), 2))
	wantEndedErr(t, "comment", err)
	_, err = s.store.DeleteComment(ended(t), c.CommentID, c.By)
	wantEndedErr(t, "delete a comment", err)
	_, err = storage.LatestPostLookups.Get(ended(t), s.store, storage.PlaceQuery{After: storage.Place{}, Limit: 1})
	wantEndedErr(t, "latest posts", err)
	_, err = storage.RecentPostLookups.Get(ended(t), s.store, storage.ShardQuery[storage.Place]{Limit: 1})
	wantEndedErr(t, "recent posts", err)
	post.Counts = storage.PostCounts{Comments: 1, Version: post.Counts.Version + 1}
	s.wantPost(t, post)
	wantEqual(t, "posts", s.countsOf(t, post.Author).Posts, 1)
}

func (s cancellation) NoSlotIsLeased(t *testing.T) {
	_, err := s.store.Lease(ended(t), "ended", "one", 1, at(0), at(100))
	wantEndedErr(t, "lease", err)
	_, err = s.store.Lease(t.Context(), "ended", "another", 1, at(0), at(100))
	check.Is(t, "lease", err, nil)
	wantEndedErr(t, "release", s.store.Release(ended(t), "ended", "another", 0))
	_, err = s.store.Lease(t.Context(), "ended", "one", 1, at(1), at(100))
	wantIs(t, err, storage.ErrNoLease)
}

func (s cancellation) EmptyAndPingReportIt(t *testing.T) {
	_, err := storage.IsEmpty(ended(t), s.store)
	check.That(t, err != nil, "empty: no error")
	for _, shard := range s.store.Ping(ended(t)) {
		check.That(t, shard.Err != nil, "ping: shard %d has no error", shard.Shard)
	}
}

// ended is a context that was cancelled already.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func wantEnded[V any](t *testing.T, what string, results []storage.Result[V], n int) {
	t.Helper()
	must.That(t, len(results) == n, "%s: %d results for %d keys", what, len(results), n)
	for i, result := range results {
		wantEndedErr(t, fmt.Sprintf("%s: key %d", what, i), result.Err)
		check.That(t, !result.Found, "%s: key %d: found in spite of an error", what, i)
	}
}

func wantEndedErr(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, context.Canceled) && !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("%s: error is %v, want %v or %v", what, err, context.Canceled, storage.ErrUnavailable)
	}
}
