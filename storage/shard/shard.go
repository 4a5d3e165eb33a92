// Package shard says where a user's rows are: id → bucket → shard.
//
// A bucket is crc32 (IEEE) of the id's decimal text, modulo [Buckets]: a rule
// that SQL and every language can compute (`CRC32(id) % 1024` in MySQL), fixed permanently, so that
// data can move between shards a bucket at a time. Which shard owns a bucket is data, and may
// change while programs run.
package shard

import (
	"hash/crc32"
	"strconv"
	"sync/atomic"

	"kith/storage"
)

// Buckets is the number of buckets of every store.
const Buckets = 1024

// A Range is a run of buckets, with both ends.
type Range struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// Contains reports whether a bucket is one of the range.
func (r Range) Contains(bucket int) bool { return r.First <= bucket && bucket <= r.Last }

// Len is the number of buckets.
func (r Range) Len() int { return r.Last - r.First + 1 }

// Even is the range of a shard of a store that has been laid out for a number of shards,
// 1 … Buckets: shard i of S owns the buckets from ⌊i·1024/S⌋ to ⌊(i+1)·1024/S⌋ − 1.
func Even(shard, shards int) Range {
	return Range{shard * Buckets / shards, (shard+1)*Buckets/shards - 1}
}

// State is what the owner of a bucket does with it.
type State uint8

const (
	Owned   State = iota // reads and writes it
	Leaving              // the same, and notes what it writes: the bucket is being copied to another shard
	Closed               // only reads it: the bucket is about to be another shard's
	Copied               // only reads it: the whole store has been copied to another one, which is written to instead
)

// An Assignment says which shard owns each bucket. It does not change.
type Assignment struct {
	epochs []int64 // of the shards
	owner  [Buckets]uint16
	state  [Buckets]State
}

// NewAssignment begins an assignment for shards that are at some epochs: the first one has
// everything.
func NewAssignment(epochs []int64) *Assignment { return &Assignment{epochs: epochs} }

// Assign gives buckets to a shard, while the assignment is being made.
func (a *Assignment) Assign(r Range, shard int, state State) {
	for b := r.First; b <= r.Last; b++ {
		a.owner[b], a.state[b] = uint16(shard), state
	}
}

// Shards is the number of shards. Some may own nothing.
func (a *Assignment) Shards() int { return len(a.epochs) }

// Epoch is the epoch of a shard to which the assignment belongs. It rises whenever the buckets of
// the shard change. It is 0, which no shard has, if the shard no longer exists.
func (a *Assignment) Epoch(shard int) int64 {
	if shard >= len(a.epochs) {
		return 0
	}
	return a.epochs[shard]
}

// Owner returns the shard that owns a bucket, and in which state.
func (a *Assignment) Owner(bucket int) (shard int, state State) {
	return int(a.owner[bucket]), a.state[bucket]
}

// Moving reports whether a bucket is moving to another shard.
func (a *Assignment) Moving() bool {
	for _, s := range a.state {
		if s != Owned {
			return true
		}
	}
	return false
}

// A Map is the present [Assignment] of a store.
type Map struct{ now atomic.Pointer[Assignment] }

// NewMap is the map of a store that has been laid out for a number of shards, 1 … Buckets.
func NewMap(shards int) *Map {
	m, a := &Map{}, NewAssignment(make([]int64, shards))
	for i := range shards {
		a.Assign(Even(i, shards), i, Owned)
	}
	m.Set(a)
	return m
}

// Now is the assignment at present.
func (m *Map) Now() *Assignment { return m.now.Load() }

// Set replaces the assignment.
func (m *Map) Set(a *Assignment) { m.now.Store(a) }

// Shards is the number of shards.
func (m *Map) Shards() int { return m.Now().Shards() }

// Of returns the shard that owns a user.
func (m *Map) Of(id storage.UserID) int {
	now := m.Now()
	if len(now.epochs) == 1 {
		return 0
	}
	return int(now.owner[BucketOf(id)])
}

// OfHandle returns the shard that owns a handle.
func (m *Map) OfHandle(handle string) int { return int(m.Now().owner[BucketOfHandle(handle)]) }

// BucketOf returns the bucket of a user.
func BucketOf(id storage.UserID) int {
	var text [20]byte
	return int(crc32.ChecksumIEEE(strconv.AppendInt(text[:0], int64(id), 10)) % Buckets)
}

// BucketOfHandle returns the bucket of a handle.
func BucketOfHandle(handle string) int {
	return int(crc32.ChecksumIEEE([]byte(handle)) % Buckets)
}
