package rediscache

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/cache/packing"
)

// posts is the kind of posts with their counts. A post that does not exist is kept as well.
type posts struct{ life time.Duration } // of stamps: no post is kept longer

func (posts) name() string                                         { return "post" }
func (posts) widen(id storage.PostID) storage.PostID               { return id }
func (posts) narrow(p storage.Post, _ storage.PostID) storage.Post { return p }
func (posts) nothing(p storage.Post) bool                          { return p.Number == 0 }
func newStamp() []byte                                             { return binary.BigEndian.AppendUint64(nil, rand.Uint64()) }

func (posts) read(ctx context.Context, source storage.Snapshots, ids []storage.PostID) []storage.Result[storage.Post] {
	return source.Posts(ctx, ids)
}

func (k posts) get(ctx context.Context, pipe redis.Pipeliner, e *epoch, id storage.PostID, token string, lease time.Duration) *redis.Cmd {
	return postGet.call(ctx, pipe, []string{e.post(id), e.stamp(id.Author)}, token, lease.Milliseconds(), newStamp(), (k.life + lease).Milliseconds())
}

func (posts) parse(reply any, id storage.PostID) (storage.Result[storage.Post], error) {
	text, ok := reply.(string)
	if !ok {
		return storage.Result[storage.Post]{}, errMalformed
	}
	p, err := parsePost(id, text)
	return storage.Result[storage.Post]{Value: p, Found: p.Number != 0}, err
}

func (posts) fill(ctx context.Context, pipe redis.Pipeliner, e *epoch, id storage.PostID, p storage.Post, token string, life time.Duration) *redis.Cmd {
	version := p.Counts.Version
	return postFill.call(ctx, pipe, []string{e.post(id), e.stamp(id.Author)}, token, version, packing.AppendPost(nil, p), life.Milliseconds(), inEight(version))
}

func (posts) release(ctx context.Context, pipe redis.Pipeliner, e *epoch, id storage.PostID, token string) *redis.Cmd {
	return postRelease.call(ctx, pipe, []string{e.post(id)}, token)
}

func (posts) drop(ctx context.Context, pipe redis.Pipeliner, e *epoch, id storage.PostID) {
	pipe.Unlink(ctx, e.post(id))
}

// Posts implements [storage.Snapshots].
func (c *Cache) Posts(ctx context.Context, ids []storage.PostID) []storage.Result[storage.Post] {
	return look(ctx, c, posts{c.longestLife()}, ids)
}

// reportPost reports one post, or all posts of an author if it has no number.
func (c *Cache) reportPost(ctx context.Context, pipe redis.Pipeliner, e *epoch, p storage.PostVersion) {
	if p.Number == 0 {
		pipe.Unlink(ctx, e.stamp(p.Author))
		return
	}
	postChanged.call(ctx, pipe, []string{e.post(p.PostID)}, p.Version, c.leaseLife().Milliseconds(), inEight(p.Version))
}
