package storagetest

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/contents"
	"kith/storage/judge"
)

// moderation: what operators do, and the log of it.
type moderation struct{ *harness }

// A suspension is beside the state: each stays as it is when the other changes.
func (s moderation) ASuspensionLeavesTheState(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	s.setState(t, user, storage.Deactivated, 1, true)
	s.wantSuspension(t, user, storage.UserStanding{})
	before := s.countsOf(t, user).Version
	first := s.moderate(t, suspend(user, 10, 500), true)
	wantEqual(t, "the version rose", s.countsOf(t, user).Version > before, true)
	s.wantState(t, user, storage.Deactivated)
	s.wantSuspension(t, user, storage.UserStanding{Until: at(500), Reason: first.Reason})
	s.setState(t, user, storage.Active, 20, true)
	_, err := s.store.SetPassword(t.Context(), user, storage.PasswordChange{New: "x", At: at(30), EndsTokens: true})
	wantIs(t, err, nil)
	s.wantChange(t, user, storage.StateChange{State: storage.Active, SuspendedUntil: at(500), PasswordAt: at(30)})
	s.setState(t, user, storage.Deactivated, 40, true)
	s.moderate(t, reinstate(user, 50), true)
	s.wantSuspension(t, user, storage.UserStanding{})
	s.wantChange(t, user, storage.StateChange{State: storage.Deactivated, PasswordAt: at(30)})
}

func (s moderation) TheSameAgainChangesNothing(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	for i, step := range []struct {
		entry   storage.ModerationEntry
		changed bool
	}{
		{reinstate(user, 1), false}, {suspend(user, 2, 100), true}, {suspend(user, 3, 100), false}, {suspend(user, 4, 90), true},
		{reinstate(user, 89), true}, {reinstate(user, 89), false}, {suspend(user, 91, 99), true}, {reinstate(user, 99), false},
		{suspend(user, 100, 200), true},
	} {
		before, counts := s.log(t, user), s.countsOf(t, user)
		added := s.moderate(t, step.entry, step.changed)
		if !step.changed {
			wantEqual(t, "counts", s.countsOf(t, user), counts)
			wantList(t, "log", s.log(t, user), before)
			continue
		}
		want := step.entry
		want.At = added.At
		check.That(t, want == added && added.At >= step.entry.At, "step %d: %+v was added, want %+v", i, added, want)
		wantList(t, "log", s.log(t, user), append([]storage.ModerationEntry{added}, before...))
	}
}

// Gateways find a change behind the last one, and the log has no two entries at one time, whatever the clocks say.
func (s moderation) TimesRise(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	s.setState(t, user, storage.Deactivated, 1000, true)
	for i := range 4 {
		s.moderate(t, suspend(user, 5-i, 2000+i), true)
		wantEqual(t, "time", s.changesOf(t, user)[0].At, at(1001+i))
	}
	log := s.log(t, user)
	for i, e := range log {
		wantEqual(t, "time of an entry", e.At, at(5+len(log)-1-i))
	}
}

// A log that is ahead of the clock does not take the changes of states along: readers of changes would not find them.
func (s moderation) ALogAheadLeavesChangesAtTheClock(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	remove := storage.ModerationEntry{Owner: user, At: at(90_000), User: user, Action: storage.PostRemoved, By: "operator", Reason: "spam", Number: s.post(t, user, 1).Number}
	s.moderate(t, remove, true)
	wantEqual(t, "time of the entry", s.moderate(t, suspend(user, 10, 2000), true).At, at(90_001))
	wantEqual(t, "time of the change", s.changesOf(t, user)[0].At, at(10))
}

func (s moderation) NobodyIsSuspended(t *testing.T) {
	leaving := s.newUsers(t, 1)[0].ID
	s.setState(t, leaving, storage.Deleting, 1, true)
	for _, user := range []storage.UserID{s.id(), leaving, erase(s).erased(t).ID} {
		for _, e := range []storage.ModerationEntry{suspend(user, 2, 100), reinstate(user, 2)} {
			_, changed, err := s.store.Moderate(t.Context(), e)
			wantIs(t, err, storage.ErrUserUnknown)
			wantEqual(t, "changed", changed, false)
		}
		wantList(t, "log", s.log(t, user), nil)
		s.wantSuspension(t, user, storage.UserStanding{})
	}
}

// The author may have deleted it before, or another operator may have removed it.
func (s moderation) WhatIsRemovedIsDeleted(t *testing.T) {
	author, writer := s.newUsers(t, 1)[0].ID, s.newUsers(t, 1)[0].ID
	post, other := s.post(t, author, 1), s.post(t, author, 2)
	comment := s.comment(t, post.PostID, writer, 3)
	remove := storage.ModerationEntry{Owner: author, User: author, At: at(5), By: "operator", Reason: "spam"}
	removePost, removeComment := remove, remove
	removePost.Action, removePost.Number = storage.PostRemoved, post.Number
	removeComment.Action, removeComment.Number = storage.CommentRemoved, comment.Number
	second := s.moderate(t, removeComment, true)
	wantEqual(t, "about", second.User, writer)
	wantEqual(t, "post", found(t, storage.PostLookups.Read(t.Context(), s.store, post.PostID), 1)[0].Counts.Comments, int64(0))
	first := s.moderate(t, removePost, true)
	wantMissing(t, storage.CommentLookups.Read(t.Context(), s.store, comment.CommentID), 1)
	wantMissing(t, storage.PostLookups.Read(t.Context(), s.store, post.PostID), 1)
	wantEqual(t, "posts of the author", s.countsOf(t, author).Posts, int64(1))
	_, err := s.store.DeletePost(t.Context(), other.PostID)
	must.OK(t, err)
	for _, number := range []int64{post.Number, other.Number, s.number()} {
		removePost.Number, removeComment.Number = number, number
		s.moderate(t, removePost, false)
		s.moderate(t, removeComment, false)
	}
	wantList(t, "about the author", s.log(t, author), []storage.ModerationEntry{first})
	wantList(t, "about the writer", s.log(t, writer), []storage.ModerationEntry{second})
}

func (s moderation) TheLogRunsNewestFirst(t *testing.T) {
	var all, ofOne []storage.ModerationEntry
	users := idsOf(s.newUsers(t, 5))
	for i := range 40 {
		user := users[i%len(users)]
		e := s.moderate(t, suspend(user, 900_000+i/7, 950_000+i), true)
		if all = append(all, e); user == users[0] {
			ofOne = append(ofOne, e)
		}
	}
	for user, want := range map[storage.UserID][]storage.ModerationEntry{0: all, users[0]: ofOne} {
		slices.SortFunc(want, func(a, b storage.ModerationEntry) int { return a.Place().Compare(b.Place()) })
		for _, limit := range []int{1, 3, 100} {
			var got []storage.ModerationEntry
			for q := (storage.PlaceQuery{Of: storage.PostID{Author: user}, Limit: limit}); ; q.After = got[len(got)-1].Place() {
				page := one(t, s.harness, storage.ModerationLookups, q)
				wantEqual(t, "more than the limit", len(page) > limit, false)
				page = slices.DeleteFunc(page, func(e storage.ModerationEntry) bool { return e.At < at(900_000) }) // of other tests
				if got = append(got, page...); len(page) < limit || len(got) > len(want) {
					break
				}
			}
			wantList(t, "log", got, want)
		}
	}
}

func (s moderation) EveryFieldComesBack(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	e := storage.ModerationEntry{
		Owner: user, At: at(7), User: user, Action: storage.Suspended, Until: storage.Forever,
		By: strings.Repeat("o", 2*storage.MaxIdentityText+1), Reason: strings.Repeat("👩", storage.MaxReasonLength),
	}
	s.moderate(t, e, true)
	wantList(t, "log", s.log(t, user), []storage.ModerationEntry{e})
	s.wantSuspension(t, user, storage.UserStanding{Until: storage.Forever, Reason: e.Reason})
	s.wantChange(t, user, storage.StateChange{SuspendedUntil: storage.Forever})
}

// A deleted user stays deleted, and what has been done to it stays known.
func (s moderation) TheLogOutlivesTheUser(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	e := s.moderate(t, suspend(user, 1, 100), true)
	s.setState(t, user, storage.Deleting, 10, true)
	wantIs(t, s.store.Erase(t.Context(), user, at(20)), nil)
	s.wantState(t, user, storage.Deleted)
	wantList(t, "log", s.log(t, user), []storage.ModerationEntry{e})
}

func (s moderation) OneOfSeveralAtOnceSuspends(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	var changed [workers]bool
	together(func(worker int) {
		var err error
		_, changed[worker], err = s.store.Moderate(t.Context(), suspend(user, 1, 100))
		check.That(t, err == nil, "%v", err)
	})
	wantEqual(t, "first", slices.Contains(changed[:], true), true)
	wantEqual(t, "entries", len(s.log(t, user)), 1)
}

// Comments below different posts of one author are removed without one lock in common but the author's.
func (s moderation) AtOnceEachHasAnEntry(t *testing.T) {
	author := s.newUsers(t, 1)[0].ID
	var comments [workers]storage.Comment
	for i := range comments {
		comments[i] = s.comment(t, s.post(t, author, i).PostID, author, i)
	}
	together(func(worker int) {
		_, changed, err := s.store.Moderate(t.Context(), storage.ModerationEntry{
			Owner: author, At: at(5), Action: storage.CommentRemoved, By: "operator", Reason: "spam", Number: comments[worker].Number})
		check.That(t, err == nil && changed, "%v, %v", changed, err)
	})
	wantEqual(t, "entries", len(s.log(t, author)), workers)
}

// In whatever order entries come, the newest decides. Those of users who do not exist are kept.
func (s moderation) RestoredTheNewestDecides(t *testing.T) {
	users, nobody := idsOf(s.newUsers(t, 2)), s.id()
	entries := []storage.ModerationEntry{
		suspend(users[0], 30, 700), reinstate(users[0], 20), suspend(users[0], 10, 600),
		suspend(users[1], 10, 600), reinstate(users[1], 20), suspend(nobody, 10, 600),
		{Owner: users[0], At: at(40), User: nobody, Action: storage.CommentRemoved, By: "operator", Reason: "spam", Number: math.MaxInt64},
	}
	for _, added := range []bool{true, false} {
		for _, r := range found(t, s.store.Restore(t.Context(), storage.Restored{Moderation: entries, At: at(5000)}), len(entries)) {
			wantEqual(t, "added", r, added)
		}
		s.wantSuspension(t, users[0], storage.UserStanding{Until: at(700), Reason: entries[0].Reason})
		s.wantSuspension(t, users[1], storage.UserStanding{})
		s.wantSuspension(t, nobody, storage.UserStanding{})
		s.wantState(t, nobody, storage.Active)
		wantList(t, "changes of nobody", s.changesOf(t, nobody), nil)
		c := s.changesOf(t, users[0])
		check.That(t, len(c) == 1 && c[0].SuspendedUntil == at(700) && c[0].At >= at(5000), "changes %+v", c)
	}
	wantList(t, "log", s.log(t, users[0]), entries[:3])
	wantList(t, "log of nobody", s.log(t, nobody), []storage.ModerationEntry{entries[6], entries[5]})
}

// A report is no state: it neither suspends nor reinstates, made or restored, and however late it is.
func (s moderation) AReportChangesNoState(t *testing.T) {
	users := idsOf(s.newUsers(t, 2))
	reported, by := users[0], users[1]
	suspended := s.moderate(t, suspend(reported, 10, 90_000), true)
	counts, changes := s.countsOf(t, reported), s.changesOf(t, reported)
	early := func(n int, number int64) storage.ModerationEntry {
		e := report(by, reported, n, number)
		e.At -= judge.ReportedFor
		return e
	}
	entry := s.moderate(t, early(20, 0), true)
	wantEqual(t, "time", s.moderate(t, early(20, 7), true).At, entry.At+1)
	s.moderate(t, early(30, 0), false) // once
	s.moderate(t, early(30, 7), false)
	s.moderate(t, report(by, reported, 19, 0), false)
	s.moderate(t, report(by, reported, 20, 0), true)
	restored := []storage.ModerationEntry{report(by, reported, 40, 8), report(reported, by, 50, 0), report(reported, reported, 60, 0)}
	for _, added := range found(t, s.store.Restore(t.Context(), storage.Restored{Moderation: restored, At: at(5000)}), len(restored)) {
		wantEqual(t, "added", added, true)
	}
	wantEqual(t, "counts", s.countsOf(t, reported), counts)
	wantList(t, "changes", s.changesOf(t, reported), changes)
	s.wantSuspension(t, reported, storage.UserStanding{Until: suspended.Until, Reason: suspended.Reason})
	wantList(t, "changes of the other", s.changesOf(t, by), nil)

	// The newest of the others decides.
	found(t, s.store.Restore(t.Context(), storage.Restored{Moderation: []storage.ModerationEntry{suspend(reported, 5, 400)}, At: at(6000)}), 1)
	s.wantSuspension(t, reported, storage.UserStanding{Until: suspended.Until, Reason: suspended.Reason})
	wantEqual(t, "entries", len(s.log(t, reported)), 7)
	_, _, err := s.store.Moderate(t.Context(), report(s.id(), reported, 70, 0))
	wantIs(t, err, storage.ErrUserUnknown)
}

func (s moderation) EveryEntryComesOnceWithItsShard(t *testing.T) {
	var want []storage.ModerationEntry
	for i, user := range idsOf(s.newUsers(t, 8)) {
		for n := range 1 + i%4 {
			want = append(want, s.moderate(t, suspend(user, 10+n, 300+n), true))
		}
	}
	byKey := func(a, b storage.ModerationEntry) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.At, b.At))
	}
	slices.SortFunc(want, byKey)
	for _, limit := range pageLimits {
		var all []storage.ModerationEntry
		shardReader(s).eachShard(t, func(t *testing.T, ordinal int, at contents.Moment) {
			page := allPages(t, limit, func(last *storage.ModerationEntry) ([]storage.ModerationEntry, error) {
				if last == nil {
					last = new(storage.ModerationEntry)
				}
				return at.Moderation(t.Context(), *last, limit)
			})
			wantEqual(t, "in order", slices.IsSortedFunc(page, byKey), true)
			for _, e := range page {
				if slices.Contains(want, e) {
					wantEqual(t, "shard", storage.NewShardMap(s.store.Shards()).Of(e.Owner), ordinal)
					all = append(all, e)
				}
			}
		})
		slices.SortFunc(all, byKey)
		wantList(t, "entries", all, want)
	}
}

func (s moderation) AnEndedContextChangesNothing(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	_, _, err := s.store.Moderate(ended(t), suspend(user, 1, 100))
	wantEndedErr(t, "moderate", err)
	wantEnded(t, "restored", s.store.Restore(ended(t), storage.Restored{Moderation: []storage.ModerationEntry{suspend(user, 1, 100)}, At: at(1)}), 1)
	_, err = storage.StateLookups.Get(ended(t), s.store, user)
	wantEndedErr(t, "suspension", err)
	_, err = storage.ModerationLookups.Get(ended(t), s.store, storage.PlaceQuery{Limit: 1})
	wantEndedErr(t, "log", err)
	wantList(t, "log", s.log(t, user), nil)
	s.wantSuspension(t, user, storage.UserStanding{})
}

func suspend(user storage.UserID, n, until int) storage.ModerationEntry {
	return storage.ModerationEntry{Owner: user, At: at(n), User: user, Action: storage.Suspended, By: "operator", Reason: "spam, and worse", Until: at(until)}
}

func reinstate(user storage.UserID, n int) storage.ModerationEntry {
	return storage.ModerationEntry{Owner: user, At: at(n), User: user, Action: storage.Reinstated, By: "another", Reason: "a mistake"}
}

// report is of a post that has a number, or of the user.
func report(by, user storage.UserID, n int, number int64) storage.ModerationEntry {
	e := storage.ModerationEntry{Owner: by, At: at(n), User: user, Action: storage.UserReported, By: by.String(), Reason: "rude", Number: number}
	if number != 0 {
		e.Action = storage.PostReported
	}
	return e
}

func (s moderation) moderate(t *testing.T, e storage.ModerationEntry, want bool) storage.ModerationEntry {
	t.Helper()
	added, changed, err := s.store.Moderate(t.Context(), e)
	wantIs(t, err, nil)
	wantEqual(t, "changed", changed, want)
	return added
}

// log is everything about a user.
func (s moderation) log(t *testing.T, user storage.UserID) []storage.ModerationEntry {
	t.Helper()
	return one(t, s.harness, storage.ModerationLookups, storage.PlaceQuery{Of: storage.PostID{Author: user}, Limit: 100})
}

func (s moderation) wantSuspension(t *testing.T, user storage.UserID, want storage.UserStanding) {
	t.Helper()
	is := one(t, s.harness, storage.StateLookups, user)
	want.State = is.State
	wantEqual(t, "suspension", is, want)
}

// wantChange checks the one change that is listed of a user, but for its time.
func (s moderation) wantChange(t *testing.T, user storage.UserID, want storage.StateChange) {
	t.Helper()
	changes := s.changesOf(t, user)
	if want.User = user; len(changes) == 1 {
		want.At = changes[0].At
	}
	wantList(t, "changes", changes, []storage.StateChange{want})
}
