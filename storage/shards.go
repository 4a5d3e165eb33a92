package storage

import (
	"bytes"
	"hash/crc32"
	"slices"
	"strconv"
	"sync/atomic"
)

// Buckets is the number of buckets of every store. Users are on shards by id → bucket → shard: a bucket is crc32 (IEEE) of the
// id's decimal text, modulo Buckets, a rule that SQL and every language can compute (`CRC32(id) % 1024` in MySQL), fixed
// permanently, so that data can move between shards a bucket at a time. Which shard owns a bucket is data, and may change while
// programs run.
const Buckets = 1024

// A BucketRange is a run of buckets, with both ends.
type BucketRange struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// Contains reports whether a bucket is one of the range.
func (r BucketRange) Contains(bucket int) bool { return r.First <= bucket && bucket <= r.Last }

// Len is the number of buckets.
func (r BucketRange) Len() int { return r.Last - r.First + 1 }

// Choice selects some of the numbers of groups or classes: it is '1' at those selected, '0' at the
// others.
type Choice []byte

// Has reports whether a number is selected.
func (c Choice) Has(i int) bool { return c[i] == '1' }

// Without is what is selected, and not by others.
func (c Choice) Without(others Choice) Choice {
	rest := bytes.Clone(c)
	for i := range rest {
		if others.Has(i) {
			rest[i] = '0'
		}
	}
	return rest
}

// ChooseBuckets selects the buckets of ranges.
func ChooseBuckets(ranges ...BucketRange) Choice {
	chosen := Choice(bytes.Repeat([]byte{'0'}, Buckets))
	for _, r := range ranges {
		for b := max(0, r.First); b <= min(r.Last, Buckets-1); b++ {
			chosen[b] = '1'
		}
	}
	return chosen
}

// Ranges are the runs of buckets that are selected.
func (c Choice) Ranges() (ranges []BucketRange) {
	for b := range c {
		switch {
		case !c.Has(b):
		case b > 0 && c.Has(b-1):
			ranges[len(ranges)-1].Last = b
		default:
			ranges = append(ranges, BucketRange{First: b, Last: b})
		}
	}
	return ranges
}

// EvenBuckets is the range of a shard of a store that has been laid out for a number of shards,
// 1 … Buckets: shard i of S owns the buckets from ⌊i·1024/S⌋ to ⌊(i+1)·1024/S⌋ − 1.
func EvenBuckets(shard, shards int) BucketRange {
	return BucketRange{shard * Buckets / shards, (shard+1)*Buckets/shards - 1}
}

// An Assignment says which shard owns each bucket. It does not change.
type Assignment struct {
	Epochs []int64 // of the shards
	owner  [Buckets]uint16
	state  [Buckets]uint8
}

// Assign gives buckets to a shard, while the assignment is being made: before, the first one has everything. The state is what the
// engine keeps of a bucket that is moving; 0: it is not.
func (a *Assignment) Assign(r BucketRange, shard int, state uint8) {
	for b := r.First; b <= r.Last; b++ {
		a.owner[b], a.state[b] = uint16(shard), state
	}
}

// Shards is the number of shards. Some may own nothing.
func (a *Assignment) Shards() int { return len(a.Epochs) }

// Epoch is the epoch of a shard to which the assignment belongs. It rises whenever the buckets of
// the shard change. It is 0, which no shard has, if the shard no longer exists.
func (a *Assignment) Epoch(shard int) int64 {
	if shard >= len(a.Epochs) {
		return 0
	}
	return a.Epochs[shard]
}

// Owner returns the shard that owns a bucket, and in which state.
func (a *Assignment) Owner(bucket int) (shard int, state uint8) {
	return int(a.owner[bucket]), a.state[bucket]
}

// Owns reports whether a shard owns any bucket.
func (a *Assignment) Owns(shard int) bool { return slices.Contains(a.owner[:], uint16(shard)) }

// Moving reports whether a bucket is moving to another shard.
func (a *Assignment) Moving() bool {
	return a.state != [Buckets]uint8{}
}

// A ShardMap is the present [Assignment] of a store.
type ShardMap struct{ now atomic.Pointer[Assignment] }

// NewShardMap is the map of a store that has been laid out for a number of shards, 1 … Buckets.
func NewShardMap(shards int) *ShardMap {
	m, a := &ShardMap{}, &Assignment{Epochs: make([]int64, shards)}
	for i := range shards {
		a.Assign(EvenBuckets(i, shards), i, 0)
	}
	m.Set(a)
	return m
}

// Now is the assignment at present.
func (m *ShardMap) Now() *Assignment { return m.now.Load() }

// Set replaces the assignment.
func (m *ShardMap) Set(a *Assignment) { m.now.Store(a) }

// Of returns the shard that owns a user.
func (m *ShardMap) Of(id UserID) int {
	now := m.Now()
	if len(now.Epochs) == 1 {
		return 0
	}
	return int(now.owner[id.Bucket()])
}

// OfHandle returns the shard that owns a handle.
func (m *ShardMap) OfHandle(handle string) int { return int(m.Now().owner[BucketOfHandle(handle)]) }

// Bucket is the bucket of the user.
func (id UserID) Bucket() int {
	var text [20]byte
	return int(crc32.ChecksumIEEE(strconv.AppendInt(text[:0], int64(id), 10)) % Buckets)
}

// BucketOfHandle returns the bucket of a handle.
func BucketOfHandle(handle string) int {
	return int(crc32.ChecksumIEEE([]byte(handle)) % Buckets)
}
