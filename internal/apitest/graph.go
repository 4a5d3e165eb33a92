package apitest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/must"
	"kith/storage"
)

// Epoch is when the users of [Users] were made: 2026-01-02T03:04:05.000006Z.
const Epoch storage.Micros = 1_767_323_045_000_006

// Users makes n users with the ids from 1, the handles u1, u2 … and the names
// "User 1", "User 2" …
func Users(t testing.TB, store storage.Store, n int) {
	t.Helper()
	users := make([]storage.User, n)
	for i := range users {
		id := storage.UserID(i + 1)
		users[i] = storage.User{
			ID: id, Handle: "u" + id.String(), Name: "User " + id.String(),
			CreatedAt: Epoch, UpdatedAt: Epoch,
		}
	}
	CreateUsers(t, store, users...)
}

// CreateUsers makes users.
func CreateUsers(t testing.TB, store storage.Store, users ...storage.User) {
	t.Helper()
	for i, r := range store.CreateUsers(t.Context(), users) {
		must.That(t, r.Err == nil && r.Value, "create user %s: made %t: %v", users[i].ID, r.Value, r.Err)
	}
}

// Apply writes edges to both sides.
func Apply(t testing.TB, store storage.Store, edges ...storage.Edge) {
	t.Helper()
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		for i, r := range store.Apply(t.Context(), side, edges, storage.IfNewer) {
			must.That(t, r.Err == nil && r.Value.Changed, "apply %+v to %s: changed %t: %v", edges[i], side, r.Value.Changed, r.Err)
		}
	}
}

// ApplyTo writes edges to a side and to its replica, where they may be already.
func ApplyTo(t testing.TB, store storage.Store, side storage.Side, edges ...storage.Edge) {
	t.Helper()
	for _, side := range []storage.Side{side, side.Replica()} {
		for i, r := range store.Apply(t.Context(), side, edges, storage.IfNewer) {
			must.That(t, r.Err == nil, "apply %+v to %s: %v", edges[i], side, r.Err)
		}
	}
}

// Follow makes a user follow others, each a second after the one before, from
// [Epoch] on.
func Follow(t testing.TB, store storage.Store, from storage.UserID, to ...storage.UserID) {
	t.Helper()
	edges := make([]storage.Edge, len(to))
	for i, id := range to {
		at := Epoch + storage.Micros(i)*1_000_000
		edges[i] = storage.Edge{From: from, To: id, Type: storage.Following, UpdateTime: at}
	}
	Apply(t, store, edges...)
}

// Block makes a user block another, and ends the edges between them.
func Block(t testing.TB, store storage.Store, from, to storage.UserID) {
	t.Helper()
	change := []storage.EdgeChange{{To: to, Type: storage.Blocking, At: Epoch + 1_000_000}}
	r := store.ChangeEdges(t.Context(), storage.Forward, from, change, storage.ChangeOptions{})[0]
	must.That(t, r.Err == nil, "user %s blocks %s: %v", from, to, r.Err)
	for written := r.Value.Written(); len(written) > 0; written = written[1:] {
		w := written[0]
		applied := store.Apply(t.Context(), w.Side.Replica(), []storage.Edge{w.Edge}, storage.IfNewer)[0]
		must.That(t, applied.Err == nil, "apply %+v: %v", w, applied.Err)
		written = append(written, applied.Value.Also...)
	}
}

// Location is where a new SQLite store of so many shards is kept.
func Location(t testing.TB, shards int) string {
	t.Helper()
	dir := t.TempDir()
	paths := make([]string, shards)
	for i := range paths {
		paths[i] = filepath.Join(dir, fmt.Sprintf("kith%d.db", i))
	}
	return "sqlite:" + strings.Join(paths, ";")
}

// Tangle makes users 1 … n follow one another so that every kind of answer has
// something in it: about a third of all pairs, some of them mutual, some times equal.
func Tangle(t testing.TB, store storage.Store, n int) {
	t.Helper()
	var edges []storage.Edge
	for from := 1; from <= n; from++ {
		for to := 1; to <= n; to++ {
			if from != to && (from*7+to*to*3)%10 < 4 {
				at := Epoch + storage.Micros((from*to)%5)
				edges = append(edges, storage.Edge{From: storage.UserID(from), To: storage.UserID(to), Type: storage.Following, UpdateTime: at})
			}
		}
	}
	Apply(t, store, edges...)
}

// Publish has each of the users 1 … n publish a post, whose number is the user's id, a microsecond
// after the one before, from [Epoch] on. The five users after the author comment on it, by numbers
// from 1000 on, and favorite it.
func Publish(t testing.TB, store storage.Store, n int) {
	t.Helper()
	var favorites []storage.Edge
	for i := range n {
		post := storage.PostRow{
			PostID: storage.PostID{Author: storage.UserID(i + 1), Number: int64(i + 1)}, Key: "1", Text: "x", At: Epoch + storage.Micros(i),
		}
		_, _, err := store.Publish(t.Context(), post)
		must.That(t, err == nil, "publish post %d: %v", i+1, err)
		for k := range 5 {
			by := storage.UserID((i+k+1)%n + 1)
			c := storage.Comment{CommentID: storage.CommentID{Author: post.Author, Number: int64(1000 + 5*i + k)}, Post: post.Number, By: by, Key: "1", Text: "x", CreatedAt: Epoch + storage.Micros(i)}
			_, _, err := store.AddComment(t.Context(), c)
			must.That(t, err == nil || errors.Is(err, storage.ErrForbidden), "comment on post %d: %v", i+1, err)
			if k < n { // each once
				favorites = append(favorites, storage.Edge{From: by, To: post.Author, Item: post.Number, Type: storage.Favorited, UpdateTime: Epoch + storage.Micros(i+k)})
			}
		}
	}
	ApplyTo(t, store, storage.Favorites, favorites...)
}
