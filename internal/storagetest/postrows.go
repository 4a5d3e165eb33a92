package storagetest

import (
	"fmt"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/storage"
	"kith/storage/contents"
)

// postRows: posts and comments as an import writes them, and as a shard's reader lists them.
type postRows struct{ *harness }

// outcomesOf returns for each result whether its row was found and added, or its error.
func outcomesOf(results []storage.Result[bool]) (list []string) {
	for _, r := range results {
		if r.Err != nil {
			list = append(list, r.Err.Error())
			continue
		}
		list = append(list, fmt.Sprintf("%v %v", r.Found, r.Value))
	}
	return list
}

// row is the n-th post of an author in time, as another store had it.
func (s postRows) row(author storage.UserID, n int) storage.PostRow {
	return s.newPost(author, n)
}

func (s postRows) NothingHasNoResults(t *testing.T) {
	wantEqual(t, "results", len(s.store.Restore(t.Context(), storage.Restored{})), 0)
}

func (s postRows) APostComesAsItWas(t *testing.T) {
	author, follower := s.newUsers(t, 1)[0].ID, s.id() // the follower has counts
	s.apply(t, storage.Forward, follow(storage.Forward, follower, author, 1))
	before := s.countsOf(t, author)
	one, deleted := s.row(author, 3), s.row(author, 4)
	one.EditedAt, one.Media = at(8), []storage.Media{{Name: "Ада", URL: `https://a/<"`, Kind: storage.Video}}
	deleted.Deleted, deleted.Text, deleted.Media = true, "", nil
	again, other := one, s.row(author, 5)
	again.Text, other.Key = "other", one.Key
	got := outcomesOf(s.store.Restore(t.Context(), storage.Restored{Posts: []storage.PostRow{one, deleted, s.row(follower, 1), s.row(s.id(), 1), again, other}}))
	wantList(t, "outcomes", got, []string{added, added, notFound, notFound, there, "client key is taken"})
	wantPosts(t, found(t, storage.PostLookups.Read(t.Context(), s.store, one.PostID), 1), []storage.Post{{
		PostID: one.PostID, Text: one.Text, Media: one.Media, CreatedAt: one.At, EditedAt: one.EditedAt, Counts: storage.PostCounts{Version: 1},
	}})
	wantMissing(t, storage.PostLookups.Read(t.Context(), s.store, deleted.PostID, other.PostID), 2)
	after := s.countsOf(t, author)
	wantEqual(t, "posts", after.Posts, before.Posts+1)
	check.That(t, after.Version > before.Version, "version %d after %d", after.Version, before.Version)
	deleted.Number = s.number() // its key is taken
	_, _, err := s.store.Publish(t.Context(), deleted)
	wantIs(t, err, storage.ErrPostUnknown)
	wantList(t, "outcomes again", outcomesOf(s.store.Restore(t.Context(), storage.Restored{Posts: []storage.PostRow{one}})), []string{there})
	wantEqual(t, "counts", s.countsOf(t, author), after)
}

// A user who is about to be deleted has posts until then.
func (s postRows) HiddenUsersHaveTheirs(t *testing.T) {
	for _, state := range []storage.UserState{storage.Deactivated, storage.Deleting} {
		author := s.newUsers(t, 1)[0].ID
		s.setState(t, author, state, 1, true)
		wantList(t, "outcomes", outcomesOf(s.store.Restore(t.Context(), storage.Restored{Posts: []storage.PostRow{s.row(author, 1)}})), []string{added})
	}
}

func (s postRows) ACommentComesAsItWas(t *testing.T) {
	author, by := s.newUsers(t, 1)[0].ID, s.id()
	s.apply(t, storage.Forward, edge(storage.Forward, author, by, storage.Blocking, at(1)))
	post, deleted := s.post(t, author, 1), s.post(t, author, 2)
	posts(s).delete(t, deleted.PostID, true)
	one := s.newComment(post.PostID, by, 3)
	again, other := one, s.newComment(post.PostID, by, 5)
	again.Text, other.Key = "other", one.Key
	missing := s.newComment(storage.PostID{Author: author, Number: s.number()}, by, 4)
	got := outcomesOf(s.store.Restore(t.Context(), storage.Restored{Comments: []storage.Comment{s.newComment(deleted.PostID, by, 1), one, missing, again, other}}))
	wantList(t, "outcomes", got, []string{notFound, added, notFound, there, "client key is taken"})
	wantList(t, "comments", found(t, storage.CommentLookups.Read(t.Context(), s.store, one.CommentID), 1), []storage.Comment{
		{CommentID: one.CommentID, Post: post.Number, By: by, Text: one.Text, CreatedAt: one.CreatedAt},
	})
	s.wantCount(t, post.PostID, 1)
	now := found(t, storage.PostLookups.Read(t.Context(), s.store, post.PostID), 1)[0]
	check.That(t, now.Counts.Version > post.Counts.Version, "version %d after %d", now.Counts.Version, post.Counts.Version)
	wantList(t, "outcomes again", outcomesOf(s.store.Restore(t.Context(), storage.Restored{Comments: []storage.Comment{one}})), []string{there})
	s.wantCount(t, post.PostID, 1)
}

// A shard's reader lists them in key order, page by page, as they are. The listed rows can be
// restored, also if more rows are written at once than one transaction holds.
func (s postRows) EveryRowComesInKeyOrder(t *testing.T) {
	var want []storage.PostRow
	var below []storage.Comment
	for _, author := range idsOf(s.newUsers(t, 4)) {
		for i := range 7 {
			p := s.row(author, i)
			p.EditedAt, p.Deleted = at(i), i == 5
			if p.Deleted {
				p.Text, p.Media = "", nil
			}
			want = append(want, p)
			for range 3 {
				below = append(below, s.newComment(p.PostID, s.id(), i))
			}
		}
		for range 120 {
			below = append(below, s.newComment(want[len(want)-1].PostID, s.id(), 1))
		}
	}
	answers(t, s.store.Restore(t.Context(), storage.Restored{Posts: want}), len(want))
	answers(t, s.store.Restore(t.Context(), storage.Restored{Comments: below}), len(below))
	below = slices.DeleteFunc(below, func(c storage.Comment) bool {
		return slices.ContainsFunc(want, func(p storage.PostRow) bool { return p.Deleted && p.PostID == c.On() })
	})
	posts := func(a, b storage.PostRow) int { return a.Compare(b.PostID) }
	comments := func(a, b storage.Comment) int {
		return storage.PostID(a.CommentID).Compare(storage.PostID(b.CommentID))
	}
	slices.SortFunc(want, posts)
	slices.SortFunc(below, comments)
	for _, limit := range pageLimits {
		var all []storage.PostRow
		var written []storage.Comment
		shardReader(s).eachShard(t, func(t *testing.T, _ int, at contents.Moment) {
			page, lines := postsAt(t, at, limit), commentsAt(t, at, limit)
			check.That(t, slices.IsSortedFunc(page, posts) && slices.IsSortedFunc(lines, comments), "not in order: %v, %v", page, lines)
			all, written = append(all, page...), append(written, lines...)
		})
		all = slices.DeleteFunc(all, func(p storage.PostRow) bool {
			return !slices.ContainsFunc(want, func(own storage.PostRow) bool { return own.Author == p.Author })
		})
		written = slices.DeleteFunc(written, func(c storage.Comment) bool {
			return !slices.ContainsFunc(want, func(own storage.PostRow) bool { return own.Author == c.Author })
		})
		slices.SortFunc(all, posts)
		slices.SortFunc(written, comments)
		check.Equal(t, "posts", all, want)
		wantList(t, "comments", written, below)
	}
}

// postsAt reads all posts page by page.
func postsAt(t *testing.T, at contents.Moment, limit int) []storage.PostRow {
	t.Helper()
	return allPages(t, limit, func(last *storage.PostRow) ([]storage.PostRow, error) {
		if last == nil {
			return at.Posts(t.Context(), storage.PostID{}, limit)
		}
		return at.Posts(t.Context(), last.PostID, limit)
	})
}

// commentsAt reads all comments page by page.
func commentsAt(t *testing.T, at contents.Moment, limit int) []storage.Comment {
	t.Helper()
	return allPages(t, limit, func(last *storage.Comment) ([]storage.Comment, error) {
		if last == nil {
			return at.Comments(t.Context(), storage.CommentID{}, limit)
		}
		return at.Comments(t.Context(), last.CommentID, limit)
	})
}
