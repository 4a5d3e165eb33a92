package localcache

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"unsafe"
)

// flat keeps values as bytes in large blocks, so that the garbage collector has nothing to follow in them: a cache of
// some gigabytes costs a collection as much as an empty one, and a value takes its bytes and 58 more. It is safe for concurrent use.
//
// Blocks are filled one after another and never changed behind what was written. A value that is replaced or deleted
// leaves its room in its block until the block is given up as a whole, the oldest block first. Values that were asked for since
// they were written are then written again, and the rest is dropped (S3-FIFO: Yang et al., SOSP 2023). A block that is given up
// is garbage once no reader holds a value of it.
type flat struct {
	shards []flatShard
	seed   maphash.Seed
	block  int // bytes of a block
	most   atomic.Int64
}

const (
	mostShards = 64
	shardBytes = 4 << 20 // a shard has at least this much, if the cache does
	leastBlock = 4 << 10
	mostBlock  = 256 << 10
	leastCount = 32 // blocks of a shard

	// indexBytes is what a value takes in the index.
	indexBytes = 26
)

// newFlat makes a cache that takes so many bytes.
func newFlat(bytes uint64) *flat {
	n := 1
	for n < mostShards && uint64(n)*shardBytes < bytes {
		n *= 2
	}
	c := &flat{
		shards: make([]flatShard, n), seed: maphash.MakeSeed(),
		block: int(min(max(bytes/uint64(n)/leastCount, leastBlock), mostBlock)) &^ 7,
	}
	for i := range c.shards {
		c.shards[i].clear()
	}
	c.bound(bytes)
	return c
}

// bound sets how many bytes the cache may take. If it has more, it gives them up when values come.
func (c *flat) bound(bytes uint64) { c.most.Store(int64(min(bytes, 1<<62)) / int64(len(c.shards))) }

// longest is how many bytes a value may have.
func (c *flat) longest() int { return c.block/4 - headBytes }

// flatShard is some of the values.
type flatShard struct {
	sync.Mutex
	at     map[uint64]place // by hash; of two keys with the same hash, one is kept
	blocks []*flatBlock     // by number; nil: free
	free   []uint32
	queues [2][]uint32 // numbers of blocks, oldest first: of new values, and of those that were asked for
	bytes  int64       // of all blocks
	ghosts [1024]uint32
}

// The queues.
const (
	youngQueue = iota
	askedQueue
)

// youngShare: the queue of new values has this fraction of the bytes, if there are enough other
// values.
const youngShare = 10

type place struct{ block, offset uint32 }

type flatBlock struct {
	data  []byte
	queue uint8
}

// record is what is in front of a value.
type record struct {
	key    key
	until  int64 // when the value ends
	length uint32
	asked  uint8 // how often it was asked for since it was written, up to mostAsked
}

const mostAsked = 3

// headBytes is what a record takes.
const headBytes = (int(unsafe.Sizeof(record{})) + 7) &^ 7

// room is what a record takes with a value of so many bytes.
func room(length int) int { return headBytes + (length+7)&^7 }

// recordAt is the record at an offset, which is a multiple of 8. A key has no pointers.
func recordAt(b *flatBlock, offset uint32) *record {
	return (*record)(unsafe.Pointer(&b.data[offset])) //nolint:gosec // offsets are of records that were written
}

func value(b *flatBlock, offset uint32) []byte {
	r := recordAt(b, offset)
	begin := int(offset) + headBytes
	return b.data[begin : begin+int(r.length) : begin+int(r.length)]
}

func (c *flat) shard(k key) (*flatShard, uint64) {
	h := maphash.Comparable(c.seed, k)
	return &c.shards[h>>32%uint64(len(c.shards))], h
}

// get returns the value of a key, at a time. The value must not be changed; holding it holds its block.
func (c *flat) get(k key, now int64) ([]byte, bool) {
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

// look is get, but does not count as asking. It also says when the value ends.
func (c *flat) look(k key, now int64) (v []byte, until int64, ok bool) {
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
func (s *flatShard) find(k key, h uint64) ([]byte, *record) {
	at, there := s.at[h]
	if !there {
		return nil, nil
	}
	r := recordAt(s.blocks[at.block], at.offset)
	if r.key != k {
		return nil, nil
	}
	return value(s.blocks[at.block], at.offset), r
}

// set keeps a value until a time, at most. It returns false, and keeps nothing under the key, if the value is longer than
// longest.
func (c *flat) set(k key, v []byte, now, until int64) bool {
	made := record{key: k, until: until, length: uint32(len(v))}
	s, h := c.shard(k)
	s.Lock()
	defer s.Unlock()
	queue := youngQueue
	if at, there := s.at[h]; there {
		b := s.blocks[at.block]
		if r := recordAt(b, at.offset); r.key == k {
			queue, made.asked = int(b.queue), r.asked
		}
		delete(s.at, h)
	} else if s.ghosts[h%uint64(len(s.ghosts))] == uint32(h>>32) {
		queue = askedQueue
	}
	if len(v) > c.longest() {
		return false
	}
	if c.most.Load() < int64(c.block) {
		return true // nothing fits
	}
	if s.last(queue, len(v)) == nil || s.taken()+indexBytes > c.most.Load() {
		c.makeRoom(s, now)
	}
	c.append(s, h, made, v, queue)
	return true
}

// append writes a value behind the others of the last block of a queue, or into a new one if that has no room for it. The
// caller has made room for a block.
func (c *flat) append(s *flatShard, h uint64, r record, v []byte, queue int) {
	b := s.last(queue, len(v))
	if b == nil {
		b = c.begin(s, queue)
	}
	offset, blocks := uint32(len(b.data)), s.queues[queue]
	b.data = b.data[:len(b.data)+room(len(v))]
	*recordAt(b, offset) = r
	copy(b.data[int(offset)+headBytes:], v)
	s.at[h] = place{blocks[len(blocks)-1], offset}
}

// last is the last block of a queue, if it has room for a value of so many bytes.
func (s *flatShard) last(queue, length int) *flatBlock {
	if n := len(s.queues[queue]); n > 0 {
		if b := s.blocks[s.queues[queue][n-1]]; cap(b.data)-len(b.data) >= room(length) {
			return b
		}
	}
	return nil
}

func (c *flat) begin(s *flatShard, queue int) *flatBlock {
	b := &flatBlock{data: make([]byte, 0, c.block), queue: uint8(queue)}
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
func (c *flat) makeRoom(s *flatShard, now int64) {
	for least := uint8(1); s.taken()+int64(c.block) > c.most.Load(); {
		queue := askedQueue
		if n := int64(len(s.queues[youngQueue])); n > 0 && (n*int64(c.block) > c.most.Load()/youngShare || len(s.queues[askedQueue]) == 0) {
			queue = youngQueue
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
func (s *flatShard) taken() int64 { return s.bytes + indexBytes*int64(len(s.at)) }

// save writes those values of a block again that were asked for at least so often, and drops the
// rest.
func (c *flat) save(s *flatShard, b *flatBlock, number uint32, least uint8, now int64) {
	for offset := uint32(0); int(offset) < len(b.data); {
		r := *recordAt(b, offset)
		h := maphash.Comparable(c.seed, r.key)
		if at, there := s.at[h]; there && at == (place{number, offset}) {
			delete(s.at, h)
			switch {
			case r.until <= now:
			case r.asked >= least:
				v := value(b, offset)
				if b.queue == askedQueue {
					r.asked--
				} else {
					r.asked = 0
				}
				c.append(s, h, r, v, askedQueue) // there is room for a block: one was just given up
			default:
				s.ghosts[h%uint64(len(s.ghosts))] = uint32(h >> 32)
			}
		}
		offset += uint32(room(int(r.length)))
	}
}

// delete deletes the value of a key.
func (c *flat) delete(k key) {
	s, h := c.shard(k)
	s.Lock()
	defer s.Unlock()
	if at, there := s.at[h]; there && recordAt(s.blocks[at.block], at.offset).key == k {
		delete(s.at, h)
	}
}

// clear deletes all values, and gives all blocks up.
func (c *flat) clear() {
	for i := range c.shards {
		c.shards[i].Lock()
		c.shards[i].clear()
		c.shards[i].Unlock()
	}
}

func (s *flatShard) clear() {
	s.at, s.blocks, s.free, s.queues, s.bytes = map[uint64]place{}, nil, nil, [2][]uint32{}, 0
}

// len is how many values there are, including values that have ended and have not been asked for
// since.
func (c *flat) len() int { return int(c.sum(func(s *flatShard) int64 { return int64(len(s.at)) })) }

// bytes is what values take, including values that were replaced or deleted, until their blocks are given
// up.
func (c *flat) bytes() uint64 {
	return uint64(c.sum(func(s *flatShard) int64 {
		n := indexBytes * int64(len(s.at))
		for _, b := range s.blocks {
			if b != nil {
				n += int64(len(b.data))
			}
		}
		return n
	}))
}

func (c *flat) sum(of func(*flatShard) int64) (n int64) {
	for i := range c.shards {
		c.shards[i].Lock()
		n += of(&c.shards[i])
		c.shards[i].Unlock()
	}
	return n
}
