// Package flat keeps values as bytes in large blocks, so that the garbage collector has nothing to follow in them: a cache of
// some gigabytes costs a collection as much as an empty one, and a value takes its bytes and 58 more.
//
// Blocks are filled one after another and never changed behind what was written. A value that is replaced or deleted
// leaves its room in its block until the block is given up as a whole, the oldest block first. Values that were asked for since
// they were written are then written again, and the rest is dropped (S3-FIFO: Yang et al., SOSP 2023). A block that is given up
// is garbage once no reader holds a value of it.
package flat

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Cache is values by key. It is safe for concurrent use.
type Cache[K comparable] struct {
	shards []shard[K]
	seed   maphash.Seed
	block  int // bytes of a block
	most   atomic.Int64
}

const (
	mostShards = 64
	shardBytes = 4 << 20 // a shard has at least this much, if the cache does
	leastBlock = 4 << 10
	mostBlock  = 256 << 10
	blocks     = 32 // of a shard, at least

	// indexBytes is what a value takes in the index.
	indexBytes = 26
)

// New makes a cache that takes so many bytes.
func New[K comparable](bytes uint64) *Cache[K] {
	n := 1
	for n < mostShards && uint64(n)*shardBytes < bytes {
		n *= 2
	}
	c := &Cache[K]{
		shards: make([]shard[K], n), seed: maphash.MakeSeed(),
		block: int(min(max(bytes/uint64(n)/blocks, leastBlock), mostBlock)) &^ 7,
	}
	for i := range c.shards {
		c.shards[i].clear()
	}
	c.Bound(bytes)
	return c
}

// Bound sets how many bytes the cache may take. If it has more, it gives them up when values come.
func (c *Cache[K]) Bound(bytes uint64) { c.most.Store(int64(min(bytes, 1<<62)) / int64(len(c.shards))) }

// Longest is how many bytes a value may have.
func (c *Cache[K]) Longest() int { return c.block/4 - headBytes[K]() }

// shard is some of the values.
type shard[K comparable] struct {
	sync.Mutex
	at     map[uint64]place // by hash; of two keys with the same hash, one is kept
	blocks []*block         // by number; nil: free
	free   []uint32
	queues [2][]uint32 // numbers of blocks, oldest first: of new values, and of those that were asked for
	bytes  int64       // of all blocks
	ghosts [1024]uint32
}

// The queues.
const (
	young = iota
	old
)

// youngShare: the queue of new values has this fraction of the bytes, if there are enough other
// values.
const youngShare = 10

type place struct{ block, offset uint32 }

type block struct {
	data  []byte
	queue uint8
}

// record is what is in front of a value.
type record[K comparable] struct {
	key    K
	until  int64 // when the value ends
	length uint32
	asked  uint8 // how often it was asked for since it was written, up to mostAsked
}

const mostAsked = 3

func headBytes[K comparable]() int { return (int(unsafe.Sizeof(record[K]{})) + 7) &^ 7 }

// recordAt is the record at an offset, which is a multiple of 8. K has no pointers.
func recordAt[K comparable](b *block, offset uint32) *record[K] {
	return (*record[K])(unsafe.Pointer(&b.data[offset])) //nolint:gosec // offsets are of records that were written
}

func value[K comparable](b *block, offset uint32) []byte {
	r := recordAt[K](b, offset)
	begin := int(offset) + headBytes[K]()
	return b.data[begin : begin+int(r.length) : begin+int(r.length)]
}

func (c *Cache[K]) shard(k K) (*shard[K], uint64) {
	h := maphash.Comparable(c.seed, k)
	return &c.shards[h>>32%uint64(len(c.shards))], h
}

// Get returns the value of a key, at a time. The value must not be changed; holding it holds its block.
func (c *Cache[K]) Get(k K, now int64) ([]byte, bool) {
	s, h := c.shard(k)
	s.Lock()
	defer s.Unlock()
	v, r := s.find(k, h)
	switch {
	case r == nil:
		return nil, false
	case r.until <= now:
		delete(s.at, h)
		return nil, false
	}
	r.asked = min(r.asked+1, mostAsked)
	return v, true
}

// Look is Get, but does not count as asking. It also says when the value ends.
func (c *Cache[K]) Look(k K, now int64) (v []byte, until int64, ok bool) {
	s, h := c.shard(k)
	s.Lock()
	defer s.Unlock()
	v, r := s.find(k, h)
	if r == nil || r.until <= now {
		return nil, 0, false
	}
	return v, r.until, true
}

// find returns the value of a key and its record; nil if there is none.
func (s *shard[K]) find(k K, h uint64) ([]byte, *record[K]) {
	at, there := s.at[h]
	if !there {
		return nil, nil
	}
	r := recordAt[K](s.blocks[at.block], at.offset)
	if r.key != k {
		return nil, nil
	}
	return value[K](s.blocks[at.block], at.offset), r
}

// Set keeps a value until a time, at most. It returns false, and keeps nothing under the key, if the value is longer than
// Longest.
func (c *Cache[K]) Set(k K, v []byte, now, until int64) bool {
	made := record[K]{key: k, until: until, length: uint32(len(v))}
	s, h := c.shard(k)
	s.Lock()
	defer s.Unlock()
	queue := young
	if at, there := s.at[h]; there {
		b := s.blocks[at.block]
		if r := recordAt[K](b, at.offset); r.key == k {
			queue, made.asked = int(b.queue), r.asked
		}
		delete(s.at, h)
	} else if s.ghosts[h%uint64(len(s.ghosts))] == uint32(h>>32) {
		queue = old
	}
	if len(v) > c.Longest() {
		return false
	}
	if c.most.Load() < int64(c.block) {
		return true // nothing fits
	}
	c.write(s, h, made, v, queue, now)
	return true
}

// write appends a value to a queue.
func (c *Cache[K]) write(s *shard[K], h uint64, r record[K], v []byte, queue int, now int64) {
	size := headBytes[K]() + (len(v)+7)&^7
	b := s.last(queue)
	if b == nil || cap(b.data)-len(b.data) < size || s.taken()+indexBytes > c.most.Load() {
		c.makeRoom(s, now)
		if b = s.last(queue); b == nil || cap(b.data)-len(b.data) < size { // the values kept may have begun a block
			b = c.begin(s, queue)
		}
	}
	s.append(b, h, r, v)
}

// append writes a value behind the others of the last block of a queue, which has room for it.
func (s *shard[K]) append(b *block, h uint64, r record[K], v []byte) {
	offset, blocks := uint32(len(b.data)), s.queues[b.queue]
	b.data = b.data[:len(b.data)+headBytes[K]()+(len(v)+7)&^7]
	*recordAt[K](b, offset) = r
	copy(b.data[int(offset)+headBytes[K]():], v)
	s.at[h] = place{blocks[len(blocks)-1], offset}
}

func (s *shard[K]) last(queue int) *block {
	if n := len(s.queues[queue]); n > 0 {
		return s.blocks[s.queues[queue][n-1]]
	}
	return nil
}

func (c *Cache[K]) begin(s *shard[K], queue int) *block {
	b := &block{data: make([]byte, 0, c.block), queue: uint8(queue)}
	s.bytes += int64(c.block)
	var number uint32
	if n := len(s.free); n > 0 {
		number, s.free = s.free[n-1], s.free[:n-1]
		s.blocks[number] = b
	} else {
		number, s.blocks = uint32(len(s.blocks)), append(s.blocks, b)
	}
	s.queues[queue] = append(s.queues[queue], number)
	return b
}

// makeRoom gives blocks up until there is room for one more. Those of their values that were asked for are written again,
// fewer and fewer of them if that does not make room.
func (c *Cache[K]) makeRoom(s *shard[K], now int64) {
	for least := uint8(1); s.taken()+int64(c.block) > c.most.Load(); {
		queue := old
		if n := int64(len(s.queues[young])); n > 0 && (n*int64(c.block) > c.most.Load()/youngShare || len(s.queues[old]) == 0) {
			queue = young
		}
		if len(s.queues[queue]) == 0 {
			return
		}
		number := s.queues[queue][0]
		b := s.blocks[number]
		s.queues[queue] = s.queues[queue][1:]
		s.bytes -= int64(c.block)
		before := s.bytes
		c.save(s, b, number, least, now)
		s.blocks[number] = nil
		s.free = append(s.free, number) // not before: places of values that are written again differ from those in b
		if s.bytes > before && least <= mostAsked {
			least++
		}
	}
}

// taken is what the shard takes, its index included.
func (s *shard[K]) taken() int64 { return s.bytes + indexBytes*int64(len(s.at)) }

// save writes those values of a block again that were asked for at least so often, and drops the
// rest.
func (c *Cache[K]) save(s *shard[K], b *block, number uint32, least uint8, now int64) {
	for offset := uint32(0); int(offset) < len(b.data); {
		r := *recordAt[K](b, offset)
		h := maphash.Comparable(c.seed, r.key)
		if at, there := s.at[h]; there && at == (place{number, offset}) {
			delete(s.at, h)
			switch {
			case r.until <= now:
			case r.asked >= least:
				v := value[K](b, offset)
				if b.queue == old {
					r.asked--
				} else {
					r.asked = 0
				}
				c.rewrite(s, h, r, v)
			default:
				s.ghosts[h%uint64(len(s.ghosts))] = uint32(h >> 32)
			}
		}
		offset += uint32(headBytes[K]() + (int(r.length)+7)&^7)
	}
}

// rewrite appends a value to those that were asked for. There is room for a block: one was just given up.
func (c *Cache[K]) rewrite(s *shard[K], h uint64, r record[K], v []byte) {
	size := headBytes[K]() + (len(v)+7)&^7
	b := s.last(old)
	if b == nil || cap(b.data)-len(b.data) < size {
		b = c.begin(s, old)
	}
	s.append(b, h, r, v)
}

// Delete deletes the value of a key.
func (c *Cache[K]) Delete(k K) {
	s, h := c.shard(k)
	s.Lock()
	defer s.Unlock()
	if at, there := s.at[h]; there && recordAt[K](s.blocks[at.block], at.offset).key == k {
		delete(s.at, h)
	}
}

// Clear deletes all values, and gives all blocks up.
func (c *Cache[K]) Clear() {
	for i := range c.shards {
		c.shards[i].Lock()
		c.shards[i].clear()
		c.shards[i].Unlock()
	}
}

func (s *shard[K]) clear() {
	s.at, s.blocks, s.free, s.queues, s.bytes = map[uint64]place{}, nil, nil, [2][]uint32{}, 0
}

// Len is how many values there are, including values that have ended and have not been asked for
// since.
func (c *Cache[K]) Len() int { return int(c.sum(func(s *shard[K]) int64 { return int64(len(s.at)) })) }

// Bytes is what values take, including values that were replaced or deleted, until their blocks are given
// up.
func (c *Cache[K]) Bytes() uint64 {
	return uint64(c.sum(func(s *shard[K]) int64 {
		n := indexBytes * int64(len(s.at))
		for _, b := range s.blocks {
			if b != nil {
				n += int64(len(b.data))
			}
		}
		return n
	}))
}

func (c *Cache[K]) sum(of func(*shard[K]) int64) (n int64) {
	for i := range c.shards {
		c.shards[i].Lock()
		n += of(&c.shards[i])
		c.shards[i].Unlock()
	}
	return n
}
