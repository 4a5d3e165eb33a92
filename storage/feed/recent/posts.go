// Package recent keeps in memory where the posts of the last days are in time, and finds those of
// many authors among them: what pages of home feeds are merged from. The texts stay in the store.
//
//   - The log has each post once, about in order of time, in chunks; posts leave it a whole chunk
//     at a time.
//   - The posts of one author are a chain through the log, newest first, so that the newest posts
//     of some authors are a merge of their chains.
//   - Posts that are older than the floor are not here: the store has them.
//
// Nothing here depends on who follows whom, so nothing has to change when a user follows another.
package recent

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"kith/storage"
	"kith/storage/sleep"
)

// Window is how long posts are recent.
const Window = 7 * 24 * time.Hour

// Posts are recent posts. They are safe for concurrent use.
type Posts struct {
	bytes uint64
	now   func() time.Time
	wake  sleep.Waker // of what follows the store, when it may lack something

	mu sync.RWMutex
	content
	loading bool
	waiting []change // what has changed since loading began

	through, late atomic.Int64 // see Through, Late
	pages, beyond atomic.Int64 // pages found here; pages for which the store had to be asked
}

// content is what a load replaces.
type content struct {
	log     log
	authors authors
	floor   storage.Micros     // all posts that are newer are here
	all     int                // posts here, without deleted ones
	odd     map[position]int64 // numbers that the log has no room for
}

// Beyond counts a page for which the store had to be asked.
func (p *Posts) Beyond() { p.beyond.Add(1) }

// change is a post that was published or deleted.
type change struct {
	storage.PostAt
	gone bool
}

// New makes recent posts without any post: all posts are older than the floor. They take at most so
// many bytes; 0 keeps none.
func New(bytes uint64, now func() time.Time) *Posts { return NewSince(bytes, now, math.MaxInt64) }

// NewSince makes recent posts to which the caller adds all posts that are newer than the floor.
func NewSince(bytes uint64, now func() time.Time, floor storage.Micros) *Posts {
	return &Posts{bytes: bytes, now: now, wake: make(sleep.Waker, 1), content: content{floor: floor, odd: map[position]int64{}}}
}

// Floor is the time from which on back the store has to be asked.
func (p *Posts) Floor() storage.Micros {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.floor
}

// Through is the time up to which all posts are known, for code that copies them elsewhere: each shard has been read since, and the time
// within which a post may come late has passed. 0: nothing is known yet. If a post comes later nevertheless, [Posts.Late] rises.
func (p *Posts) Through() storage.Micros { return storage.Micros(p.through.Load()) }

// Settle sets the time that Through returns.
func (p *Posts) Settle(through storage.Micros) { p.through.Store(int64(through)) }

// Late is how many posts were not newer than Through when they came.
func (p *Posts) Late() int64 { return p.late.Load() }

// Len is how many posts are here.
func (p *Posts) Len() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.all
}

// Bytes is the size in memory.
func (p *Posts) Bytes() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.size()
}

func (p *Posts) size() int { return p.log.bytes() + p.authors.bytes() + oddBytes*len(p.odd) }

// oddBytes is what a number that a chunk cannot hold takes in the map.
const oddBytes = 40

// Add adds a post; false if it was there, or is not newer than the floor. A new post costs O(1) if
// none of its author is newer.
func (p *Posts) Add(post storage.PostAt) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(change{PostAt: post})
	added := p.add(post)
	if post.CreatedAt <= p.Through() && (added || post.CreatedAt <= p.floor) {
		p.late.Add(1)
	}
	if added {
		p.trim()
	}
	return added
}

// Remove removes a post that has been deleted. O(posts of its author that are here).
func (p *Posts) Remove(id storage.PostID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(change{storage.PostAt{PostID: id}, true})
	p.remove(id)
}

// Apply adds a post that has been published, or removes one that has been deleted.
func (p *Posts) Apply(post storage.ChangedPost) {
	switch post.News {
	case storage.PostPublished:
		p.Add(post.PostAt)
	case storage.PostDeleted:
		p.Remove(post.PostID)
	}
}

// mostWaiting bounds what may change during a load. If more changes, the load has to be repeated.
const mostWaiting = 1 << 16

func (p *Posts) note(c change) {
	if p.loading && len(p.waiting) <= mostWaiting {
		p.waiting = append(p.waiting, c)
	}
}

// beginLoad has changes noted until install.
func (p *Posts) beginLoad() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loading, p.waiting = true, nil
}

// install replaces all posts by the given ones, oldest first, and applies what has changed since beginLoad. All posts
// that are newer than the floor are among the given ones. It returns false, and changes nothing, if too much has changed.
func (p *Posts) install(posts []storage.PostAt, floor storage.Micros) bool {
	fresh := NewSince(p.bytes, p.now, floor) // no lock is held meanwhile
	for _, post := range posts {
		fresh.add(post)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := p.waiting
	p.loading, p.waiting = false, nil
	if len(waiting) > mostWaiting {
		return false
	}
	p.content = fresh.content
	for _, c := range waiting {
		if c.gone {
			p.remove(c.PostID)
		} else {
			p.add(c.PostAt)
		}
	}
	p.trim()
	return true
}

func (p *Posts) add(post storage.PostAt) bool {
	if post.CreatedAt <= p.floor || post.CreatedAt > p.horizon() {
		return false
	}
	author, known := p.authors.find(post.Author)
	newer, older := p.log.none(), p.log.none() // the post's neighbours in its author's chain
	if known {
		for older = p.authors.heads[author]; p.log.has(older); older = p.log.next(older) {
			order := p.place(older).Compare(post.Place())
			if order == 0 {
				return false
			}
			if order > 0 {
				break
			}
			newer = older
		}
	} else {
		author = p.authors.add(post.Author)
	}
	at, fits := p.log.append(post, author, older)
	if !fits {
		p.odd[at] = post.Number
	}
	if p.log.has(newer) {
		p.log.link(newer, at)
	} else {
		p.authors.heads[author] = at
	}
	p.all++
	return true
}

// Ahead is how far the clocks of gateways may be ahead of ours: posts of a later time are not in feeds yet.
const Ahead = time.Minute

// horizon is the time of the newest post that may be here. A post of a later time, as imports have, would make all that
// come after it look old; the follower finds it when its time has come.
func (p *Posts) horizon() storage.Micros { return storage.MicrosOf(p.now().Add(Ahead)) }

func (p *Posts) remove(id storage.PostID) {
	author, known := p.authors.find(id.Author)
	if !known {
		return
	}
	newer := p.log.none()
	for at := p.authors.heads[author]; p.log.has(at); newer, at = at, p.log.next(at) {
		if p.number(at) != id.Number {
			continue
		}
		switch next := p.log.next(at); {
		case p.log.has(newer):
			p.log.link(newer, next)
		case p.log.has(next):
			p.authors.heads[author] = next
		default:
			p.authors.remove(author)
		}
		p.log.kill(at)
		p.all--
		return
	}
}

// trim drops the oldest chunks that are out of the window or for which there is no room.
func (p *Posts) trim() {
	old := storage.MicrosOf(p.now().Add(-Window))
	for len(p.log.chunks) > 0 {
		if first := p.log.chunks[0]; first.newest > old && uint64(p.size()) <= p.bytes {
			return
		}
		p.drop()
	}
}

// drop drops the oldest chunk. Some posts that came late and are not newer than the floor may
// stay in other chunks, where they are not read.
func (p *Posts) drop() {
	first, c := p.log.first, p.log.chunks[0]
	for i, author := range c.authors {
		at := first + position(i)
		delete(p.odd, at)
		if author == nobody {
			continue
		}
		p.all--
		if p.authors.heads[author] == at && p.authors.ids[author] != 0 {
			p.authors.remove(author)
		}
	}
	p.floor = max(p.floor, c.newest)
	p.log.dropFirst()
}

func (p *Posts) place(at position) storage.Place {
	return storage.Place{CreatedAt: p.log.time(at), Number: p.number(at)}
}

func (p *Posts) number(at position) int64 {
	if n, odd := p.log.number(at); !odd {
		return n
	}
	return p.odd[at]
}

// post is the post at a position.
func (p *Posts) post(at position) storage.PostAt {
	c, i := p.log.at(at)
	return storage.PostAt{
		PostID:    storage.PostID{Author: p.authors.ids[c.authors[i]], Number: p.number(at)},
		CreatedAt: c.time(i),
	}
}
