package localcache

import (
	"context"
	"encoding/binary"

	"kith/storage"
	"kith/storage/idset"
)

// Suggestions read the followings of hundreds of users at a time, whole and without their times. So
// these are kept once more, in as few bytes as possible: of a million users with 50 followings each
// they take some 130 MB, when lists with their times take ten times as much. They are dropped when
// anything about their owner changes, and read again when they are needed.

const (
	// compactShare: compact lists may take this fraction of the cache, on top of the other entries.
	compactShare = 2
	// compactLongest is how long a list may be to be kept so. Longer ones are lists like others.
	compactLongest = 50_000
	// compactAtOnce bounds the follows that are read together, for whichever requests.
	compactAtOnce = 500_000
)

func recommenderKey(id storage.UserID) key { return key{kind: recommenderKind, id: id} }

// forgetRecommender forgets whose followings an edge changes.
func (c *Cache) forgetRecommender(side storage.Side, e storage.Edge) {
	if side == storage.Forward {
		c.forget(recommenderKey(e.From))
	}
}

// makeRoom takes the memory of compact lists from that of the other entries, in steps.
func (c *Cache) makeRoom() {
	const steps = 256
	before, now := c.compactBytes.Load(), c.compact.bytes.Load()
	if step := c.bytes / steps; now < before+step && before < now+step && now != 0 {
		return
	}
	if c.compactBytes.CompareAndSwap(before, now) {
		c.entries.SetMaximum(uint64(max(1, c.bytes-now)))
	}
}

// recommendersAtHand answers if the cache has all.
func (c *Cache) recommendersAtHand(l *storage.Lookup[storage.UserID, storage.Recommender]) {
	if !l.Open() {
		return
	}
	results := make([]storage.Result[storage.Recommender], len(l.Keys))
	now := c.now().Unix()
	for i, id := range l.Keys {
		e, dir, ok := c.compact.get(id, now)
		if !ok {
			return
		}
		results[i] = e.recommender(dir)
	}
	c.metrics.hit(recommenderKind, len(results))
	l.Results = results
}

// fetchRecommenders reads users as suggestions need them. Those whose lists are too long are not
// Found.
func (c *Cache) fetchRecommenders(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Recommender] {
	dir, now := c.directory.Load(), c.now().Unix()
	known := func(k key) (r storage.Result[storage.Recommender], ok bool) {
		e, of, ok := c.compact.get(k.id, now)
		if ok {
			r = e.recommender(of)
		}
		return r, ok
	}
	read := func(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Recommender] {
		return c.readRecommenders(ctx, dir, ids)
	}
	keep := func(k key, r storage.Result[storage.Recommender], _ []storage.Edge) storage.Result[storage.Recommender] {
		if r.Found && c.directory.Load() == dir {
			c.compact.put(k.id, compactOf(r.Value), dir, c.lives(keepLong).until.Unix())
			c.makeRoom()
		}
		return r
	}
	return fetch(ctx, c, &c.recommenders, source[storage.UserID, storage.Recommender]{recommenderKind, recommenderKey, known, read, keep}, ids)
}

// readRecommenders reads profiles, and then the lists of the first of them.
func (c *Cache) readRecommenders(ctx context.Context, dir *idset.Directory, ids []storage.UserID) []storage.Result[storage.Recommender] {
	results := make([]storage.Result[storage.Recommender], len(ids))
	owners := make([]storage.UserID, 0, len(ids))
	of := make([]int, 0, len(ids))
	rows := int64(0)
	for i, r := range c.source.Profiles(ctx, ids) {
		n := r.Value.Counts.Following
		switch {
		case r.Err != nil:
			results[i].Err = r.Err
		case n <= compactLongest && rows+n <= compactAtOnce:
			rows += n
			owners, of = append(owners, ids[i]), append(of, i)
			results[i].Value = storage.Recommender{Visibility: r.Value.User.FollowingsVisibility, Following: n, Directory: dir}
		}
	}
	if len(owners) == 0 {
		return results
	}
	for k, r := range c.Reader.Neighbours(ctx, storage.Forward, owners) {
		one := &results[of[k]]
		if one.Err = r.Err; r.Err == nil {
			one.Value.Followings, one.Found = string(idset.CompactOf(dir, r.Value)), true
		}
	}
	return results
}

// compactEntry is a recommender in bytes: the visibility, the count and the list.
type compactEntry string

func compactOf(r storage.Recommender) compactEntry {
	bytes := make([]byte, 0, len(r.Followings)+6)
	bytes = append(bytes, byte(r.Visibility))
	bytes = binary.AppendUvarint(bytes, uint64(max(r.Following, 0)))
	return compactEntry(append(bytes, r.Followings...))
}

func (e compactEntry) recommender(dir *idset.Directory) storage.Result[storage.Recommender] {
	following, shift, at := uint64(0), 0, 1
	for ; e[at] >= 0x80; at, shift = at+1, shift+7 {
		following |= uint64(e[at]&0x7f) << shift
	}
	following |= uint64(e[at]) << shift
	return storage.Result[storage.Recommender]{Found: true, Value: storage.Recommender{
		Visibility: storage.Visibility(e[0]), Following: int64(following), Followings: string(e[at+1:]), Directory: dir,
	}}
}
