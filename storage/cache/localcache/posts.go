package localcache

import (
	"hash/maphash"
	"sync/atomic"

	"kith/storage"
	"kith/storage/wire"
)

// posts is the form of posts with their counts.
var posts = form[storage.Post]{wire.AppendPost, func(k key, data []byte, p *storage.Post) {
	*p, _ = wire.ParsePost(storage.PostID{Author: k.id, Number: k.number}, string(data))
}}

// stamps number the moments at which all posts of an author are forgotten. A post is kept under its
// author's stamp: with the next stamp, what was kept and what is still being read is not found any
// more, and leaves the cache because it is never asked for. So there is no index of authors.
// Authors share stamps; forgetting one then forgets the posts of some others too.
type stamps [1 << 12]atomic.Uint32

func (c *Cache) stamp(author storage.UserID) *atomic.Uint32 {
	return &c.stamps[maphash.Comparable(c.seed, author)%uint64(len(c.stamps))]
}

func (c *Cache) postKey(id storage.PostID) key {
	return key{postKind, id.Author, id.Number, c.stamp(id.Author).Load()}
}

// forgetPost forgets a post, or all posts of its author if it has no number. The ids of a page are kept: only the author's version tells
// whether they have changed. But callers who wait for a page get the posts that were read with it.
func (c *Cache) forgetPost(id storage.PostID) {
	c.postPages.leaveAll(id.Author)
	if id.Number == 0 {
		c.stamp(id.Author).Add(1)
		return
	}
	c.forget(c.postKey(id))
}

// forgetPostOf forgets the post that a row of favorite_inbox is about.
func (c *Cache) forgetPostOf(side storage.Side, e storage.Edge) {
	if side == storage.FavoriteInbox {
		c.forgetPost(e.Pair().PostID())
	}
}
