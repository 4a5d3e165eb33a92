package storagetest

import (
	"slices"
	"testing"
	"time"

	"kith/internal/must"
	"kith/storage"
	"kith/storage/judge"
)

// erase: the last step of a deletion.
type erase struct{ *harness }

func (s erase) EverythingOfTheUserIsRemoved(t *testing.T) {
	user, other := person(s.id()), s.newUsers(t, 1)[0]
	s.register(t, user)
	s.surround(t, user.ID, other.ID)
	s.surround(t, other.ID, user.ID)
	s.setState(t, user.ID, storage.Deleting, 10, true)
	s.erase(t, user.ID, 20)

	ids := []storage.UserID{user.ID}
	wantMissing(t, storage.UserLookups.Read(t.Context(), s.store, ids...), 1)
	wantMissing(t, storage.CountLookups.Read(t.Context(), s.store, ids...), 1)
	wantMissing(t, storage.PasswordLookups.Read(t.Context(), s.store, ids...), 1)
	wantMissing(t, storage.MarkLookups.Read(t.Context(), s.store, pairsFrom(user.ID, other.ID)...), 1)
	wantMissing(t, storage.MessageLookups.Read(t.Context(), s.store, pairsFrom(user.ID, other.ID)...), 1)
	wantList(t, "specials", s.specialsOf(t, user.ID), nil)
	s.wantState(t, user.ID, storage.Deleted)
	wantList(t, "changes", s.changesOf(t, user.ID), []storage.StateChange{changedTo(user.ID, storage.Deleted, 20)})

	wantEqual(t, "the other", s.userOf(t, other.ID), other)
	wantEqual(t, "mark of the other", found(t, storage.MarkLookups.Read(t.Context(), s.store, pairsFrom(other.ID, user.ID)...), 1)[0], storage.EdgeMark{Special: true, Remark: "x"})
	wantEqual(t, "message of the other", found(t, storage.MessageLookups.Read(t.Context(), s.store, pairsFrom(other.ID, user.ID)...), 1)[0], "hello")
	s.wantState(t, other.ID, storage.Active)
}

// surround gives a user everything that is stored beside edges.
func (s erase) surround(t *testing.T, from, to storage.UserID) {
	t.Helper()
	pair := storage.Pair{From: from, To: to}
	messages(s).act(t, pair, storage.EdgeChange{Type: storage.Pending, At: at(1), Message: "hello"})
	s.apply(t, storage.Forward, follow(storage.Forward, from, to, 1))
	s.mark(t, pair, storage.MarkChange{Special: special(true).Special, Remark: remarked("x").Remark}, storage.EdgeMark{Special: true, Remark: "x"})
}

func (s erase) OnlyOneWhoIsBeingDeletedIsErased(t *testing.T) {
	users := s.newUsers(t, 2)
	s.setState(t, users[1].ID, storage.Deactivated, 1, true)
	for _, user := range users {
		wantIs(t, s.store.Erase(t.Context(), user.ID, at(2)), storage.ErrForbidden)
		wantEqual(t, "user", s.userOf(t, user.ID), user)
		wantEqual(t, "the handle's owner", found(t, storage.HandleLookups.Read(t.Context(), s.store, user.Handle), 1)[0], user.ID)
	}
	nobody := s.id()
	wantIs(t, s.store.Erase(t.Context(), nobody, at(2)), storage.ErrForbidden)
	s.wantState(t, nobody, storage.Active)
}

func (s erase) NothingLeadsBack(t *testing.T) {
	user := s.erased(t)
	for _, state := range allStates {
		changed, err := s.store.SetState(t.Context(), user.ID, state, at(30))
		if state == storage.Deleted {
			wantIs(t, err, nil)
		} else {
			wantIs(t, err, storage.ErrForbidden)
		}
		wantEqual(t, "changed", changed, false)
	}
	wantList(t, "changes", s.changesOf(t, user.ID), []storage.StateChange{changedTo(user.ID, storage.Deleted, 20)})
}

// Nor does it touch the user who has the handle by then.
func (s erase) AgainItDoesNothing(t *testing.T) {
	user, next := s.erased(t), person(s.id())
	next.Handle, next.CreatedAt = user.Handle, at(20)+judge.HandleRest+2*judge.ClaimTTL
	s.register(t, next)
	s.erase(t, user.ID, 30)
	wantEqual(t, "the next user", s.userOf(t, next.ID), next)
	wantEqual(t, "the handle's owner", found(t, storage.HandleLookups.Read(t.Context(), s.store, user.Handle), 1)[0], next.ID)
	wantList(t, "changes", s.changesOf(t, user.ID), []storage.StateChange{changedTo(user.ID, storage.Deleted, 20)})
}

// Who had not heard of the deletion may have let the user write meanwhile.
func (s erase) AgainItRemovesWhatCameLate(t *testing.T) {
	user, other, id := s.erased(t).ID, s.newUsers(t, 1)[0].ID, identities(s).identity()
	post := s.post(t, other, 1).PostID
	late := s.comment(t, post, user, 1)
	identities(s).link(t, id, user)
	s.erase(t, user, 30)
	wantMissing(t, storage.CommentLookups.Read(t.Context(), s.store, late.CommentID), 1)
	s.wantCount(t, post, 0)
	identities(s).wantOwners(t, []storage.Identity{id}, 0)
}

// Nobody else gets the handle for 30 days: who registers by its own time, who is made otherwise by the clock.
func (s erase) TheHandleRests(t *testing.T) {
	const minute = judge.ClaimTTL
	erased := func(at storage.Micros) storage.User {
		user, next := s.newUsers(t, 1)[0], person(s.id())
		s.setState(t, user.ID, storage.Deleting, 1, true)
		must.OK(t, s.store.Erase(t.Context(), user.ID, at))
		next.Handle = user.Handle
		return next
	}
	next := erased(at(20))
	next.CreatedAt = at(20) + judge.HandleRest + minute
	wantIs(t, s.store.Register(t.Context(), next, "hash"), storage.ErrHandleTaken)
	next.CreatedAt++
	s.register(t, next)
	wantEqual(t, "the handle's owner", found(t, storage.HandleLookups.Read(t.Context(), s.store, next.Handle), 1)[0], next.ID)

	ago := storage.MicrosOf(time.Now()) - judge.HandleRest
	late, early := erased(ago-3*minute), erased(ago+3*minute)
	made := s.store.CreateUsers(t.Context(), []storage.User{late, early})
	wantEqual(t, "made after 30 days", made[0], storage.Result[bool]{Value: true, Found: true})
	wantIs(t, made[1].Err, storage.ErrHandleTaken)
	wantFound(t, storage.UserLookups.Read(t.Context(), s.store, late.ID, early.ID), true, false)
	wantEqual(t, "the handle's owner", found(t, storage.HandleLookups.Read(t.Context(), s.store, late.Handle), 1)[0], late.ID)
	wantIs(t, s.store.CreateUsers(t.Context(), []storage.User{early})[0].Err, storage.ErrHandleTaken) // alone, too
}

func (s erase) ManyRowsAreRemoved(t *testing.T) {
	const n = 1100 // more than one step
	user := s.newUsers(t, 1)[0].ID
	peers := s.ids(n)
	follows := make([]storage.Edge, n)
	for i, peer := range peers {
		follows[i] = follow(storage.Forward, user, peer, 1)
	}
	s.apply(t, storage.Forward, follows...)
	var marks []storage.Annotation
	for _, peer := range peers {
		marks = append(marks, storage.Annotation{Pair: storage.Pair{From: user, To: peer}, Text: "x"})
	}
	beside(s).add(t, storage.AnnotationMark, marks...)
	s.setState(t, user, storage.Deleting, 1, true)
	s.erase(t, user, 20)
	wantMissing(t, storage.MarkLookups.Read(t.Context(), s.store, pairsFrom(user, peers...)...), n)
}

// So are its comments below posts of others, and others' comments below its posts.
func (s erase) PostsAndCommentsAreRemoved(t *testing.T) {
	const n = 510 // comments of one post: more than one step
	user := s.newUsers(t, 1)[0].ID
	others := idsOf(s.newUsers(t, 5))
	var own []storage.PostRow
	var comments []storage.Comment
	for i := range n {
		own = append(own, s.newPost(user, i))
		comments = append(comments, s.newComment(own[i].PostID, others[0], i))
	}
	kept := make([]storage.Comment, len(others))
	posts := make([]storage.PostID, len(others))
	for i, other := range others {
		posts[i] = s.post(t, other, i).PostID
		kept[i] = s.comment(t, posts[i], others[0], 1)
		comments = append(comments, s.newComment(own[0].PostID, other, n+i))
		s.comment(t, posts[i], user, 0)
		for k := range i % 2 * n {
			comments = append(comments, s.newComment(posts[i], user, k))
		}
	}
	for _, r := range append(s.store.Restore(t.Context(), storage.Restored{Posts: own}), s.store.Restore(t.Context(), storage.Restored{Comments: comments})...) {
		must.That(t, r.Err == nil && r.Value, "%v", r)
	}
	s.setState(t, user, storage.Deleting, 1, true)
	s.erase(t, user, 20)
	wantMissing(t, storage.PostLookups.Read(t.Context(), s.store, own[0].PostID), 1)
	pages := storage.PostPageLookups.Read(t.Context(), s.store, storage.PlaceQuery{Of: storage.PostID{Author: user}, Limit: 1})
	wantPosts(t, found(t, pages, 1)[0], nil)
	below := found(t, storage.CommentPageLookups.Read(t.Context(), s.store, storage.PlaceQuery{Of: own[0].PostID, Limit: 1}), 1)
	wantList(t, "comments below its own", below[0], nil)
	for i, id := range posts {
		left := found(t, storage.CommentPageLookups.Read(t.Context(), s.store, storage.PlaceQuery{Of: id, Limit: 10}), 1)
		wantList(t, "comments", left[0], kept[i:i+1])
		s.wantCount(t, id, 1)
	}
}

// The tombstones of its edges stay, so that older events are not applied, and everything else that
// comes late finds no user.
func (s erase) LateEventsBringNothingBack(t *testing.T) {
	user, peer, stranger := s.newUsers(t, 1)[0], s.newUsers(t, 1)[0].ID, s.id()
	sides := []storage.Side{storage.Forward, storage.Inverse}
	for _, side := range sides {
		s.apply(t, side, follow(side, user.ID, peer, 1))
		s.apply(t, side, edge(side, user.ID, peer, storage.None, at(50)))
	}
	s.setState(t, user.ID, storage.Deleting, 1, true)
	s.erase(t, user.ID, 60)
	for _, side := range sides {
		late := s.apply(t, side, follow(side, user.ID, peer, 40), follow(side, user.ID, stranger, 70))
		wantEqual(t, "an older event was written", late[0].Changed, false)
		wantEqual(t, "row", s.edgeOf(t, side, side.Pair(user.ID, peer)), edge(side, user.ID, peer, storage.None, at(50)))
	}
	wantMissing(t, storage.UserLookups.Read(t.Context(), s.store, user.ID), 1)
	s.wantState(t, user.ID, storage.Deleted)

	wantIs(t, s.store.CreateUsers(t.Context(), []storage.User{user})[0].Err, storage.ErrIDUnusable) // by an import
	s.wantState(t, user.ID, storage.Deleted)
	wantEqual(t, "the change is listed", slices.Contains(s.changesOf(t, user.ID), changedTo(user.ID, storage.Deleted, 60)), true)
}

func (s erase) SeveralMayEraseAtOnce(t *testing.T) {
	for _, user := range s.newUsers(t, 10) {
		s.setState(t, user.ID, storage.Deleting, 1, true)
		together(func(int) {
			if err := s.store.Erase(t.Context(), user.ID, at(20)); err != nil {
				t.Error(err)
			}
		})
		wantMissing(t, storage.UserLookups.Read(t.Context(), s.store, user.ID), 1)
		wantList(t, "changes", s.changesOf(t, user.ID), []storage.StateChange{changedTo(user.ID, storage.Deleted, 20)})
	}
}

// erased makes a user and erases it.
func (s erase) erased(t *testing.T) storage.User {
	t.Helper()
	user := s.newUsers(t, 1)[0]
	s.setState(t, user.ID, storage.Deleting, 10, true)
	s.erase(t, user.ID, 20)
	return user
}

func (s erase) erase(t *testing.T, user storage.UserID, n int) {
	t.Helper()
	must.OK(t, s.store.Erase(t.Context(), user, at(n)))
}
