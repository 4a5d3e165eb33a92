package flat_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"kith/storage/cache/flat"
)

type key struct{ a, b int64 }

// valueOf is the nth value of a key. Values have different lengths.
func valueOf(k key, n int) []byte {
	v := binary.BigEndian.AppendUint64(nil, uint64(k.a))
	v = binary.BigEndian.AppendUint64(v, uint64(n))
	return append(v, bytes.Repeat([]byte{byte(n)}, int(k.a*7+int64(n))%120)...)
}

// A value that is found was set last, and has neither been deleted nor expired. The cache takes no more than its bound.
func TestAValueIsTheLastOneSet(t *testing.T) {
	for _, most := range []uint64{0, 3000, 20_000, 200_000, 40 << 20} {
		c := flat.New[key](most)
		random := rand.New(rand.NewPCG(1, most))
		last, until := map[key]int{}, map[key]int64{}
		found := 0
		for now := range int64(60_000) {
			k := key{random.Int64N(2000), 5}
			switch random.IntN(6) {
			case 0, 1:
				last[k], until[k] = int(now), now+1+random.Int64N(30_000)
				if !c.Set(k, valueOf(k, int(now)), now, until[k]) {
					t.Fatalf("%d bytes do not fit into %d", len(valueOf(k, int(now))), c.Longest())
				}
			case 2:
				if random.IntN(10) == 0 {
					c.Delete(k)
					delete(last, k)
				}
			default:
				v, ok := c.Get(k, now)
				if n, set := last[k]; ok && (!set || until[k] <= now || !bytes.Equal(v, valueOf(k, n))) {
					t.Fatalf("%d bytes: at %d of %v %x is found, want version %d until %d", most, now, k, v, n, until[k])
				}
				if ok {
					found++
				}
			}
			if n := c.Bytes(); n > most {
				t.Fatalf("%d bytes of %d", n, most)
			}
		}
		if most >= 200_000 && found < 10_000 || most >= 20_000 && found == 0 {
			t.Errorf("%d bytes: %d found", most, found)
		}
		c.Clear()
		if _, _, ok := c.Look(key{1, 5}, 0); ok || c.Len() != 0 || c.Bytes() != 0 {
			t.Errorf("after Clear %d are there, in %d bytes", c.Len(), c.Bytes())
		}
	}
}

// A deleted value does not come back when its block is given up, wherever in the block it was, even at the beginning.
func TestADeletedValueStaysAway(t *testing.T) {
	for deleted := range 4 {
		c := flat.New[key](200_000)
		for i := range 4 {
			k := key{int64(i), 1}
			c.Set(k, valueOf(k, 0), 0, 10)
			c.Get(k, 0) // so that it is written again
		}
		gone := key{int64(deleted), 1}
		c.Delete(gone)
		for i := range 20_000 {
			k := key{int64(i), 2}
			c.Set(k, valueOf(k, 0), 0, 10)
			if v, there := c.Get(gone, 0); there {
				t.Fatalf("value %d is there again after %d others: %x", deleted, i, v)
			}
		}
	}
}

// A value that is too long is not kept, and neither is the value before it.
func TestALongValue(t *testing.T) {
	c := flat.New[key](1 << 20)
	k := key{1, 1}
	for _, more := range []int{0, 1} {
		c.Set(k, []byte("short"), 0, 10)
		kept := c.Set(k, make([]byte, c.Longest()+more), 0, 10)
		if _, there := c.Get(k, 0); kept != (more == 0) || there != kept {
			t.Errorf("%d more than the longest: %v, %v", more, kept, there)
		}
	}
}

// Values that are asked for often stay, however many others are set, and a lower bound is kept.
func TestTheOftenAskedStay(t *testing.T) {
	c := flat.New[key](1 << 20)
	const often, others = 500, 200_000
	value := make([]byte, 100)
	for n := range int64(often) {
		c.Set(key{n, 0}, value, 0, 9)
	}
	stayed := 0
	for n := range int64(others) {
		c.Set(key{n, 1}, value, 0, 9)
		if _, ok := c.Get(key{n % often, 0}, 0); ok {
			stayed++
		} else {
			c.Set(key{n % often, 0}, value, 0, 9)
		}
	}
	if stayed < others*95/100 {
		t.Errorf("%d of %d were there", stayed, others)
	}
	c.Bound(100_000)
	c.Set(key{1, 2}, value, 0, 9)
	for n := range int64(1000) {
		c.Set(key{n, 3}, value, 0, 9)
	}
	if c.Bytes() > 100_000 {
		t.Errorf("%d bytes are kept after the bound was lowered", c.Bytes())
	}
}

// The account is true, and a garbage collection has nothing to follow.
func TestTheAccountIsTrue(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := heap()
	c := flat.New[key](64 << 20)
	value := make([]byte, 150)
	for n := range int64(200_000) {
		c.Set(key{n, 0}, value, 0, 9)
	}
	if real, account := heap()-before, int64(c.Bytes()); real < account*8/10 || real > account*11/10 {
		t.Errorf("%d bytes in the heap, %d by the account", real, account)
	}
	runtime.KeepAlive(c)
}

// Readers, writers and evictions do not disturb one another; the race detector watches.
func TestManyAtOnce(t *testing.T) {
	c := flat.New[key](100_000)
	var working sync.WaitGroup
	for n := range 4 {
		working.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(n)))
			for range 10_000 {
				k := key{random.Int64N(500), 1}
				if v, ok := c.Get(k, 0); ok && !bytes.Equal(v, valueOf(k, 7)) {
					t.Errorf("of %v %x is found", k, v)
					return
				}
				c.Set(k, valueOf(k, 7), 0, 9)
			}
		})
	}
	working.Wait()
}

func BenchmarkGet(b *testing.B) {
	c := flat.New[key](64 << 20)
	for n := range int64(100_000) {
		c.Set(key{n, 0}, make([]byte, 150), 0, 9)
	}
	n := int64(0)
	for b.Loop() {
		n++
		c.Get(key{n % 100_000, 0}, 0)
	}
}
