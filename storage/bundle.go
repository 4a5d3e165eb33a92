package storage

import "context"

// Bundle is look-ups of several kinds that are known at the same time. Each kind has the
// contract of the method of [Reader] of its name.
type Bundle struct {
	Users  []UserID
	Counts []UserID
	Edges  [2][]Pair // of the Forward and the Inverse side
	Pages  [2][]PageQuery
}

// BundleAnswers are the answers to a [Bundle], one for each of its keys, in their order.
type BundleAnswers struct {
	Users  []Result[User]
	Counts []Result[Counts]
	Edges  [2][]Result[Edge]
	Pages  [2][]Result[[]Edge]
}

// Bundler is what a [Reader] may be besides: one that reads a bundle in fewer statements
// than its parts, by whoever is asked for a user and the first page of its list.
type Bundler interface {
	// Bundle answers all of a bundle, or nothing: ok is false where it is no faster than
	// its parts. What fails, fails for all keys that lie on the same shard.
	Bundle(ctx context.Context, b Bundle) (answers BundleAnswers, ok bool)
}
