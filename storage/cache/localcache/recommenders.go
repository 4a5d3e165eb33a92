package localcache

import (
	"context"
	"encoding/binary"
	"unsafe"

	"kith/storage"
	"kith/storage/cache/idset"
)

// Suggestions read the followings of hundreds of users at a time, whole and without their times. So
// these lists are kept once more, in as few bytes as possible: for a million users with 50 followings
// each they take some 150 MB; lists with their times take several times as much. They are dropped when
// anything about their owner changes, and read again when they are needed.

const (
	// recommendsAtOnce bounds the follows that are read together, for whichever requests.
	recommendsAtOnce = 500_000
	// bytesAFollow is more than a follow takes in a compact list, on average: users whose lists would not fit are not
	// read for it.
	bytesAFollow = 5
)

// fetchRecommenders reads users as suggestions need them. Users whose lists are too long are not
// Found.
func (c *Cache) fetchRecommenders(ctx context.Context, ids []storage.UserID) []storage.Result[idset.Recommender] {
	return c.recommendersBy(c.readRecommenders).fetch(ctx, ids)
}

// recommendersBy is where recommenders are read from.
func (c *Cache) recommendersBy(read func(context.Context, *idset.Directory, []storage.UserID) []storage.Result[idset.Recommender]) *source[storage.UserID, idset.Recommender] {
	dir, now := c.directory.Load(), c.now().UnixMicro()
	keep := func(k key, r storage.Result[idset.Recommender], _ []storage.Edge, may bool) storage.Result[idset.Recommender] {
		if may && r.Found && c.directory.Load() == dir {
			c.kept.flat.set(k, flatRecommender(dir, r.Value), c.now().UnixMicro(), c.lives(keep).until.UnixMicro())
		}
		return r
	}
	return &source[storage.UserID, idset.Recommender]{
		fills: &c.recommenders, c: c, kind: recommenderKind, key: recommenderKey, keep: keep,
		known: func(k key, r *storage.Result[idset.Recommender]) bool { return c.recommender(k.id, dir, now, r) },
		read: func(ctx context.Context, ids []storage.UserID) []storage.Result[idset.Recommender] {
			return read(ctx, dir, ids)
		},
	}
}

// recommendersInMemory makes them of users and lists that are kept.
func (c *Cache) recommendersInMemory(_ context.Context, dir *idset.Directory, ids []storage.UserID) []storage.Result[idset.Recommender] {
	return storage.Each(ids, func(id storage.UserID) (r storage.Result[idset.Recommender]) {
		user, _ := c.look(profileKey(id))
		followings, _ := c.find(key{kind: forwardKind, id: id})
		s, isKept := user.(*said)
		l, isWhole := followings.(*list)
		if r.Found = isKept && isWhole && l.follows.Len() <= c.kept.flat.longest()/bytesAFollow; r.Found {
			p := s.profile(id)
			r.Value = idset.Recommender{
				Visibility: p.User.ListVisibility(storage.Forward), Following: p.Counts.Following, Directory: dir,
				Followings: idset.CompactOf(dir, l.follows.Peers.IDs()),
			}
		}
		return r
	})
}

// readRecommenders reads profiles, and then the lists of the first of them.
func (c *Cache) readRecommenders(ctx context.Context, dir *idset.Directory, ids []storage.UserID) []storage.Result[idset.Recommender] {
	results := make([]storage.Result[idset.Recommender], len(ids))
	owners := make([]storage.UserID, 0, len(ids))
	of := make([]int, 0, len(ids))
	rows, longest := int64(0), int64(c.kept.flat.longest()/bytesAFollow)
	for i, r := range storage.ProfileLookups.Read(ctx, c.source, ids...) {
		n := r.Value.Counts.Following
		switch {
		case r.Err != nil:
			results[i].Err = r.Err
		case n <= longest && rows+n <= recommendsAtOnce:
			rows += n
			owners, of = append(owners, ids[i]), append(of, i)
			results[i].Value = idset.Recommender{Visibility: r.Value.User.ListVisibility(storage.Forward), Following: n, Directory: dir}
		}
	}
	if len(owners) == 0 {
		return results
	}
	for k, r := range storage.NeighbourLookups[storage.Forward].Read(ctx, c.store, owners...) {
		one := &results[of[k]]
		if one.Err = r.Err; r.Err == nil {
			one.Value.Followings, one.Found = idset.CompactOf(dir, r.Value), true
		}
	}
	return results
}

// recommender is what is kept of a user, if a directory numbers it. The list's bytes are used in place.
func (c *Cache) recommender(id storage.UserID, dir *idset.Directory, now int64, r *storage.Result[idset.Recommender]) bool {
	data, ok := c.kept.flat.get(recommenderKey(id), now)
	if !ok || binary.NativeEndian.Uint64(data) != dir.Serial() {
		return false
	}
	following, n := binary.Uvarint(data[9:])
	followings := data[9+n:]
	*r = found(idset.Recommender{
		Visibility: storage.Visibility(data[8]), Following: int64(following), Directory: dir,
		Followings: idset.Compact(unsafe.String(unsafe.SliceData(followings), len(followings))), //nolint:gosec // bytes of the cache are never changed
	})
	return true
}

// flatRecommender is the directory, the visibility, the count and the list.
func flatRecommender(dir *idset.Directory, r idset.Recommender) []byte {
	data := make([]byte, 0, len(r.Followings)+20)
	data = binary.NativeEndian.AppendUint64(data, dir.Serial())
	data = append(data, byte(r.Visibility))
	data = binary.AppendUvarint(data, uint64(max(r.Following, 0)))
	return append(data, r.Followings...)
}
