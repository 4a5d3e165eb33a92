package localcache

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/maypok86/otter/v2"

	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/wire"
)

// entries are what is in memory. Users, posts, blocks and lists of up to shortList are bytes in blocks that the garbage
// collector does not look into. Long lists, which are few and large, are kept as the sets that are used, in a cache of
// their own, which has half of the memory at most. Values that are too long for a block are in it, too. The blocks have
// the memory that this cache and the directory leave.
type entries struct {
	bytes uint64
	flat  *flat
	large *otter.Cache[key, entry]
}

const largeShare = 2

func newKept(bytes uint64, now func() time.Time) *entries {
	return &entries{bytes: bytes, flat: newFlat(bytes), large: otter.Must(&otter.Options[key, entry]{
		MaximumWeight:    max(1, bytes/largeShare),
		Weigher:          func(_ key, e entry) uint32 { return uint32(min(e.bytes()+overhead, 1<<31)) },
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[key, entry]) time.Duration { return e.Value.expiry().Sub(now()) }),
	})}
}

// taken is how many bytes are kept.
func (k *entries) taken() uint64 { return k.flat.bytes() + k.large.WeightedSize() }

// share gives the flat part what the other parts leave.
func (k *entries) share(directory int) {
	others := k.large.WeightedSize() + uint64(directory)
	k.flat.bound(k.bytes - min(others, k.bytes))
}

// isLarge says which entries have no flat form: those that change in place, and long lists.
func isLarge(e entry) bool {
	switch e := e.(type) {
	case *long:
		return true
	case *list:
		return max(e.follows.Len(), e.others.len(), len(e.ended)) > shortList
	}
	return false
}

func (c *Cache) set(k key, e entry) {
	if !isLarge(e) && c.kept.flat.set(k, flatForm(e), c.now().UnixMicro(), e.expiry().UnixMicro()) {
		c.kept.large.Invalidate(k)
		return
	}
	c.kept.flat.delete(k)
	c.kept.large.Set(k, e)
	c.kept.share(c.directory.Load().Bytes())
}

func (c *Cache) drop(k key) {
	c.kept.flat.delete(k)
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

// find returns the entry of a key, unless it is a list that may not be used any more.
func (c *Cache) find(k key) (e entry, there bool) {
	now := c.now().UnixMicro()
	if data, flat := c.kept.flat.get(k, now); flat {
		e, there = c.fromFlat(k, data, 0)
	} else {
		e, there = c.kept.large.GetIfPresent(k)
	}
	if l, isList := e.(*list); there && isList && !c.mayUse(k, l, now) {
		return nil, false
	}
	return e, there
}

// look is find, but does not count as asking, and also returns lists that may not be used.
func (c *Cache) look(k key) (entry, bool) {
	if data, until, there := c.kept.flat.look(k, c.now().UnixMicro()); there {
		return c.fromFlat(k, data, until)
	}
	e, there := c.kept.large.GetEntryQuietly(k)
	return e.Value, there
}

// mayUse reports that a list is right: within its lifetime, and beyond it as long as the counts of its owner say that it has
// not changed. A change that is being applied meanwhile reaches the user first, and then the list, which it drops. In the last
// tenth of its life, a long list of which they do not say so is read again, in the background: otherwise lists that are asked
// for all the time would be read row by row, and built one after another, whenever their ten minutes are over.
func (c *Cache) mayUse(k key, l *list, now int64) bool {
	left := l.until.UnixMicro() - now
	if left > keep.Microseconds()/10 || left > 0 && l.follows.Len() <= shortList || l.mayBeRight(now) && c.version(k.id) == l.version {
		return true
	}
	if left > 0 && now >= c.renewAfter.Load() {
		c.build(context.Background(), l.side, k, new(atomic.Int32))
	}
	return left > 0
}

// version is that of the counts of a user; 0 if they are not kept.
func (c *Cache) version(id storage.UserID) int64 {
	version, _ := c.lookVersion(profileKey(id))
	return version
}

// lookVersion is the version of the counts of a user or a post, if they are kept. Those of a user or a post that does not exist have
// none.
func (c *Cache) lookVersion(k key) (version int64, known bool) {
	data, _, there := c.kept.flat.look(k, c.now().UnixMicro())
	if !there {
		if e, _ := c.kept.large.GetEntryQuietly(k); e.Value != nil {
			data = e.Value.(*said).data
		}
	}
	if end := len(data) - 1; end < 0 || data[end] == 0 { // nothing was found
		return 0, false
	}
	version, _ = binary.Varint(data)
	return version, version != noVersion
}

// noVersion is in the form of what has no counts.
const noVersion = -1

func flatForm(e entry) []byte {
	switch e := e.(type) {
	case *said:
		return e.data
	case *list:
		to := binary.NativeEndian.AppendUint32(make([]byte, 0, 256), uint32(e.others.len())<<1|uint32(e.side))
		to = binary.NativeEndian.AppendUint32(to, uint32(len(e.ended)))
		for _, n := range [...]int64{e.until.UnixMicro(), e.ends.UnixMicro(), e.version, int64(e.floor)} {
			to = binary.NativeEndian.AppendUint64(to, uint64(n))
		}
		for _, part := range e.others {
			to = append(to, bytesOf(part)...)
		}
		to = append(to, bytesOf(e.ended)...)
		return e.follows.AppendFlat(to)
	}
	panic("localcache: an entry without a flat form")
}

// fromFlat makes an entry of its flat form, which lives until a time: 0 for a caller that does not need it. Lists have theirs in
// the form. It returns false if the list is numbered by another directory.
func (c *Cache) fromFlat(k key, data []byte, until int64) (entry, bool) {
	if k.kind != forwardKind && k.kind != inverseKind {
		return &said{lifetime{time.UnixMicro(until)}, data}, true
	}
	rest := data[8:]
	beside, ended := binary.NativeEndian.Uint32(data), binary.NativeEndian.Uint32(data[4:])
	number := func(i int) int64 { return int64(binary.NativeEndian.Uint64(rest[8*i:])) }
	l := &list{
		lifetime: lifetime{time.UnixMicro(number(0))}, side: storage.Side(beside & 1),
		ends: time.UnixMicro(number(1)), version: number(2), floor: storage.Micros(number(3)),
	}
	rest = rest[4*8:]
	edges, rest := taken[storage.Edge](rest, int(beside>>1))
	if len(edges) > 0 {
		l.others = others{edges}
	}
	l.ended, rest = taken[endedEdge](rest, int(ended))
	follows, ok := idset.FlatList(c.directory.Load(), rest)
	if !ok {
		return nil, false
	}
	l.follows = follows
	return l, true
}

// form writes values as bytes, and reads them; it gets their key. Values that it reads share no memory with
// the bytes.
type form[V any] struct {
	add   func(to []byte, v V) []byte
	parse func(k key, data []byte, v *V)
}

// parsed reads values that are whole without their key.
func parsed[V any](parse func(data []byte) V) func(key, []byte, *V) {
	return func(_ key, data []byte, v *V) { *v = parse(data) }
}

// said is an answer, in its form, and behind that a byte that says whether something was found.
type said struct {
	lifetime
	data []byte
}

func (s *said) bytes() int { return len(s.data) }

// said is what is kept of an answer.
func (f form[V]) said(r storage.Result[V], life lifetime) *said {
	data := make([]byte, 0, 128)
	if !r.Found {
		return &said{life, append(data, 0)}
	}
	return &said{life, append(f.add(data, r.Value), 1)}
}

func found[V any](v V) storage.Result[V] { return storage.Result[V]{Value: v, Found: true} }

// result reads the answer of which this is kept.
func (f form[V]) result(k key, s *said, r *storage.Result[V]) {
	end := len(s.data) - 1
	if r.Found = s.data[end] == 1; r.Found {
		f.parse(k, s.data[:end], &r.Value)
	}
}

// profiles is the form of users with their counts. The version of the counts comes first, as in the form of posts: other answers are
// kept under it.
var profiles = form[storage.Profile]{func(to []byte, p storage.Profile) []byte {
	if !p.Counted {
		p.Counts.Version = noVersion
	}
	return wire.AppendWhole(to, p)
}, func(k key, data []byte, p *storage.Profile) { *p = parseProfile(k.id, data) }}

func parseProfile(id storage.UserID, data []byte) storage.Profile {
	p, _ := wire.ParseWhole(id, string(data)) // a copy: a name that is held must not hold the block
	return p
}

// profile is what is kept of a user; the zero value if there is none.
func (s *said) profile(id storage.UserID) (p storage.Profile) {
	if end := len(s.data) - 1; s.data[end] == 1 {
		p = parseProfile(id, s.data[:end])
	}
	return p
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
	return valuesOf[T](data, n), data[n*sizeOf[T]():]
}

func sizeOf[T any]() int {
	var one T
	return int(unsafe.Sizeof(one))
}
