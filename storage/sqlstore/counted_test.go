package sqlstore_test

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"

	"kith/internal/check"
	"kith/internal/storagetest"
	"kith/storage"
	"kith/storage/sqlstore"
)

// TestWritersGetTheCountsTheyLeave: the counts that are reported after a commit are the counts in the
// store then. Before is the version since which nothing but counts has changed.
func TestWritersGetTheCountsTheyLeave(t *testing.T) {
	storesWithUsers(t, 30, func(t *testing.T, store *sqlstore.Store) {
		name, remark := "another", "r"
		follow := storage.Edge{From: 2, To: 3, Type: storage.Following, UpdateTime: 5}
		both := storage.ChangeOptions{Inverse: true}
		for _, step := range []struct {
			what string
			do   func(context.Context)
			left map[storage.UserID]bool // and whether the profile is unchanged
		}{
			{"a row", func(ctx context.Context) { store.Apply(ctx, storage.Forward, []storage.Edge{follow}, storage.IfNewer) }, map[storage.UserID]bool{2: true}},
			{"its other side", func(ctx context.Context) { store.Apply(ctx, storage.Inverse, []storage.Edge{follow}, storage.IfNewer) }, map[storage.UserID]bool{3: true}},
			{"the same again", func(ctx context.Context) { store.Apply(ctx, storage.Inverse, []storage.Edge{follow}, storage.IfNewer) }, map[storage.UserID]bool{3: false}},
			{"a follow", func(ctx context.Context) { changeEdge(ctx, store, 4, 5, storage.Following, 0) }, map[storage.UserID]bool{4: true, 5: true}},
			{"of two", func(ctx context.Context) {
				store.ChangeEdges(ctx, storage.Forward, 4, []storage.EdgeChange{{To: 6, Type: storage.Following, At: 7}, {To: 7, Type: storage.Blocking, At: 7}}, both)
			}, map[storage.UserID]bool{4: true, 6: true, 7: true}},
			{"a request", func(ctx context.Context) {
				_, _ = storagetest.Request(ctx, store, storage.Pair{From: 8, To: 9}, storage.EdgeChange{Type: storage.Pending, At: 9}, storage.ChangeOptions{Inverse: true})
			}, map[storage.UserID]bool{8: true, 9: true}},
			{"a mark", func(ctx context.Context) {
				_, _, _ = store.SetMark(ctx, storage.Pair{From: 4, To: 5}, storage.MarkChange{Remark: &remark})
			}, map[storage.UserID]bool{4: true}},
			{"a profile", func(ctx context.Context) {
				_, _, _ = store.UpdateProfile(ctx, 4, storage.ProfileChange{Name: &name}, 9)
			}, map[storage.UserID]bool{4: false}},
			{"a state", func(ctx context.Context) { _, _ = store.SetState(ctx, 4, storage.Deactivated, 10) }, nil},
		} {
			var mu sync.Mutex
			left := map[storage.UserID]storage.UserChange{}
			before := map[storage.UserID]storage.Counts{}
			for id := range step.left {
				before[id] = mustCount(t, store, id)
			}
			store.OnCommit(func(_ context.Context, c storage.Change) {
				mu.Lock()
				defer mu.Unlock()
				for _, one := range c.Users {
					if one.Counts.Version > 0 {
						one.What, one.Profile = 0, nil
						left[one.User] = one
					}
				}
			})
			step.do(t.Context())
			check.That(t, len(left) == len(step.left), "%s: reported %v", step.what, left)
			for id, onlyCounts := range step.left {
				want := storage.UserChange{User: id, Counts: mustCount(t, store, id), Before: before[id].Version}
				if !onlyCounts {
					want.Before = want.Counts.Version
				}
				check.That(t, left[id] == want, "%s: reported %+v of user %d, want %+v", step.what, left[id], id, want)
			}
		}
	})
}

// TestEachOfAGroupIsReported: writes that share a transaction are reported before they are answered, with their counts.
func TestEachOfAGroupIsReported(t *testing.T) {
	storesWithUsers(t, 30, func(t *testing.T, store *sqlstore.Store) {
		var mu sync.Mutex
		follows := map[storage.UserID]bool{}
		store.OnCommit(func(_ context.Context, c storage.Change) {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range c.Rows {
				counted := slices.ContainsFunc(c.Users, func(u storage.UserChange) bool { return u.User == r.Edge.From && u.Counts.Version > 0 })
				follows[r.Edge.From] = follows[r.Edge.From] || r.Side == storage.Forward && counted
			}
		})
		var followers sync.WaitGroup
		for id := storage.UserID(2); id <= 30; id++ {
			followers.Go(func() {
				changeEdge(t.Context(), store, id, viral, storage.Following, 0)
				mu.Lock()
				defer mu.Unlock()
				check.That(t, follows[id], "the follow of user %d is not reported", id)
			})
		}
		followers.Wait()
	})
}

// TestEachCommitIsReported with what it has changed, and once more if a write that was made already comes again: its first writer may
// have been killed before it reported it.
func TestEachCommitIsReported(t *testing.T) {
	storesWithUsers(t, 5, func(t *testing.T, store *sqlstore.Store) {
		var mu sync.Mutex
		var seen storage.Change
		store.OnCommit(func(_ context.Context, c storage.Change) {
			mu.Lock()
			defer mu.Unlock()
			seen.Rows, seen.Posts = append(seen.Rows, c.Rows...), append(seen.Posts, c.Posts...)
			for _, u := range c.Users {
				if what := u.What & (storage.Whole | storage.Standing); what != 0 {
					seen.Users = append(seen.Users, storage.UserChange{User: u.User, What: what})
				}
			}
		})
		follow := storage.Edge{From: 2, To: 3, Type: storage.Following, UpdateTime: 5}
		row := storage.Row{Side: storage.Inverse, Edge: follow}
		post := storage.PostID{Author: 2, Number: 7}
		comment := storage.Comment{CommentID: storage.CommentID{Author: post.Author, Number: 9}, Post: post.Number, By: 2, Key: "c", Text: "c", CreatedAt: 7}
		text, name := "edited", "another"
		of := func(id storage.UserID, what storage.Aspects) storage.Change {
			return storage.Change{Users: []storage.UserChange{{User: id, What: what}}}
		}
		posts := func(news ...storage.PostNews) (c storage.Change) {
			for _, n := range news {
				one := storage.ChangedPost{PostAt: storage.PostAt{PostID: post}, News: n}
				switch n {
				case storage.PostPublished:
					one.CreatedAt = 6
				case storage.PostCommented:
					one.Comment = 9
				}
				c.Posts = append(c.Posts, one)
			}
			return c
		}
		removal := storage.ModerationEntry{Owner: post.Author, User: post.Author, Number: post.Number, Action: storage.PostRemoved, At: 9, By: "operator", Reason: "spam"}
		suspension := storage.ModerationEntry{Owner: 5, User: 5, Action: storage.Suspended, At: 9, By: "operator", Reason: "spam", Until: 99}
		for _, step := range []struct {
			what string
			do   func() error
			want storage.Change
		}{
			{"a user", func() error { return store.CreateUsers(t.Context(), []storage.User{{ID: 90, Handle: "ninety"}})[0].Err }, of(90, storage.Whole)},
			{"a row", func() error {
				return store.Apply(t.Context(), storage.Inverse, []storage.Edge{follow}, storage.IfNewer)[0].Err
			}, storage.Change{Rows: []storage.Row{row}}},
			{"the same again", func() error {
				return store.Apply(t.Context(), storage.Inverse, []storage.Edge{follow}, storage.IfNewer)[0].Err
			}, storage.Change{Rows: []storage.Row{row}}},
			{"a profile", func() error {
				_, _, err := store.UpdateProfile(t.Context(), 4, storage.ProfileChange{Name: &name}, 9)
				return err
			}, of(4, storage.Whole)},
			{"a post", func() error { return publish(t, store, post) }, posts(storage.PostPublished)},
			{"the same post", func() error { return publish(t, store, post) }, posts(storage.PostPublished)},
			{"an edit", func() error {
				_, _, err := store.EditPost(t.Context(), post, storage.PostChange{Text: &text}, 8)
				return err
			}, posts(storage.PostEdited)},
			{"a comment", func() error { _, _, err := store.AddComment(t.Context(), comment); return err }, posts(storage.PostCommented, storage.PostEdited)},
			{"the same comment", func() error { _, _, err := store.AddComment(t.Context(), comment); return err }, posts(storage.PostCommented, storage.PostEdited)},
			{"the comment is gone", func() error { _, err := store.DeleteComment(t.Context(), comment.CommentID, 2); return err }, posts(storage.PostEdited)},
			{"the post is gone", func() error { _, err := store.DeletePost(t.Context(), post); return err }, posts(storage.PostDeleted, storage.PostEdited)},
			{"gone by an operator", moderate(store, removal), posts(storage.PostDeleted)},
			{"a suspension", moderate(store, suspension), of(5, storage.Whole|storage.Standing)},
			{"the same suspension", moderate(store, suspension), of(5, storage.Whole|storage.Standing)},
			{"a state", func() error { _, err := store.SetState(t.Context(), 5, storage.Deleting, 10); return err }, of(5, storage.Whole|storage.Standing)},
			{"an erased user", func() error { return store.Erase(t.Context(), 5, 11) }, storage.Change{Users: of(5, storage.Whole|storage.Standing).Users, Posts: []storage.ChangedPost{{PostAt: storage.PostAt{PostID: storage.PostID{Author: 5}}}}}},
		} {
			seen = storage.Change{}
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.what, err)
			}
			check.That(t, reflect.DeepEqual(seen, step.want), "%s: reported %+v, want %+v", step.what, seen, step.want)
		}
	})
}

func moderate(store *sqlstore.Store, e storage.ModerationEntry) func() error {
	return func() error {
		_, _, err := store.Moderate(context.Background(), e)
		return err
	}
}

func publish(t *testing.T, store *sqlstore.Store, id storage.PostID) error {
	_, _, err := store.Publish(t.Context(), storage.PostRow{PostID: id, Key: "p", Text: "first", At: 6})
	return err
}
