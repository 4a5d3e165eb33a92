package localcache

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// keyOf is a key of a kind.
func keyOf(a, b int64) key { return key{kind: kind(b), id: storage.UserID(a)} }

// valueOf is the nth value of a key. Values have different lengths.
func valueOf(k key, n int) []byte {
	v := binary.BigEndian.AppendUint64(nil, uint64(k.id))
	v = binary.BigEndian.AppendUint64(v, uint64(n))
	return append(v, bytes.Repeat([]byte{byte(n)}, int(int64(k.id)*7+int64(n))%120)...)
}

// A value that is found was set last, and has neither been deleted nor expired. The cache takes no more than its bound.
func TestAValueIsTheLastOneSet(t *testing.T) {
	for _, most := range []uint64{0, 3000, 20_000, 200_000, 40 << 20} {
		c := newFlat(most)
		random := rand.New(rand.NewPCG(1, most))
		last, until := map[key]int{}, map[key]int64{}
		found := 0
		for now := range int64(60_000) {
			k := keyOf(random.Int64N(2000), 5)
			switch random.IntN(6) {
			case 0, 1:
				last[k], until[k] = int(now), now+1+random.Int64N(30_000)
				must.That(t, c.set(k, valueOf(k, int(now)), now, until[k]), "%d bytes do not fit into %d", len(valueOf(k, int(now))), c.longest())
			case 2:
				if random.IntN(10) == 0 {
					c.delete(k)
					delete(last, k)
				}
			default:
				v, ok := c.get(k, now)
				if n, set := last[k]; ok && (!set || until[k] <= now || !bytes.Equal(v, valueOf(k, n))) {
					t.Fatalf("%d bytes: at %d of %v %x is found, want version %d until %d", most, now, k, v, n, until[k])
				}
				if ok {
					found++
				}
			}
			must.Most(t, "bytes", c.bytes(), most)
		}
		check.That(t, (most < 200_000 || found >= 10_000) && (most < 20_000 || found > 0), "%d bytes: %d found", most, found)
		c.clear()
		_, _, ok := c.look(keyOf(1, 5), 0)
		check.That(t, !ok && c.len() == 0 && c.bytes() == 0, "after clear %d are there, in %d bytes", c.len(), c.bytes())
	}
}

// A deleted value does not come back when its block is given up, wherever in the block it was, even at the beginning.
func TestADeletedValueStaysAway(t *testing.T) {
	for deleted := range 4 {
		c := newFlat(200_000)
		for i := range 4 {
			k := keyOf(int64(i), 1)
			c.set(k, valueOf(k, 0), 0, 10)
			c.get(k, 0) // so that it is written again
		}
		gone := keyOf(int64(deleted), 1)
		c.delete(gone)
		for i := range 20_000 {
			k := keyOf(int64(i), 2)
			c.set(k, valueOf(k, 0), 0, 10)
			v, there := c.get(gone, 0)
			must.That(t, !there, "value %d is there again after %d others: %x", deleted, i, v)
		}
	}
}

// A value that is too long is not kept, and neither is the value before it.
func TestALongValue(t *testing.T) {
	c := newFlat(1 << 20)
	k := keyOf(1, 1)
	for _, more := range []int{0, 1} {
		c.set(k, []byte("short"), 0, 10)
		kept := c.set(k, make([]byte, c.longest()+more), 0, 10)
		_, there := c.get(k, 0)
		check.That(t, kept == (more == 0) && there == kept, "%d more than the longest: %v, %v", more, kept, there)
	}
}

// Values that are asked for often stay, however many others are set, and a lower bound is kept.
func TestTheOftenAskedStay(t *testing.T) {
	c := newFlat(1 << 20)
	const often, others = 500, 200_000
	value := make([]byte, 100)
	for n := range int64(often) {
		c.set(keyOf(n, 0), value, 0, 9)
	}
	stayed := 0
	for n := range int64(others) {
		c.set(keyOf(n, 1), value, 0, 9)
		if _, ok := c.get(keyOf(n%often, 0), 0); ok {
			stayed++
		} else {
			c.set(keyOf(n%often, 0), value, 0, 9)
		}
	}
	check.Least(t, "values that were there", stayed, others*95/100)
	c.bound(100_000)
	c.set(keyOf(1, 2), value, 0, 9)
	for n := range int64(1000) {
		c.set(keyOf(n, 3), value, 0, 9)
	}
	check.Most(t, "bytes that are kept after the bound was lowered", c.bytes(), 100_000)
}

// The account is true, and a garbage collection has nothing to follow.
func TestTheAccountOfBlocksIsTrue(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := heap()
	c := newFlat(64 << 20)
	value := make([]byte, 150)
	for n := range int64(200_000) {
		c.set(keyOf(n, 0), value, 0, 9)
	}
	real, account := heap()-before, int64(c.bytes())
	check.That(t, real >= account*8/10 && real <= account*11/10, "%d bytes in the heap, %d by the account", real, account)
	runtime.KeepAlive(c)
}

// Readers, writers and evictions do not disturb one another; the race detector watches.
func TestManyAtOnce(t *testing.T) {
	c := newFlat(100_000)
	var working sync.WaitGroup
	for n := range 4 {
		working.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(n)))
			for range 10_000 {
				k := keyOf(random.Int64N(500), 1)
				if v, ok := c.get(k, 0); ok && !bytes.Equal(v, valueOf(k, 7)) {
					t.Errorf("of %v %x is found", k, v)
					return
				}
				c.set(k, valueOf(k, 7), 0, 9)
			}
		})
	}
	working.Wait()
}
