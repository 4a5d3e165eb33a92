package oracle

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/judge"
)

// A post has been published, and perhaps deleted since.
type post struct {
	storage.Post
	key     string
	deleted bool
}

type comment struct {
	storage.Comment
	key string
}

// findPosts answers [storage.PostLookups].
func (s *Store) findPosts(id storage.PostID) (storage.Post, bool) {
	if p := s.posts[id]; p != nil && !p.deleted {
		return p.Post, true
	}
	return storage.Post{}, false
}

// findPostPages answers [storage.PostPageLookups].
func (s *Store) findPostPages(q storage.PlaceQuery) ([]storage.Post, bool) {
	return s.postsBehind(q.After, q.Limit, func(p *post) bool { return p.Author == q.Of.Author }), true
}

// readLatestPosts answers [storage.LatestPostLookups].
func (s *Store) readLatestPosts(ctx context.Context, q storage.PlaceQuery) ([]storage.Post, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.postsBehind(q.After, q.Limit, func(*post) bool { return true }), nil
}

// readRecentPosts answers [storage.RecentPostLookups], with posts that have moved away.
func (s *Store) readRecentPosts(ctx context.Context, q storage.ShardQuery[storage.Place]) (list []storage.PostAt, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.posts {
		if !p.deleted && s.placed.Of(p.Author) == q.Shard {
			list = append(list, p.At())
		}
	}
	for _, l := range s.left {
		for _, p := range l.posts {
			if p.shard == q.Shard {
				list = append(list, p.At())
			}
		}
	}
	list = slices.DeleteFunc(list, func(p storage.PostAt) bool { return p.CreatedAt < q.Until })
	return pageOf(list, storage.PostAt.Place, q.After, q.Limit), nil
}

// readLastPosts answers [storage.LastPostLookups].
func (s *Store) readLastPosts(ctx context.Context, queries []storage.LastQuery) []storage.Result[storage.Micros] {
	return lookUp(ctx, s, queries, func(q storage.LastQuery) (storage.Micros, bool) {
		for _, p := range s.postsBehind(storage.Place{}, 1, func(p *post) bool { return p.Author == q.Author && p.CreatedAt <= q.UpTo }) {
			return p.CreatedAt, true
		}
		return 0, false
	})
}

func (s *Store) postsBehind(after storage.Place, limit int, wanted func(*post) bool) []storage.Post {
	var list []storage.Post
	for _, p := range s.posts {
		if !p.deleted && wanted(p) {
			list = append(list, p.Post)
		}
	}
	return pageOf(list, storage.Post.Place, after, limit)
}

// pageOf is a range of a list that runs newest first.
func pageOf[T any](list []T, place func(T) storage.Place, after storage.Place, limit int) []T {
	list = slices.DeleteFunc(list, func(one T) bool { return after != (storage.Place{}) && place(one).Compare(after) <= 0 })
	slices.SortFunc(list, func(a, b T) int { return place(a).Compare(place(b)) })
	return list[:min(limit, len(list))]
}

// Publish implements [storage.Store].
func (s *Store) Publish(ctx context.Context, n storage.PostRow) (storage.Post, bool, error) {
	if err := ctx.Err(); err != nil {
		return storage.Post{}, false, err
	}
	defer s.write(ctx)()
	if _, exists := s.users[n.Author]; !exists {
		return storage.Post{}, false, fmt.Errorf("publish: %w: %s", storage.ErrUserUnknown, n.Author)
	}
	if err := judge.MayPublish(n.Author, s.states[n.Author].State); err != nil {
		return storage.Post{}, false, err
	}
	for id, p := range s.posts {
		if id.Author == n.Author && p.key == n.Key {
			known, err := s.post(id)
			if err == nil {
				s.published(known)
			}
			return known, false, err
		}
	}
	p := storage.Post{PostID: n.PostID, Text: n.Text, Media: slices.Clone(n.Media), CreatedAt: n.At, Counts: storage.PostCounts{Version: 1}, Attributes: n.Attributes}
	s.posts[n.PostID] = &post{Post: p, key: n.Key}
	s.countPosts(n.Author, 1)
	s.activeOn(n.Author, n.At)
	s.published(p)
	return p, true, nil
}

func (s *Store) published(p storage.Post) {
	s.change.AddPost(storage.PostPublished, p.At())
}

func (s *Store) countPosts(author storage.UserID, by int64) {
	counts := s.counts[author]
	counts.Posts += by
	counts.Version++
	s.counts[author] = counts
	s.change.AddCounts(storage.UserChange{User: author, Counts: counts, Before: counts.Version - 1})
}

// post returns a post that has not been deleted.
func (s *Store) post(id storage.PostID) (storage.Post, error) {
	if p := s.posts[id]; p != nil && !p.deleted {
		return p.Post, nil
	}
	return storage.Post{}, fmt.Errorf("%w: %d of user %s", storage.ErrPostUnknown, id.Number, id.Author)
}

// EditPost implements [storage.Store].
func (s *Store) EditPost(ctx context.Context, id storage.PostID, change storage.PostChange, at storage.Micros) (storage.Post, bool, error) {
	if err := ctx.Err(); err != nil {
		return storage.Post{}, false, err
	}
	defer s.write(ctx)()
	p, err := s.post(id)
	if err != nil {
		return p, false, err
	}
	p, changed, err := judge.EditPost(p, change, at)
	if err != nil {
		return storage.Post{}, false, err
	}
	p.Media = slices.Clone(p.Media)
	s.posts[id].Post = p
	s.change.AddPost(storage.PostEdited, storage.PostAt{PostID: id})
	return p, changed, nil
}

// DeletePost implements [storage.Store].
func (s *Store) DeletePost(ctx context.Context, id storage.PostID) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	defer s.write(ctx)()
	return s.deletePost(id), nil
}

func (s *Store) deletePost(id storage.PostID) (changed bool) {
	s.change.AddPost(storage.PostDeleted, storage.PostAt{PostID: id})
	if _, err := s.post(id); err != nil {
		return false
	}
	s.posts[id].deleted = true
	counts := s.counts[id.Author]
	counts.Favorited -= s.posts[id].Counts.Favorites
	s.counts[id.Author] = counts
	s.countPosts(id.Author, -1)
	return true
}

// findComments answers [storage.CommentLookups].
func (s *Store) findComments(id storage.CommentID) (storage.Comment, bool) {
	c, exists := s.comments[id]
	if _, err := s.post(c.On()); !exists || err != nil {
		return storage.Comment{}, false
	}
	return c.Comment, true
}

// findCommentPages answers [storage.CommentPageLookups].
func (s *Store) findCommentPages(q storage.PlaceQuery) ([]storage.Comment, bool) {
	var list []storage.Comment
	for _, c := range s.comments {
		if c.On() == q.Of {
			list = append(list, c.Comment)
		}
	}
	return pageOf(list, storage.Comment.Place, q.After, q.Limit), true
}

// AddComment implements [storage.Store].
func (s *Store) AddComment(ctx context.Context, n storage.Comment) (storage.Comment, bool, error) {
	if err := ctx.Err(); err != nil {
		return storage.Comment{}, false, err
	}
	defer s.write(ctx)()
	if _, err := s.post(n.On()); err != nil {
		return storage.Comment{}, false, err
	}
	for _, c := range s.comments {
		if c.On() == n.On() && c.By == n.By && c.key == n.Key {
			s.commented(c.Comment)
			return c.Comment, false, nil
		}
	}
	if err := s.judge(storage.Pair{From: n.Author, To: n.By}).MayComment(n.Author, n.By); err != nil {
		return storage.Comment{}, false, err
	}
	c := n
	c.Key = ""
	s.comments[c.CommentID] = comment{c, n.Key}
	s.countComments(n.On(), 1)
	s.commented(c)
	return c, true, nil
}

func (s *Store) commented(c storage.Comment) {
	on := storage.PostAt{PostID: storage.PostID{Author: c.Author, Number: c.Post}}
	s.change.Posts = append(s.change.Posts, storage.ChangedPost{PostAt: on, News: storage.PostCommented, Comment: c.Number})
}

func (s *Store) countComments(id storage.PostID, by int64) {
	if p := s.posts[id]; p != nil {
		p.Counts.Comments += by
		p.Counts.Version++
		s.change.AddPost(storage.PostEdited, storage.PostAt{PostID: id})
	}
}

// DeleteComment implements [storage.Store].
func (s *Store) DeleteComment(ctx context.Context, id storage.CommentID, by storage.UserID) (storage.PostID, error) {
	if err := ctx.Err(); err != nil {
		return storage.PostID{}, err
	}
	defer s.write(ctx)()
	if c := s.deleteComment(id, by); c.Number != 0 {
		return storage.PostID{Author: c.Author, Number: c.Post}, nil
	}
	return storage.PostID{}, nil
}

// deleteComment returns the comment that it has deleted; the zero one if none.
func (s *Store) deleteComment(id storage.CommentID, by storage.UserID) storage.Comment {
	c, exists := s.comments[id]
	if _, err := s.post(c.On()); !exists || err != nil || !judge.MayDeleteComment(c.Comment, by) {
		return storage.Comment{}
	}
	delete(s.comments, id)
	s.countComments(c.On(), -1)
	return c.Comment
}

// erasePosts removes what a user has written, and what others have written below it.
func (s *Store) erasePosts(user storage.UserID) {
	for id, c := range s.comments {
		if c.By == user || c.Author == user {
			delete(s.comments, id)
			s.countComments(c.On(), -1)
		}
	}
	maps.DeleteFunc(s.posts, func(id storage.PostID, _ *post) bool { return id.Author == user })
}
