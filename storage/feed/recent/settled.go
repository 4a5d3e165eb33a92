package recent

import (
	"slices"

	"kith/storage"
)

// Code that copies posts elsewhere, such as into inboxes, has to know the time up to which it has
// seen all of them.

// Through is the time up to which all posts are known: each shard has been read since, and the time
// within which a post may come late has passed. 0: nothing is known yet. If a post comes later nevertheless, it
// is reported, see [Posts.OnLate].
func (p *Posts) Through() storage.Micros {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.through
}

// Settle sets the time that Through returns.
func (p *Posts) Settle(through storage.Micros) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.through = through
}

// OnLate has a function called for each post that is not newer than Through when it comes. It must
// not wait, and must not call the posts. There is one such function.
func (p *Posts) OnLate(late func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = late
}

// Between lists the posts that are newer than a time and not newer than another, oldest first. It returns false if
// some of them are no longer here. O(posts that are newer than since).
func (p *Posts) Between(since, upTo storage.Micros) (list []storage.PostAt, all bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if since < p.floor {
		return nil, false
	}
	for n := len(p.log.chunks) - 1; n >= 0; n-- {
		c := p.log.chunks[n]
		if c.newest <= since {
			break
		}
		if c.oldest > upTo {
			continue
		}
		for i, author := range c.authors {
			if t := c.time(i); author != nobody && t > since && t <= upTo {
				list = append(list, p.post(p.log.first+position(n)<<chunkBits+position(i)))
			}
		}
	}
	slices.SortFunc(list, func(a, b storage.PostAt) int { return b.Place().Compare(a.Place()) })
	return list, true
}
