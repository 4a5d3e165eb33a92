package idset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"kith/storage"
)

// BenchmarkGraph holds both sides of a whole graph in memory as sets, without the order of time, and compares lists of its most followed
// users. The last size is that of Bluesky in 2024. Followings are log-normal around 41; four of ten follows stay within 250 neighbours, the
// others are drawn by a power law, so that the first user has some 2 in 1,000 of them.
//
//	go test ./storage/cache/idset -run '^$' -bench Graph/164 -benchtime 1x -timeout 30m
func BenchmarkGraph(b *testing.B) {
	for _, follows := range []int{10_000_000, 40_000_000, 164_000_000} {
		b.Run(fmt.Sprintf("%dM", follows/1_000_000), func(b *testing.B) {
			for range b.N {
				holdGraph(b, follows/41, follows)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func holdGraph(b *testing.B, users, follows int) {
	random := rand.New(rand.NewPCG(164, 41))
	dir := NewDirectory()
	ids := make([]storage.UserID, users)
	for i := range ids {
		ids[i] = storage.UserID(i + 1)
	}
	dir.Learn(ids)

	// Who follows whom, user by user: to[begins[n]:begins[n+1]].
	begins, to := make([]int, 1, users+1), make([]uint32, 0, follows)
	var list []uint32
	for n := range users {
		list = list[:0]
		for range min(int(41*math.Exp(random.NormFloat64()-0.5)), follows-len(to)) {
			peer := int(float64(users) * math.Pow(random.Float64(), 2.5))
			if random.Float64() < 0.4 {
				peer = min(n/250*250+random.IntN(250), users-1)
			}
			list = append(list, uint32(peer))
		}
		slices.Sort(list)
		to = append(to, slices.Compact(list)...)
		begins = append(begins, len(to))
	}
	// The same by whom they follow.
	ends := make([]int, users+1)
	for _, peer := range to {
		ends[peer+1]++
	}
	for n := range users {
		ends[n+1] += ends[n]
	}
	from, next := make([]uint32, len(to)), slices.Clone(ends)
	for n := range users {
		for _, peer := range to[begins[n]:begins[n+1]] {
			from[next[peer]] = uint32(n)
			next[peer]++
		}
	}

	before := heap()
	began := time.Now()
	sides := [2][]*Set{make([]*Set, users), make([]*Set, users)}
	room := make([]storage.UserID, 0, users)
	for side, lists := range [2]struct {
		at    []int
		peers []uint32
	}{{begins, to}, {ends, from}} {
		for n := range users {
			room = room[:0]
			for _, peer := range lists.peers[lists.at[n]:lists.at[n+1]] {
				room = append(room, storage.UserID(peer+1))
			}
			sides[side][n] = Build(dir, room)
		}
	}
	took := time.Since(began)
	bytes := heap() - before + uint64(dir.Bytes())
	b.ReportMetric(float64(len(to)), "follows")
	b.ReportMetric(float64(bytes)/1e6, "MB")
	b.ReportMetric(float64(bytes)/float64(2*len(to)), "bytes/edge")
	b.ReportMetric(took.Seconds(), "s-built")

	var times []time.Duration
	for range 2000 { // common followers of two of the 40 most followed
		x, y := sides[1][random.IntN(40)], sides[1][random.IntN(40)]
		began := time.Now()
		Intersect(x, y, 0, 20)
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	b.ReportMetric(float64(sides[1][0].Len()), "longest")
	b.ReportMetric(times[len(times)/2].Seconds()*1e6, "p50-µs")
	b.ReportMetric(times[len(times)*99/100].Seconds()*1e6, "p99-µs")
	runtime.KeepAlive(sides)
}

// heap is how many bytes live.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
