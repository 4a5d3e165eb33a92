// Package shard says where a user's rows are: id → bucket → shard.
//
// A bucket is crc32 (IEEE) of the id's decimal text, modulo [Buckets]: a rule
// that SQL and every language can compute (`CRC32(id) % 1024` in MySQL), fixed
// for ever, so that data can move between shards a bucket at a time.
package shard

import (
	"hash/crc32"
	"strconv"

	"kith/storage"
)

// Buckets is the number of buckets of every store.
const Buckets = 1024

// A Map assigns the buckets to a number of shards: shard i of S owns the buckets
// from ⌊i·1024/S⌋ to ⌊(i+1)·1024/S⌋ − 1.
type Map struct {
	shards int
	owner  [Buckets]uint16
}

// NewMap distributes the buckets over a number of shards, 1 … Buckets.
func NewMap(shards int) *Map {
	m := &Map{shards: shards}
	for i := range shards {
		first, last := m.Range(i)
		for b := first; b <= last; b++ {
			m.owner[b] = uint16(i)
		}
	}
	return m
}

// Shards is the number of shards.
func (m *Map) Shards() int { return m.shards }

// Range returns the first and the last bucket of a shard.
func (m *Map) Range(shard int) (first, last int) {
	return shard * Buckets / m.shards, (shard+1)*Buckets/m.shards - 1
}

// Of returns the shard that owns a user.
func (m *Map) Of(id storage.UserID) int {
	if m.shards == 1 {
		return 0
	}
	return int(m.owner[BucketOf(id)])
}

// OfHandle returns the shard that owns a handle.
func (m *Map) OfHandle(handle string) int {
	return int(m.owner[crc32.ChecksumIEEE([]byte(handle))%Buckets])
}

// BucketOf returns the bucket of a user.
func BucketOf(id storage.UserID) int {
	var text [20]byte
	return int(crc32.ChecksumIEEE(strconv.AppendInt(text[:0], int64(id), 10)) % Buckets)
}
