package sqlstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore"
)

// If an Erase is cut off after any of its statements, the next one finishes it, even if another
// user has registered the handle in between.
func TestEraseContinuesAfterACrash(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { eraseWithCrashes(t, sqlite(t, 2)) })
	t.Run("MariaDB", func(t *testing.T) { eraseWithCrashes(t, mysql(testenv.SharedMariaDB(t, 2).FreshDatabases(t, 2))) })
}

func eraseWithCrashes(t *testing.T, location string) {
	var ran atomic.Int64 // statements of several shards run at once
	var stopBehind int64
	var crash context.CancelFunc
	store := opened.Store(t, sqlstore.Config{
		Location: location, StatementTimeout: generous,
		OnStatement: func(context.Context, sqlstore.Statement) {
			if ran.Add(1) == stopBehind {
				crash()
			}
		},
	})

	for n := 1; ; n++ {
		user := storage.User{ID: storage.UserID(10 * n), Handle: fmt.Sprintf("user_%d", n), Name: "A"}
		next := storage.User{ID: user.ID + 1, Handle: user.Handle, Name: "B", CreatedAt: judge.HandleRest + 2*judge.ClaimTTL}
		surrounded(t, store, user)

		var ctx context.Context
		ctx, crash = context.WithCancel(t.Context())
		ran.Store(0)
		stopBehind = int64(n)
		err := store.Erase(ctx, user.ID, 30)
		whole := err == nil && ran.Load() < int64(n)
		crash()
		stopBehind = 0
		registered := store.Register(t.Context(), next, "hash") == nil
		err = store.Erase(t.Context(), user.ID, 40)
		must.That(t, err == nil, "again, behind statement %d: %v", n, err)
		wantErased(t, store, user)
		if owner := storage.HandleLookups.Read(t.Context(), store, user.Handle)[0]; owner.Value != map[bool]storage.UserID{true: next.ID, false: user.ID}[registered] {
			t.Errorf("behind statement %d: the handle is that of %+v; registered: %v", n, owner, registered)
		}
		if whole {
			must.That(t, n >= 10, "only %d statements were cut off", n)
			return
		}
	}
}

// More identities, or more posts commented on, than one step removes are removed in several.
func TestEraseTakesSeveralSteps(t *testing.T) {
	const users, more = 2, 501 // a step removes 500
	location := sqlite(t, 1)
	store := opened.Store(t, sqlstore.Config{Location: location, StatementTimeout: generous})
	db := connect(t, strings.TrimPrefix(location, "sqlite:"))
	for id := range storage.UserID(users) {
		surrounded(t, store, storage.User{ID: id + 1, Handle: fmt.Sprintf("user_%d", id+1), Name: "A"})
	}
	for n := range more {
		_, err := db.ExecContext(t.Context(), `INSERT INTO identities (digest, user_id, issuer, subject, linked_at) VALUES (?, 1, 'i', 's', 1)`, fmt.Sprint("digest ", n))
		if err == nil {
			_, err = db.ExecContext(t.Context(), `INSERT INTO comment (author_id, comment_id, post_id, user_id, client_key, text, created_at) VALUES (7, ?, ?, 2, 'k', 'x', 1)`, n+1, n+1)
		}
		must.OK(t, err)
	}
	for id := range storage.UserID(users) {
		must.OK(t, store.Erase(t.Context(), id+1, 30))
	}
	var identities, comments int
	must.OK(t, db.QueryRowContext(t.Context(), `SELECT (SELECT COUNT(*) FROM identities), (SELECT COUNT(*) FROM comment)`).Scan(&identities, &comments))
	check.That(t, identities+comments == 0, "%d identities and %d comments are left", identities, comments)
}

// surrounded makes a user in state Deleting with rows of every kind.
func surrounded(t *testing.T, store *sqlstore.Store, user storage.User) {
	t.Helper()
	ctx := t.Context()
	pair := storage.Pair{From: user.ID, To: 7}
	remark := "x"
	err := store.Register(ctx, user, "hash")
	if err == nil {
		err = store.Apply(ctx, storage.Forward, []storage.Edge{{From: pair.From, To: pair.To, Type: storage.Following, UpdateTime: 1}}, storage.IfNewer)[0].Err
	}
	if err == nil {
		_, _, err = store.SetMark(ctx, pair, storage.MarkChange{Remark: &remark})
	}
	if err == nil {
		_, err = store.SetState(ctx, user.ID, storage.Deleting, 20)
	}
	must.OK(t, err)
}

// wantErased also writes the edge that surrounded has written once more, as a late event does. The
// edge changes nothing, and creates no counts.
func wantErased(t *testing.T, store *sqlstore.Store, user storage.User) {
	t.Helper()
	ctx, ids := t.Context(), []storage.UserID{user.ID}
	late := storage.Edge{From: user.ID, To: 7, Type: storage.Following, UpdateTime: 1}
	r := store.Apply(ctx, storage.Forward, []storage.Edge{late}, storage.IfNewer)[0]
	check.That(t, r.Err == nil && !r.Value.Changed, "the late event of user %d: %+v", user.ID, r)
	state := storage.StateLookups.Read(ctx, store, ids...)[0]
	check.That(t, state.Err == nil && state.Value.State == storage.Deleted, "user %d has state %+v", user.ID, state)
	left := map[string]bool{
		"user":   storage.UserLookups.Read(ctx, store, ids...)[0].Found,
		"counts": storage.CountLookups.Read(ctx, store, ids...)[0].Found,
		"mark":   storage.MarkLookups.Read(ctx, store, storage.Pair{From: user.ID, To: 7})[0].Found,
	}
	for what, is := range left {
		check.That(t, !is, "user %d has its %s yet", user.ID, what)
	}
}
