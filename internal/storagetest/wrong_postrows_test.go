package storagetest_test

import (
	"context"

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
	{"restored posts are published", func(s *oracle.Store) storage.Store { return publishesRows{s} }, "postRows/APostComesAsItWas", promiseOnly},
	{"the hidden lose their posts", func(s *oracle.Store) storage.Store { return publishesRows{s} }, "postRows/HiddenUsersHaveTheirs", promiseOnly},
	{"restored comments ask for blocks", func(s *oracle.Store) storage.Store { return addsRows{s} }, "postRows/ACommentComesAsItWas", promiseOnly},
}

// publishesRows restores posts as new ones.
type publishesRows struct{ *oracle.Store }

func (s publishesRows) Restore(ctx context.Context, r storage.Restored) (results []storage.Result[bool]) {
	for _, p := range r.Posts {
		_, published, err := s.Publish(ctx, p)
		results = append(results, storage.Result[bool]{Value: published, Found: err == nil})
	}
	return append(results, s.Store.Restore(ctx, storage.Restored{Comments: r.Comments})...)
}

// addsRows restores comments as new ones.
type addsRows struct{ *oracle.Store }

func (s addsRows) Restore(ctx context.Context, r storage.Restored) (results []storage.Result[bool]) {
	results = s.Store.Restore(ctx, storage.Restored{Posts: r.Posts})
	for _, c := range r.Comments {
		_, added, err := s.AddComment(ctx, c)
		results = append(results, storage.Result[bool]{Value: added, Found: err == nil})
	}
	return results
}
