package storagetest_test

import (
	"context"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes with posts and comments that are restored.
var postRowMistakes = []mistake{
	{"deleted posts are left out", momentsWith(func(m *wrongMoment) {
		m.post = func(p storage.PostRow) bool { return !p.Deleted }
	}), "postRows/EveryRowComesInKeyOrder", promiseOnly},
	{"pages of comments begin with an author", momentsWith(func(m *wrongMoment) {
		m.after = func(p storage.Pair) storage.Pair { return storage.Pair{From: p.From, To: 1<<63 - 1} }
	}), "postRows/EveryRowComesInKeyOrder", promiseOnly},
	{"restored posts are published", publishesRows, "postRows/APostComesAsItWas", promiseOnly},
	{"the hidden lose their posts", publishesRows, "postRows/HiddenUsersHaveTheirs", promiseOnly},
	{"restored comments ask for blocks", func(s *oracle.Store, w *double.Store) {
		// It restores comments as new ones.
		w.Instead.Restore = func(ctx context.Context, r storage.Restored) (results []storage.Result[bool]) {
			results = s.Restore(ctx, storage.Restored{Posts: r.Posts})
			for _, c := range r.Comments {
				_, added, err := s.AddComment(ctx, c)
				results = append(results, storage.Result[bool]{Value: added, Found: err == nil})
			}
			return results
		}
	}, "postRows/ACommentComesAsItWas", promiseOnly},
}

// publishesRows restores posts as new ones.
func publishesRows(s *oracle.Store, w *double.Store) {
	w.Instead.Restore = func(ctx context.Context, r storage.Restored) []storage.Result[bool] {
		posts := storage.Each(r.Posts, func(p storage.PostRow) storage.Result[bool] {
			_, published, err := s.Publish(ctx, p)
			return storage.Result[bool]{Value: published, Found: err == nil}
		})
		return append(posts, s.Restore(ctx, storage.Restored{Comments: r.Comments})...)
	}
}
