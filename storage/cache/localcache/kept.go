package localcache

import (
	"encoding/binary"
	"time"
	"unsafe"

	"github.com/maypok86/otter/v2"

	"kith/storage"
	"kith/storage/cache/flat"
	"kith/storage/cache/idset"
	"kith/storage/cache/packing"
)

// kept is what is in memory. Users, posts, blocks and lists of up to shortList are bytes in blocks that the garbage
// collector does not look into. Long lists, which are few and large, are kept as the sets that are used, in a cache of
// their own, which has half of the memory at most. Values that are too long for a block are in it, too. The blocks have
// the memory that this cache and the directory leave.
type kept struct {
	bytes uint64
	now   func() time.Time
	flat  *flat.Cache[key]
	large *otter.Cache[key, entry]
}

const largeShare = 2

func newKept(bytes uint64, now func() time.Time) *kept {
	return &kept{bytes: bytes, now: now, flat: flat.New[key](bytes), large: otter.Must(&otter.Options[key, entry]{
		MaximumWeight:    max(1, bytes/largeShare),
		Weigher:          func(_ key, e entry) uint32 { return uint32(min(e.bytes()+overhead, 1<<31)) },
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[key, entry]) time.Duration { return leaves(e.Value).Sub(now()) }),
	})}
}

// leaves is when an entry leaves the cache of large ones: a list stays beyond its lifetime while it may be renewed.
func leaves(e entry) time.Time {
	if l, isList := e.(*list); isList && l.version != 0 {
		return l.ends
	}
	return e.expiry()
}

// taken is how many bytes are kept.
func (k *kept) taken() uint64 { return k.flat.Bytes() + k.large.WeightedSize() }

// share gives the flat part what the other parts leave.
func (k *kept) share(directory int) {
	others := k.large.WeightedSize() + uint64(directory)
	k.flat.Bound(k.bytes - min(others, k.bytes))
}

// isLarge says which entries have no flat form: those that change in place, and long lists.
func isLarge(e entry) bool {
	switch e := e.(type) {
	case *long:
		return true
	case *list:
		return e.follows.Len() > shortList
	}
	return false
}

func (c *Cache) set(k key, e entry) {
	if !isLarge(e) && c.setFlat(k, e) {
		c.kept.large.Invalidate(k)
		return
	}
	c.kept.flat.Delete(k)
	c.kept.large.Set(k, e)
	c.kept.share(c.directory.Load().Bytes())
}

func (c *Cache) setFlat(k key, e entry) bool {
	now, until := c.now().UnixMicro(), e.expiry().UnixMicro()
	if l, isList := e.(*list); isList && l.version != 0 {
		return c.kept.flat.SetToStay(k, flatForm(e), now, until)
	}
	return c.kept.flat.Set(k, flatForm(e), now, until)
}

func (c *Cache) drop(k key) {
	c.kept.flat.Delete(k)
	c.kept.large.Invalidate(k)
}

// get returns the entry of a key if it is of type E.
func get[E entry](c *Cache, k key) (e E, ok bool) {
	found, there := c.find(k)
	if there {
		e, ok = found.(E)
	}
	return e, ok
}

func (c *Cache) find(k key) (entry, bool) {
	now := c.now().UnixMicro()
	if data, there := c.kept.flat.Get(k, now); there {
		return c.fromFlat(k, data, 0)
	}
	if data, there := c.renew(k, now); there {
		return c.fromFlat(k, data, 0)
	}
	e, there := c.kept.large.GetIfPresent(k)
	if l, isList := e.(*list); isList {
		return c.renewLarge(k, l, now)
	}
	return e, there
}

// look is find, but does not count as asking, and also returns a large list that has ended: a change takes it out of the cache.
func (c *Cache) look(k key) (entry, bool) {
	if data, until, there := c.kept.flat.Look(k, c.now().UnixMicro()); there {
		return c.fromFlat(k, data, until)
	}
	e, there := c.kept.large.GetEntryQuietly(k)
	return e.Value, there
}

// isDoubtful reports that there is a list that has ended and that the counts of its owner may renew.
func (c *Cache) isDoubtful(k key) bool {
	now := c.now().UnixMicro()
	if _, _, ok := c.ended(k, now); ok {
		return true
	}
	e, _ := c.kept.large.GetEntryQuietly(k)
	l, isList := e.Value.(*list)
	return isList && l.mayBeRenewed(now)
}

// ended returns a list that has ended and that the counts of its owner may renew.
func (c *Cache) ended(k key, now int64) (data []byte, version int64, ok bool) {
	if k.kind != forwardKind && k.kind != inverseKind {
		return nil, 0, false
	}
	if data, ok = c.kept.flat.Ended(k, now); !ok {
		return nil, 0, false
	}
	ends, version := int64(binary.NativeEndian.Uint64(data[8:])), int64(binary.NativeEndian.Uint64(data[16:]))
	return data, version, ends > now
}

// renew extends the life of a list that has ended to that of the user with its counts, if the user is kept and its version
// says that nothing has changed since the list was read. A change that is being applied meanwhile reaches the user first, and
// then the list, which by then is either alive or no longer the same.
func (c *Cache) renew(k key, now int64) (data []byte, ok bool) {
	data, version, ok := c.ended(k, now)
	if !ok {
		return nil, false
	}
	until, ok := c.hasNotChanged(k.id, version)
	return data, ok && c.kept.flat.Extend(k, data, until.UnixMicro())
}

// hasNotChanged reports that the kept counts of a user have a version, and until when they are kept.
func (c *Cache) hasNotChanged(id storage.UserID, version int64) (until time.Time, ok bool) {
	e, _ := c.look(profileKey(id))
	p, isProfile := e.(*profile)
	if !isProfile || !p.Counted || p.Counts.Version != version {
		return until, false
	}
	return p.expiry(), true
}

// The flat forms begin with a flag or lengths, in 8 bytes.
const flatHead = 8

func flatForm(e entry) []byte {
	to := make([]byte, 0, 256)
	switch e := e.(type) {
	case *profile:
		to = append(to, flag(e.found), 0, 0, 0, 0, 0, 0, 0)
		return packing.AppendWhole(to, e.Profile)
	case *post:
		to = append(to, flag(e.found), 0, 0, 0, 0, 0, 0, 0)
		to = binary.AppendVarint(to, e.Counts.Version)
		return packing.AppendPost(to, e.Post)
	case *blockList:
		to = binary.NativeEndian.AppendUint64(to, uint64(len(e.users)))
		return append(to, bytesOf(e.users)...)
	case *list:
		to = binary.NativeEndian.AppendUint32(to, uint32(len(e.blocks))<<1|uint32(e.side))
		to = binary.NativeEndian.AppendUint32(to, uint32(len(e.ended)))
		to = binary.NativeEndian.AppendUint64(to, uint64(e.ends.UnixMicro()))
		to = binary.NativeEndian.AppendUint64(to, uint64(e.version))
		to = binary.NativeEndian.AppendUint64(to, uint64(e.floor))
		to = append(append(to, bytesOf(e.blocks)...), bytesOf(e.ended)...)
		return e.follows.AppendFlat(to)
	}
	panic("localcache: an entry without a flat form")
}

// fromFlat makes an entry of its flat form, which lives until a time: 0 for a caller that does not need it. It returns false if
// the list is numbered by another directory.
func (c *Cache) fromFlat(k key, data []byte, until int64) (entry, bool) {
	life := lifetime{time.UnixMicro(until)}
	rest := data[flatHead:]
	switch k.kind {
	case profileKind:
		p := &profile{lifetime: life, found: data[0] != 0}
		var err error
		p.Profile, err = packing.ParseWhole(k.id, string(rest)) // a copy: a name that is held must not hold the block
		return p, err == nil
	case postKind:
		version, n := binary.Varint(rest)
		p := &post{lifetime: life, found: data[0] != 0}
		var err error
		p.Post, err = packing.ParsePost(storage.PostID{Author: k.id, Number: k.number}, string(rest[n:]), version)
		return p, err == nil
	case blocksKind:
		b := &blockList{lifetime: life}
		if n := binary.NativeEndian.Uint64(data); n > 0 {
			b.users = append(b.users, valuesOf[storage.UserID](rest, int(n))...)
		}
		return b, true
	}
	blocks, ended := binary.NativeEndian.Uint32(data), binary.NativeEndian.Uint32(data[4:])
	l := &list{
		lifetime: life, side: storage.Side(blocks & 1), ends: time.UnixMicro(int64(binary.NativeEndian.Uint64(rest))),
		version: int64(binary.NativeEndian.Uint64(rest[8:])), floor: storage.Micros(binary.NativeEndian.Uint64(rest[16:])),
	}
	rest = rest[24:]
	l.blocks, rest = taken[storage.Edge](rest, int(blocks>>1))
	l.ended, rest = taken[endedEdge](rest, int(ended))
	var ok bool
	l.follows, ok = idset.FlatList(c.directory.Load(), rest)
	return l, ok
}

func flag(is bool) byte {
	if is {
		return 1
	}
	return 0
}

// bytesOf are the bytes of values without pointers.
func bytesOf[T any](values []T) []byte {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), len(values)*int(unsafe.Sizeof(values[0]))) //nolint:gosec // all of the slice
}

// valuesOf are n values that the bytes begin with, which must not be changed.
func valuesOf[T any](data []byte, n int) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&data[0])), n) //nolint:gosec // flatForm has written so many
}

func taken[T any](data []byte, n int) (values []T, rest []byte) {
	var one T
	return valuesOf[T](data, n), data[n*int(unsafe.Sizeof(one)):]
}
