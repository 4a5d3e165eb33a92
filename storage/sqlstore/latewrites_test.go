package sqlstore

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/judge"
)

// A program that stood still while a user moved, and for as long as the rows were kept, writes where the user is now. It does not take
// the user for one who is not there.
func TestAWriteThatComesAfterTheRowsAreRemovedFindsTheUser(t *testing.T) {
	const user, other = storage.UserID(1), storage.UserID(2)
	ctx := t.Context()
	post, list := storage.PostID{Author: user, Number: 3}, storage.ListID{Owner: user, Number: 4}
	comment := func(n int64) storage.CommentID { return storage.CommentID{Author: user, Number: n} }
	errNot := errors.New("it has not")
	is := func(changed bool, err error) error {
		if err == nil && !changed {
			err = errNot
		}
		return err
	}
	restored := func(results []storage.Result[bool]) error { return is(results[0].Value, results[0].Err) }
	writes := map[string]func(*Store) error{
		"SetPassword": func(s *Store) error {
			_, err := s.SetPassword(ctx, user, storage.PasswordChange{New: "hash"})
			return err
		},
		"UpdateProfile": func(s *Store) error {
			_, changed, err := s.UpdateProfile(ctx, user, storage.ProfileChange{Name: new("B")}, 5)
			return is(changed, err)
		},
		"See":      func(s *Store) error { return is(s.See(ctx, storage.Seen{User: user}, 5)) },
		"SetState": func(s *Store) error { return is(s.SetState(ctx, user, storage.Deactivated, 5)) },
		"Moderate": func(s *Store) error {
			_, changed, err := s.Moderate(ctx, storage.ModerationEntry{Owner: user, User: user, Action: storage.Suspended, At: 5, Until: 1 << 60, Reason: "r"})
			return is(changed, err)
		},
		"Publish": func(s *Store) error {
			_, changed, err := s.Publish(ctx, storage.PostRow{PostID: storage.PostID{Author: user, Number: 30}, Key: "k30", Text: "x", At: 5})
			return is(changed, err)
		},
		"AddComment": func(s *Store) error {
			_, added, err := s.AddComment(ctx, storage.Comment{CommentID: comment(50), Post: post.Number, By: other, Key: "k", Text: "x", CreatedAt: 5})
			return is(added, err)
		},
		"DeleteComment": func(s *Store) error {
			on, err := s.DeleteComment(ctx, comment(51), user)
			return is(on == post, err)
		},
		"CreateList": func(s *Store) error {
			_, created, err := s.CreateList(ctx, storage.UserList{ListID: storage.ListID{Owner: user, Number: 40}, Name: "new"})
			return is(created, err)
		},
		"UpdateList": func(s *Store) error {
			_, changed, err := s.UpdateList(ctx, list, storage.ListChange{Name: new("other")})
			return is(changed, err)
		},
		"AddImport": func(s *Store) error {
			_, err := s.AddImport(ctx, []storage.ImportPart{{ImportID: storage.ImportID{Owner: user, Number: 5}, Kind: "follows"}})
			return err
		},
		"SetMark": func(s *Store) error {
			_, changed, err := s.SetMark(ctx, storage.Pair{From: user, To: other}, storage.MarkChange{Special: new(true)})
			return is(changed, err)
		},
		"ChangeEdges": func(s *Store) error {
			changes := []storage.EdgeChange{{To: 11, Type: storage.Following, At: 5}, {To: 12, Type: storage.Following, At: 5}}
			for _, r := range s.ChangeEdges(ctx, storage.Forward, user, changes, storage.ChangeOptions{}) {
				if err := is(r.Value.Changed, r.Err); err != nil {
					return err
				}
			}
			return nil
		},
		"Restore posts": func(s *Store) error {
			return restored(s.Restore(ctx, storage.Restored{Posts: []storage.PostRow{{PostID: storage.PostID{Author: user, Number: 31}, Key: "k31", Text: "x", At: 5}}}))
		},
		"Restore lists": func(s *Store) error {
			return restored(s.Restore(ctx, storage.Restored{Lists: []storage.UserList{{ListID: storage.ListID{Owner: user, Number: 41}, Name: "restored"}}}))
		},
		"Restore marks": func(s *Store) error {
			return restored(s.Restore(ctx, storage.Restored{Kind: storage.AnnotationMark, Annotations: []storage.Annotation{{Pair: storage.Pair{From: user, To: 10}, Text: "x"}}}))
		},
	}
	dir := t.TempDir()
	location := "sqlite:" + filepath.Join(dir, "0.db") + ";" + filepath.Join(dir, "1.db")
	mover := openSmall(t, location, nil)
	must.All(t, mover.CreateUsers(ctx, []storage.User{{ID: user, Handle: "ada", CreatedAt: 1}, {ID: other, Handle: "bob", CreatedAt: 1}}))
	must.All(t, mover.Apply(ctx, storage.Forward, []storage.Edge{{From: user, To: other, Type: storage.Following, UpdateTime: 1}, {From: user, To: 10, Type: storage.Following, UpdateTime: 1}}, storage.IfNewer))
	_, _, err := mover.Publish(ctx, storage.PostRow{PostID: post, Key: "k3", Text: "x", At: 1})
	must.OK(t, err)
	_, _, err = mover.AddComment(ctx, storage.Comment{CommentID: comment(51), Post: post.Number, By: other, Key: "k51", Text: "x", CreatedAt: 1})
	must.OK(t, err)
	_, _, err = mover.CreateList(ctx, storage.UserList{ListID: list, Name: "list"})
	must.OK(t, err)
	stood := make(map[string]*Store) // they know the map of before
	for name := range writes {
		stood[name] = openSmall(t, location, nil)
	}
	from := mover.ShardOf(user)
	bucket := storage.BucketRange{First: user.Bucket(), Last: user.Bucket()}
	_, err = mover.Move(context.WithoutCancel(ctx), Move{Buckets: bucket, From: from, To: 1 - from}, MoveConfig{Token: "mover"})
	must.OK(t, err)
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		check.Is(t, name, writes[name](stood[name]), nil)
	}
}

// Nor does it take the user's handle for one that was claimed in vain.
func TestAHandleIsItsUsersAfterTheRowsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	location := "sqlite:" + filepath.Join(dir, "0.db") + ";" + filepath.Join(dir, "1.db") + ";" + filepath.Join(dir, "2.db")
	mover := openSmall(t, location, nil)
	user := storage.User{ID: 1, Handle: "a", CreatedAt: 1}
	for mover.ShardOf(user.ID) != 0 {
		user.ID++
	}
	for mover.shards.OfHandle(user.Handle) != 2 { // nothing that moves is there
		user.Handle += "a"
	}
	must.All(t, mover.CreateUsers(t.Context(), []storage.User{user}))
	stood := openSmall(t, location, nil) // it knows the map of before
	_, err := mover.Move(t.Context(), Move{Buckets: storage.BucketRange{First: user.ID.Bucket(), Last: user.ID.Bucket()}, From: 0, To: 1}, MoveConfig{Token: "mover"})
	must.OK(t, err)
	next := storage.User{ID: user.ID + 1, Handle: user.Handle, CreatedAt: storage.MicrosOf(time.Now()) + 2*judge.ClaimTTL}
	check.Is(t, "register with the handle of another user", stood.Register(t.Context(), next, "hash"), storage.ErrHandleTaken)
	owner, err := storage.HandleLookups.Get(t.Context(), mover, user.Handle)
	must.OK(t, err)
	check.That(t, owner == user.ID, "the handle of user %s is that of %s", user.ID, owner)
}
