package storagetest_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about posts and comments.

var postMistakes = []mistake{
	{"keys of posts are ignored", func(s *oracle.Store) storage.Store { return keysIgnored{s} }, "posts/PublishedAgainItIsTheSame", promiseOnly},
	{"posts after a place include its own", asks(func(q *storage.PlaceQuery) {
		if q.After.Number > 0 {
			q.After.Number++
		}
	}, storage.PostPageLookups), "posts/PagesRunNewestFirst", promiseOnly},
	{"the latest posts begin anew", func(s *oracle.Store) storage.Store { return latestAgain{s} }, "posts/TheLatestAreOfAllAuthors", promiseOnly},
	{"recent posts are older than asked for", func(s *oracle.Store) storage.Store { return recentOld{s} }, "posts/TheRecentOnesOfEachShardAreListed", promiseOnly},
	{"the last post is the newest of all", func(s *oracle.Store) storage.Store { return lastOfAll{s} }, "posts/TheLastOfEachAuthorIsFound", promiseOnly},
	{"deleted posts are counted", func(s *oracle.Store) storage.Store { return deletedCounted{newCounting(s, postsOf)} }, "posts/TheyAreCounted", promiseOnly},
	{"what is not given is removed", func(s *oracle.Store) storage.Store { return editsAll{s} }, "posts/OnlyWhatIsGivenIsEdited", promiseOnly},
	{"deleted posts can be published again", func(s *oracle.Store) storage.Store { return keyForgotten{s} }, "posts/WhatIsDeletedIsGone", promiseOnly},
	{"anybody publishes", func(s *oracle.Store) storage.Store { return anybodyPublishes{s} }, "posts/NobodyPublishesNothing", promiseOnly},
	{"a key is looked up without a lock", func(s *oracle.Store) storage.Store {
		return &unlockedKeys{Store: s, keys: map[string]storage.PostID{}}
	}, "posts/OneKeyIsPublishedOnce", lostRace},
	{"keys of comments are ignored", func(s *oracle.Store) storage.Store { return commentKeysIgnored{s} }, "comments/AddedAgainItIsTheSame", promiseOnly},
	{"comments are counted for ever", answers(func(_ *oracle.Store, _ storage.Side, _ storage.PostID, r *storage.Result[storage.Post]) {
		r.Value.Counts.Comments = r.Value.Counts.Version - 1
	}, storage.PostLookups), "comments/TheyAreCounted", promiseOnly},
	{"anybody deletes comments", func(s *oracle.Store) storage.Store { return anybodyDeletes{s} }, "comments/OnlyItsWriterAndTheAuthorDelete", promiseOnly},
	{"an author cannot delete comments", func(s *oracle.Store) storage.Store { return onlyItsWriter{s} }, "comments/OnlyItsWriterAndTheAuthorDelete", promiseOnly},
	{"comments outlive their posts", func(s *oracle.Store) storage.Store {
		return &commentsOutlive{Store: s, known: map[storage.CommentID]storage.Comment{}}
	}, "comments/WithoutAPostThereIsNone", promiseOnly},
	{"only the author's blocks forbid comments", func(s *oracle.Store) storage.Store { return ownBlocksOnly{s} }, "comments/ABlockForbidsThem", promiseOnly},
	{"comments are counted without a lock", func(s *oracle.Store) storage.Store {
		return &unlockedComments{Store: s, counts: map[storage.PostID]int64{}}
	}, "comments/CountsAreExactWhereManyWrite", lostRace},
	{"the erased keep their comments", func(s *oracle.Store) storage.Store {
		return &erasedComments{Store: s, by: map[storage.CommentID]storage.UserID{}}
	}, "erase/PostsAndCommentsAreRemoved", promiseOnly},
	{"posts are written after the end", func(s *oracle.Store) storage.Store { return deafPosts{s} }, "cancellation/NoPostIsWritten", promiseOnly},
}

type keysIgnored struct{ *oracle.Store }

func (s keysIgnored) Publish(ctx context.Context, n storage.PostRow) (storage.Post, bool, error) {
	n.Key = storage.UserID(n.Number).String()
	return s.Store.Publish(ctx, n)
}

type latestAgain struct{ *oracle.Store }

func (s latestAgain) Bundle(ctx context.Context, b *storage.Bundle) {
	changeKeys(storage.LatestPostLookups, b, func(q *storage.PlaceQuery) { q.After = storage.Place{} })
	s.Store.Bundle(ctx, b)
}

type recentOld struct{ *oracle.Store }

func (s recentOld) Bundle(ctx context.Context, b *storage.Bundle) {
	changeKeys(storage.RecentPostLookups, b, func(q *storage.ShardQuery[storage.Place]) { q.Until-- })
	s.Store.Bundle(ctx, b)
}

type lastOfAll struct{ *oracle.Store }

func (s lastOfAll) Bundle(ctx context.Context, b *storage.Bundle) {
	changeKeys(storage.LastPostLookups, b, func(q *storage.LastQuery) { q.UpTo = math.MaxInt64 })
	s.Store.Bundle(ctx, b)
}

// changeKeys changes what a bundle asks of a kind.
func changeKeys[K, V any](kind *storage.LookupKind[K, V], b *storage.Bundle, change func(*K)) {
	if l := kind.In(b); l.Open() {
		l.Keys = slices.Clone(l.Keys)
		for i := range l.Keys {
			change(&l.Keys[i])
		}
	}
}

type deletedCounted struct{ *counting }

func (s deletedCounted) DeletePost(ctx context.Context, id storage.PostID) (bool, error) {
	changed, err := s.Store.DeletePost(ctx, id)
	if changed {
		s.add(id.Author, 1)
	}
	return changed, err
}

type editsAll struct{ *oracle.Store }

func (s editsAll) EditPost(ctx context.Context, id storage.PostID, change storage.PostChange, at storage.Micros) (storage.Post, bool, error) {
	if change.Media == nil {
		change.Media = new([]storage.Media)
	}
	return s.Store.EditPost(ctx, id, change, at)
}

type keyForgotten struct{ *oracle.Store }

func (s keyForgotten) Publish(ctx context.Context, n storage.PostRow) (storage.Post, bool, error) {
	p, published, err := s.Store.Publish(ctx, n)
	if errors.Is(err, storage.ErrPostUnknown) {
		n.Key += "'"
		return s.Store.Publish(ctx, n)
	}
	return p, published, err
}

type anybodyPublishes struct{ *oracle.Store }

func (s anybodyPublishes) Publish(ctx context.Context, n storage.PostRow) (storage.Post, bool, error) {
	p, published, err := s.Store.Publish(ctx, n)
	if errors.Is(err, storage.ErrUserUnknown) {
		return storage.Post{PostID: n.PostID}, true, nil
	}
	return p, published, err
}

type unlockedKeys struct {
	*oracle.Store
	mu   sync.Mutex
	keys map[string]storage.PostID
}

func (s *unlockedKeys) Publish(ctx context.Context, n storage.PostRow) (storage.Post, bool, error) {
	key := n.Author.String() + n.Key
	s.mu.Lock()
	id, known := s.keys[key]
	s.mu.Unlock()
	if known {
		return storage.PostLookups.Read(ctx, s, id)[0].Value, false, nil
	}
	runtime.Gosched()
	s.mu.Lock()
	s.keys[key] = n.PostID
	s.mu.Unlock()
	n.Key = storage.UserID(n.Number).String()
	return s.Store.Publish(ctx, n)
}

type commentKeysIgnored struct{ *oracle.Store }

func (s commentKeysIgnored) AddComment(ctx context.Context, n storage.Comment) (storage.Comment, bool, error) {
	n.Key = storage.UserID(n.Number).String()
	return s.Store.AddComment(ctx, n)
}

type anybodyDeletes struct{ *oracle.Store }

func (s anybodyDeletes) DeleteComment(ctx context.Context, id storage.CommentID, _ storage.UserID) (storage.PostID, error) {
	return s.Store.DeleteComment(ctx, id, id.Author)
}

type onlyItsWriter struct{ *oracle.Store }

func (s onlyItsWriter) DeleteComment(ctx context.Context, id storage.CommentID, by storage.UserID) (storage.PostID, error) {
	if c := storage.CommentLookups.Read(ctx, s, id)[0]; c.Found && c.Value.By != by {
		return storage.PostID{}, nil
	}
	return s.Store.DeleteComment(ctx, id, by)
}

type commentsOutlive struct {
	*oracle.Store
	mu    sync.Mutex
	known map[storage.CommentID]storage.Comment
}

func (s *commentsOutlive) comments(ctx context.Context, ids []storage.CommentID) []storage.Result[storage.Comment] {
	results := storage.CommentLookups.Read(ctx, s.Store, ids...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, id := range ids {
		if c, known := s.known[id]; known {
			results[i] = storage.Result[storage.Comment]{Value: c, Found: true}
		}
	}
	return results
}

func (s *commentsOutlive) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.CommentLookups.Instead(ctx, b, s.comments)
	s.Store.Bundle(ctx, b)
}

func (s *commentsOutlive) AddComment(ctx context.Context, n storage.Comment) (storage.Comment, bool, error) {
	c, added, err := s.Store.AddComment(ctx, n)
	if added {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.known[c.CommentID] = c
	}
	return c, added, err
}

type ownBlocksOnly struct{ *oracle.Store }

func (s ownBlocksOnly) AddComment(ctx context.Context, n storage.Comment) (storage.Comment, bool, error) {
	c, added, err := s.Store.AddComment(ctx, n)
	block := storage.EdgeLookups[storage.Forward].Read(ctx, s, storage.Pair{From: n.Author, To: n.By})[0].Value
	if errors.Is(err, storage.ErrForbidden) && block.Type != storage.Blocking {
		return c, false, nil
	}
	return c, added, err
}

type unlockedComments struct {
	*oracle.Store
	mu     sync.Mutex
	counts map[storage.PostID]int64
}

func (s *unlockedComments) count(id storage.PostID, by int64) {
	s.mu.Lock()
	n := s.counts[id]
	s.mu.Unlock()
	runtime.Gosched()
	s.mu.Lock()
	s.counts[id] = n + by
	s.mu.Unlock()
}

func (s *unlockedComments) AddComment(ctx context.Context, n storage.Comment) (storage.Comment, bool, error) {
	c, added, err := s.Store.AddComment(ctx, n)
	if added {
		s.count(n.On(), 1)
	}
	return c, added, err
}

func (s *unlockedComments) DeleteComment(ctx context.Context, id storage.CommentID, by storage.UserID) (storage.PostID, error) {
	c := storage.CommentLookups.Read(ctx, s, id)[0].Value
	on, err := s.Store.DeleteComment(ctx, id, by)
	if on != (storage.PostID{}) {
		s.count(storage.PostID{Author: c.Author, Number: c.Post}, -1)
	}
	return on, err
}

func (s *unlockedComments) posts(ctx context.Context, ids []storage.PostID) []storage.Result[storage.Post] {
	results := storage.PostLookups.Read(ctx, s.Store, ids...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, id := range ids {
		results[i].Value.Counts.Comments = s.counts[id]
	}
	return results
}

func (s *unlockedComments) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PostLookups.Instead(ctx, b, s.posts)
	s.Store.Bundle(ctx, b)
}

// erasedComments writes again the comments of an erased user below posts of others.
type erasedComments struct {
	*oracle.Store
	by map[storage.CommentID]storage.UserID
}

func (s *erasedComments) AddComment(ctx context.Context, n storage.Comment) (storage.Comment, bool, error) {
	c, added, err := s.Store.AddComment(ctx, n)
	if added {
		s.by[c.CommentID] = c.By
	}
	return c, added, err
}

func (s *erasedComments) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	var again []storage.Comment
	for id, by := range s.by {
		if c := storage.CommentLookups.Read(ctx, s, id)[0]; c.Found && by == user && c.Value.Author != user {
			again = append(again, storage.Comment{
				CommentID: storage.CommentID{Author: id.Author, Number: id.Number},
				Post:      c.Value.Post,
				By:        by,
				Key:       storage.UserID(id.Number).String(),
				Text:      c.Value.Text,
				CreatedAt: c.Value.CreatedAt,
			})
		}
	}
	err := s.Store.Erase(ctx, user, at)
	for _, n := range again {
		_, _, _ = s.Store.AddComment(ctx, n)
	}
	return err
}

type deafPosts struct{ *oracle.Store }

func (s deafPosts) DeletePost(ctx context.Context, id storage.PostID) (bool, error) {
	return s.Store.DeletePost(context.WithoutCancel(ctx), id)
}
