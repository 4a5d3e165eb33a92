package storage

import "context"

// PostAt is a post and when it was published: what home feeds are made of before their posts are
// read.
type PostAt struct {
	PostID
	CreatedAt Micros
}

// Place is where the post is in lists.
func (p PostAt) Place() Place { return Place{p.CreatedAt, p.Number} }

// At is the post without the values that can be changed.
func (p Post) At() PostAt { return PostAt{p.PostID, p.CreatedAt} }

// RecentQuery asks for a range of one shard's posts, newest first.
type RecentQuery struct {
	Shard int    // its ordinal
	After Place  // only posts strictly behind it (older), unless zero
	Since Micros // only posts that are not older
	Limit int    // how many at most, ≥ 1
}

// RecentPostReader reads where posts are in time, without their texts.
type RecentPostReader interface {
	// RecentPosts lists posts of one shard. A post whose bucket is moving may be on two shards.
	// [ErrUnavailable].
	RecentPosts(ctx context.Context, query RecentQuery) ([]PostAt, error)

	// LastPosts reads when each author published the newest post that is not newer than upTo. An
	// author without such a post is not Found.
	LastPosts(ctx context.Context, authors []UserID, upTo Micros) []Result[Micros]
}
