package storagetest

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// comments: what users write below posts.
type comments struct{ *harness }

func (s comments) EveryFieldComesBack(t *testing.T) {
	post := s.post(t, s.newUsers(t, 1)[0].ID, 1)
	n := s.newComment(post.PostID, s.id(), 2)
	n.Text = strings.Repeat("👩", storage.MaxCommentLength)
	want := storage.Comment{
		CommentID: storage.CommentID{Author: post.Author, Number: n.Number}, Post: post.Number, By: n.By, Text: n.Text, CreatedAt: n.CreatedAt,
	}
	s.add(t, n, want, true)
	wantList(t, "comments", found(t, storage.CommentLookups.Read(t.Context(), s.store, want.CommentID), 1), []storage.Comment{want})
	wantMissing(t, storage.CommentLookups.Read(t.Context(), s.store, storage.CommentID{Author: s.id(), Number: n.Number}, storage.CommentID{Author: post.Author, Number: s.number()}), 2)
}

func (s comments) AddedAgainItIsTheSame(t *testing.T) {
	author := s.newUsers(t, 1)[0].ID
	posts := []storage.Post{s.post(t, author, 1), s.post(t, author, 2)}
	n := s.newComment(posts[0].PostID, s.id(), 1)
	c, _, err := s.store.AddComment(t.Context(), n)
	wantIs(t, err, nil)
	again := n
	again.Number, again.CreatedAt, again.Text = s.number(), at(5), "other"
	s.add(t, again, c, false)
	s.wantCount(t, posts[0].PostID, 1)
	for _, other := range []storage.Comment{s.newComment(posts[1].PostID, n.By, 1), s.newComment(posts[0].PostID, s.id(), 1)} {
		other.Key = n.Key
		_, added, err := s.store.AddComment(t.Context(), other)
		check.That(t, err == nil && added, "another post or user: %v, %v", added, err)
	}
}

func (s comments) PagesRunNewestFirst(t *testing.T) {
	author := s.newUsers(t, 1)[0].ID
	post, other := s.post(t, author, 1).PostID, s.post(t, author, 2).PostID
	var all []storage.Comment
	for i := range 20 {
		all = append(all, s.comment(t, post, s.id(), i/3))
		s.comment(t, other, s.id(), i)
	}
	slices.SortFunc(all, func(a, b storage.Comment) int { return a.Place().Compare(b.Place()) })
	for _, limit := range []int{1, 6, 20, 21} {
		var got []storage.Comment
		var after storage.Place
		for len(got) <= len(all) {
			page := s.page(t, storage.PlaceQuery{Of: post, After: after, Limit: limit})
			got = append(got, page...)
			if len(page) < limit {
				break
			}
			after = page[limit-1].Place()
		}
		wantList(t, "comments", got, all)
	}
}

func (s comments) TheyAreCounted(t *testing.T) {
	post := s.post(t, s.newUsers(t, 1)[0].ID, 1)
	first := s.comment(t, post.PostID, s.id(), 1)
	s.comment(t, post.PostID, s.id(), 2)
	s.delete(t, first.CommentID, first.By, true)
	s.delete(t, first.CommentID, first.By, false)
	post.Counts.Comments, post.Counts.Version = 1, post.Counts.Version+3
	s.wantPost(t, post)
}

func (s comments) OnlyItsWriterAndTheAuthorDelete(t *testing.T) {
	post := s.post(t, s.newUsers(t, 1)[0].ID, 1)
	c := s.comment(t, post.PostID, s.id(), 1)
	s.delete(t, c.CommentID, s.id(), false)
	s.wantCount(t, post.PostID, 1)
	s.delete(t, c.CommentID, post.Author, true)
	s.wantCount(t, post.PostID, 0)
	wantMissing(t, storage.CommentLookups.Read(t.Context(), s.store, c.CommentID), 1)
}

func (s comments) WithoutAPostThereIsNone(t *testing.T) {
	author := s.newUsers(t, 1)[0].ID
	gone := s.post(t, author, 1).PostID
	below := s.comment(t, gone, s.id(), 1)
	changed, err := s.store.DeletePost(t.Context(), gone)
	must.That(t, err == nil && changed, "%v %v", changed, err)
	wantMissing(t, storage.CommentLookups.Read(t.Context(), s.store, below.CommentID), 1)
	s.delete(t, below.CommentID, below.By, false)
	for _, id := range []storage.PostID{gone, {Author: author, Number: s.number()}, {Author: s.id(), Number: gone.Number}} {
		n := s.newComment(id, s.id(), 2)
		_, added, err := s.store.AddComment(t.Context(), n)
		wantIs(t, err, storage.ErrPostUnknown)
		wantEqual(t, "added", added, false)
	}
}

// A block is stored on the shard of the post's author, whichever user blocks.
func (s comments) ABlockForbidsThem(t *testing.T) {
	author := s.newUsers(t, 1)[0].ID
	post := s.post(t, author, 1).PostID
	blocked, blocks := s.id(), s.id()
	s.apply(t, storage.Forward, edge(storage.Forward, author, blocked, storage.Blocking, at(1)))
	s.apply(t, storage.Inverse, edge(storage.Inverse, author, blocks, storage.Blocking, at(1)))
	for _, by := range []storage.UserID{blocked, blocks} {
		_, _, err := s.store.AddComment(t.Context(), s.newComment(post, by, 2))
		wantIs(t, err, storage.ErrForbidden)
	}
	s.wantCount(t, post, 0)
	s.comment(t, post, author, 3)
	s.apply(t, storage.Forward, edge(storage.Forward, author, blocked, storage.None, at(4)))
	s.comment(t, post, blocked, 5)
	s.wantCount(t, post, 2)
}

func (s comments) CountsAreExactWhereManyWrite(t *testing.T) {
	post := s.post(t, s.newUsers(t, 1)[0].ID, 1).PostID
	var left atomic.Int64
	by := s.ids(workers)
	together(func(worker int) {
		for i := range 25 {
			n := s.newComment(post, by[worker], i)
			n.Key = fmt.Sprint(i)
			c, _, err := s.store.AddComment(t.Context(), n)
			if err == nil && i%2 == 0 {
				_, err = s.store.DeleteComment(t.Context(), c.CommentID, by[worker])
			} else {
				left.Add(1)
			}
			check.That(t, err == nil, "%v", err)
		}
	})
	s.wantCount(t, post, left.Load())
	wantEqual(t, "comments", int64(len(s.page(t, storage.PlaceQuery{Of: post, Limit: 1000}))), left.Load())
}

// newComment is the n-th comment in time.
func (h *harness) newComment(post storage.PostID, by storage.UserID, n int) storage.Comment {
	number := h.number()
	return storage.Comment{CommentID: storage.CommentID{Author: post.Author, Number: number}, Post: post.Number, By: by, Key: fmt.Sprint(number), Text: fmt.Sprintf("comment %d", n), CreatedAt: at(n)}
}

// comment adds the n-th comment in time.
func (h *harness) comment(t *testing.T, post storage.PostID, by storage.UserID, n int) storage.Comment {
	t.Helper()
	c, added, err := h.store.AddComment(t.Context(), h.newComment(post, by, n))
	must.That(t, err == nil && added, "%v, %v", added, err)
	return c
}

func (s comments) add(t *testing.T, n storage.Comment, want storage.Comment, new bool) {
	t.Helper()
	c, added, err := s.store.AddComment(t.Context(), n)
	wantIs(t, err, nil)
	wantEqual(t, "added", added, new)
	wantEqual(t, "comment", c, want)
}

func (s comments) delete(t *testing.T, id storage.CommentID, by storage.UserID, want bool) {
	t.Helper()
	on, err := s.store.DeleteComment(t.Context(), id, by)
	wantIs(t, err, nil)
	wantEqual(t, "deleted", on != (storage.PostID{}), want)
}

func (h *harness) wantCount(t *testing.T, id storage.PostID, want int64) {
	t.Helper()
	wantEqual(t, "comments counted", found(t, storage.PostLookups.Read(t.Context(), h.store, id), 1)[0].Counts.Comments, want)
}

func (s comments) page(t *testing.T, q storage.PlaceQuery) []storage.Comment {
	t.Helper()
	return found(t, storage.CommentPageLookups.Read(t.Context(), s.store, q), 1)[0]
}
