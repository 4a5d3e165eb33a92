package storagetest_test

import (
	"context"
	"math"
	"runtime"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about posts and comments.
var postMistakes = []mistake{
	{"keys of posts are ignored", func(s *oracle.Store, w *double.Store) {
		w.Instead.Publish = func(ctx context.Context, n storage.PostRow) (storage.Post, bool, error) {
			n.Key = storage.UserID(n.Number).String()
			return s.Publish(ctx, n)
		}
	}, "posts/PublishedAgainItIsTheSame", promiseOnly},
	{"posts after a place include its own", asks(func(q *storage.PlaceQuery) {
		if q.After.Number > 0 {
			q.After.Number++
		}
	}, storage.PostPageLookups), "posts/PagesRunNewestFirst", promiseOnly},
	{"the latest posts begin anew", asks(func(q *storage.PlaceQuery) { q.After = storage.Place{} }, storage.LatestPostLookups), "posts/TheLatestAreOfAllAuthors", promiseOnly},
	{"recent posts are older than asked for", asks(func(q *storage.ShardQuery[storage.Place]) { q.Until-- }, storage.RecentPostLookups), "posts/TheRecentOnesOfEachShardAreListed", promiseOnly},
	{"the last post is the newest of all", asks(func(q *storage.LastQuery) { q.UpTo = math.MaxInt64 }, storage.LastPostLookups), "posts/TheLastOfEachAuthorIsFound", promiseOnly},
	{"deleted posts are counted", func(s *oracle.Store, w *double.Store) {
		add := adding(w, postsOf)
		w.Instead.DeletePost = func(ctx context.Context, id storage.PostID) (bool, error) {
			changed, err := s.DeletePost(ctx, id)
			if changed {
				add(id.Author, 1)
			}
			return changed, err
		}
	}, "posts/TheyAreCounted", promiseOnly},
	{"what is not given is removed", func(s *oracle.Store, w *double.Store) {
		w.Instead.EditPost = func(ctx context.Context, id storage.PostID, change storage.PostChange, at storage.Micros) (storage.Post, bool, error) {
			if change.Media == nil {
				change.Media = new([]storage.Media)
			}
			return s.EditPost(ctx, id, change, at)
		}
	}, "posts/OnlyWhatIsGivenIsEdited", promiseOnly},
	{"a key is looked up without a lock", func(s *oracle.Store, w *double.Store) {
		var keys memory[string, storage.PostID]
		w.Instead.Publish = func(ctx context.Context, n storage.PostRow) (storage.Post, bool, error) {
			key := n.Author.String() + n.Key
			if id, known := keys.get(key); known {
				return storage.PostLookups.Read(ctx, s, id)[0].Value, false, nil
			}
			runtime.Gosched()
			keys.set(key, n.PostID)
			n.Key = storage.UserID(n.Number).String()
			return s.Publish(ctx, n)
		}
	}, "posts/OneKeyIsPublishedOnce", lostRace},
	{"keys of comments are ignored", func(s *oracle.Store, w *double.Store) {
		w.Instead.AddComment = func(ctx context.Context, n storage.Comment) (storage.Comment, bool, error) {
			n.Key = storage.UserID(n.Number).String()
			return s.AddComment(ctx, n)
		}
	}, "comments/AddedAgainItIsTheSame", promiseOnly},
	{"comments are counted for ever", answers(func(_ *oracle.Store, _ storage.Side, _ storage.PostID, r *storage.Result[storage.Post]) {
		r.Value.Counts.Comments = r.Value.Counts.Version - 1
	}, storage.PostLookups), "comments/TheyAreCounted", promiseOnly},
	{"anybody deletes comments", func(s *oracle.Store, w *double.Store) {
		w.Instead.DeleteComment = func(ctx context.Context, id storage.CommentID, _ storage.UserID) (storage.PostID, error) {
			return s.DeleteComment(ctx, id, id.Author)
		}
	}, "comments/OnlyItsWriterAndTheAuthorDelete", promiseOnly},
	{"an author cannot delete comments", func(s *oracle.Store, w *double.Store) {
		w.Instead.DeleteComment = func(ctx context.Context, id storage.CommentID, by storage.UserID) (storage.PostID, error) {
			if c := storage.CommentLookups.Read(ctx, s, id)[0]; c.Found && c.Value.By != by {
				return storage.PostID{}, nil
			}
			return s.DeleteComment(ctx, id, by)
		}
	}, "comments/OnlyItsWriterAndTheAuthorDelete", promiseOnly},
	{"comments outlive their posts", func(s *oracle.Store, w *double.Store) {
		var known memory[storage.CommentID, storage.Comment]
		w.Instead.AddComment = func(ctx context.Context, n storage.Comment) (storage.Comment, bool, error) {
			c, added, err := s.AddComment(ctx, n)
			if added {
				known.set(c.CommentID, c)
			}
			return c, added, err
		}
		answers(known.remembered, storage.CommentLookups)(s, w)
	}, "comments/WithoutAPostThereIsNone", promiseOnly},
	{"comments are counted without a lock", func(s *oracle.Store, w *double.Store) {
		var counts memory[storage.PostID, int64]
		add := func(id storage.PostID, by int64) {
			n, _ := counts.get(id)
			runtime.Gosched()
			counts.set(id, n+by)
		}
		w.Instead.AddComment = func(ctx context.Context, n storage.Comment) (storage.Comment, bool, error) {
			c, added, err := s.AddComment(ctx, n)
			if added {
				add(n.On(), 1)
			}
			return c, added, err
		}
		w.Instead.DeleteComment = func(ctx context.Context, id storage.CommentID, by storage.UserID) (storage.PostID, error) {
			c := storage.CommentLookups.Read(ctx, s, id)[0].Value
			on, err := s.DeleteComment(ctx, id, by)
			if on != (storage.PostID{}) {
				add(storage.PostID{Author: c.Author, Number: c.Post}, -1)
			}
			return on, err
		}
		answers(func(_ *oracle.Store, _ storage.Side, id storage.PostID, r *storage.Result[storage.Post]) {
			r.Value.Counts.Comments, _ = counts.get(id)
		}, storage.PostLookups)(s, w)
	}, "comments/CountsAreExactWhereManyWrite", lostRace},
	{"the erased keep their comments", func(s *oracle.Store, w *double.Store) {
		// It writes again the comments of an erased user below posts of others.
		writers := map[storage.CommentID]storage.UserID{}
		w.Instead.AddComment = func(ctx context.Context, n storage.Comment) (storage.Comment, bool, error) {
			c, added, err := s.AddComment(ctx, n)
			if added {
				writers[c.CommentID] = c.By
			}
			return c, added, err
		}
		w.Instead.Erase = func(ctx context.Context, user storage.UserID, at storage.Micros) error {
			var again []storage.Comment
			for id, by := range writers {
				if c := storage.CommentLookups.Read(ctx, s, id)[0]; c.Found && by == user && c.Value.Author != user {
					c.Value.By, c.Value.Key = by, storage.UserID(id.Number).String()
					again = append(again, c.Value)
				}
			}
			err := s.Erase(ctx, user, at)
			for _, n := range again {
				_, _, _ = s.AddComment(ctx, n)
			}
			return err
		}
	}, "erase/PostsAndCommentsAreRemoved", promiseOnly},
}
