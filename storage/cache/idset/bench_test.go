package idset

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
)

// BenchmarkSets prints tables that compare sets with sorted slices. They run in turn in one run and are measured by the CPU time of the process, so that other load on the machine matters little.
//
//	go test ./storage/cache/idset -run '^$' -bench Sets -benchtime 1x -timeout 30m
func BenchmarkSets(b *testing.B) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	b.Run("pairs", func(b *testing.B) { pairTable(b, table) })
	b.Run("count", func(b *testing.B) { edgeCountTable(b, table) })
	b.Run("changes", func(b *testing.B) { changeTable(b, table) })
	b.ReportMetric(0, "ns/op")
}

// world is some users and their directory.
type world struct {
	name string
	universe
	dir *Directory
}

func worlds(n int) []world {
	random := rand.New(rand.NewPCG(10, uint64(n)))
	all := []world{{"dense", denseIDs(n), NewDirectory()}, {"Sonyflake", flakeIDs(n, random), NewDirectory()}}
	for _, w := range all {
		w.dir.Learn(w.universe)
	}
	return all
}

// forms is one list in every form.
type forms struct {
	ids    []storage.UserID
	set    *Set
	chunks [][]byte          // packed distances
	room   *[]storage.UserID // to unpack into
}

func (w world) forms(n int, random *rand.Rand, room *[]storage.UserID) forms {
	f := forms{ids: slices.Clone(w.exactly(n, random)), room: room}
	f.set = Build(w.dir, f.ids)
	for ids := range slices.Chunk(f.ids, ChunkSize) {
		f.chunks = append(f.chunks, AppendChunk(nil, timeless(ids)))
	}
	return f
}

func (f forms) packed() int {
	n := 0
	for _, c := range f.chunks {
		n += len(c)
	}
	return n
}

func (f forms) unpacked() []storage.UserID {
	ids := (*f.room)[:0]
	for _, c := range f.chunks {
		var err error
		if ids, err = ParsePeers(ids, c); err != nil {
			panic(err)
		}
	}
	*f.room = ids
	return ids
}

// ways are the ways to intersect two lists. Each returns how many ids the lists have in common.
var ways = []struct {
	name string
	do   func(a, b forms) int
}{
	{"sets: count", func(a, b forms) int { return Common(a.set, b.set) }},
	{"sets: count and first 20", func(a, b forms) int { _, n := Intersect(a.set, b.set, 0, 20); return n }},
	{"merge of slices", func(a, b forms) int { return mergeIDs(a.ids, b.ids) }},
	{"packed distances, unpacked and merged", func(a, b forms) int { return mergeIDs(a.unpacked(), b.unpacked()) }},
}

func mergeIDs(a, b []storage.UserID) int {
	n := 0
	for len(a) > 0 && len(b) > 0 {
		switch x, y := a[0], b[0]; {
		case x < y:
			a = a[1:]
		case x > y:
			b = b[1:]
		default:
			n++
			a, b = a[1:], b[1:]
		}
	}
	return n
}

func pairTable(b *testing.B, out *tabwriter.Writer) {
	fmt.Fprintf(out, "\n| ids | lists | of users | common | %s | bytes an id: sets | packed |\n", header())
	for _, users := range []int{50_000, 1_000_000, 10_000_000} {
		for _, w := range worlds(users) {
			for _, sizes := range [][2]int{{30_000, 30_000}, {300, 30_000}, {100_000, 100_000}} {
				if sizes[1] < users {
					pairRow(b, out, w, sizes)
				}
			}
		}
	}
	out.Flush()
}

func header() string {
	names := make([]string, len(ways))
	for i, way := range ways {
		names[i] = way.name
	}
	return strings.Join(names, " | ")
}

func pairRow(b *testing.B, out io.Writer, w world, sizes [2]int) {
	random := rand.New(rand.NewPCG(11, 12))
	var rooms [2][]storage.UserID
	var left, right []forms
	for range 20 { // 400 pairs, as of the users with the most followers
		left = append(left, w.forms(sizes[0], random, &rooms[0]))
		right = append(right, w.forms(sizes[1], random, &rooms[1]))
	}
	for i := range left {
		want := len(common(left[i].ids, right[i].ids))
		for _, way := range ways {
			n := way.do(left[i], right[i])
			must.That(b, n == want, "%s: %d in common, want %d", way.name, n, want)
		}
	}
	var contenders []func(int)
	for _, way := range ways {
		contenders = append(contenders, func(i int) { way.do(left[i%20], right[i/20%20]) })
	}
	rates := measure(contenders)
	l := right[0]
	n := float64(len(l.ids))
	fmt.Fprintf(out, "| %s | %d × %d | %d | %d |%s %.2f | %.2f |\n", w.name, sizes[0], sizes[1], len(w.universe), Common(left[0].set, right[0].set),
		cells(rates), float64(l.set.Bytes())/n, float64(l.packed())/n)
}

func cells(rates []float64) string {
	text := ""
	for _, r := range rates {
		text += fmt.Sprintf(" %.0f |", r)
	}
	return text
}

// measure runs the contenders in turn, five rounds, and reports the best rate of each per
// second of CPU time.
func measure(contenders []func(i int)) []float64 {
	rates := make([]float64, len(contenders))
	for range 5 {
		for c, do := range contenders {
			runtime.GC()
			start, began, n := testenv.ProcessorTime(), time.Now(), 0
			for time.Since(began) < 150*time.Millisecond {
				for range 8 {
					do(n)
					n++
				}
			}
			rates[c] = max(rates[c], float64(n)/(testenv.ProcessorTime()-start).Seconds())
		}
	}
	return rates
}

func edgeCountTable(b *testing.B, out *tabwriter.Writer) {
	fmt.Fprintf(out, "\n| ids | lists | of users | best 20, without two lists | hash map |\n")
	for _, users := range []int{50_000, 1_000_000, 10_000_000} {
		for _, w := range worlds(users) {
			for _, n := range []int{50, 300} {
				edgeCountRow(b, out, w, n)
			}
		}
	}
	out.Flush()
}

// edgeCountRow prints the counts of n lists of n users.
func edgeCountRow(b *testing.B, out io.Writer, w world, n int) {
	random := rand.New(rand.NewPCG(13, 14))
	queries := make([][]*Set, 20)
	slow := make([][][]storage.UserID, len(queries))
	lists := make([]*Set, 400)
	ids := make([][]storage.UserID, len(lists))
	for i := range lists {
		for range n {
			ids[i] = append(ids[i], w.universe[random.IntN(len(w.universe))])
		}
		lists[i] = Build(w.dir, ids[i])
		ids[i] = lists[i].IDs()
	}
	for i := range queries {
		for _, at := range random.Perm(len(lists))[:n] {
			queries[i] = append(queries[i], lists[at])
			slow[i] = append(slow[i], ids[at])
		}
	}
	got, want := len(allCandidates(queries[0])), len(mapCounts(slow[0]))
	must.That(b, got == want, "%d users have counts, want %d", got, want)
	rates := measure([]func(int){
		func(i int) { TopK{Sets: queries[i%20], Except: ids[:2], Most: 20}.Best() },
		func(i int) { mapCounts(slow[i%20]) },
	})
	fmt.Fprintf(out, "| %s | %d × %d | %d |%s\n", w.name, n, n, len(w.universe), cells(rates))
}

func mapCounts(lists [][]storage.UserID) map[storage.UserID]int {
	counts := map[storage.UserID]int{}
	for _, ids := range lists {
		for _, id := range ids {
			counts[id]++
		}
	}
	return counts
}

// changeTable changes the followers of a user whom 10 M of 20 M users follow.
func changeTable(b *testing.B, out *tabwriter.Writer) {
	const users, followers = 20_000_000, 10_000_000
	fmt.Fprintf(out, "\n| ids | what | µs | bytes copied a change | bytes a user | copying a slice of 8 bytes an id, µs |\n")
	for _, w := range worlds(users) {
		random := rand.New(rand.NewPCG(15, 16))
		ids := w.exactly(followers, random)
		began := time.Now()
		set := Build(w.dir, ids)
		build := time.Since(began)
		positions := make([]storage.Position, followers)
		for i, at := range random.Perm(followers) {
			positions[at] = storage.Position{UpdateTime: storage.Micros(1.7e15) + storage.Micros(at)*6_300_000 + storage.Micros(random.IntN(6_000_000)), Peer: ids[i]}
		}
		slices.SortFunc(positions, storage.Position.Compare)
		line := BuildTimeline(w.dir, positions)
		slice := fmt.Sprintf("%.0f", perChange(20, func(int) { runtime.KeepAlive(slices.Clone(ids)) }))
		row := func(what string, size float64, do func(int)) {
			const n = 2000
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			µs := perChange(n, do)
			runtime.ReadMemStats(&after)
			fmt.Fprintf(out, "| %s | %s | %.1f | %d | %.2f | %s |\n", w.name, what, µs, (after.TotalAlloc-before.TotalAlloc)/n, size, slice)
		}
		size := float64(set.Bytes()) / followers
		next := set
		row("set: insert or remove anybody", size, func(int) {
			id := w.universe[random.IntN(users)]
			if n := next.Insert(id); n != next {
				next = n
			} else {
				next = next.Remove(id)
			}
		})
		size = float64(line.Bytes()) / followers
		last := line
		row("list by time: insert at the head", size, func(i int) {
			last = last.Insert(storage.Position{UpdateTime: positions[0].UpdateTime + storage.Micros(i+1), Peer: w.universe[random.IntN(users)]})
		})
		row("list by time: remove anywhere", size, func(i int) { last = last.Remove(positions[random.IntN(followers)]) })
		row("list by time: a page of 20 anywhere", size, func(int) { last.Page(positions[random.IntN(followers)], storage.Position{}, 20, false) })
		fmt.Fprintf(out, "| %s | set: build of 10 M ascending ids | %d | | | |\n", w.name, build.Microseconds())
		fmt.Fprintf(out, "| %s | directory of 20 M users | | | %.2f | |\n", w.name, float64(w.dir.Bytes())/users)
	}
	out.Flush()
}

// perChange is the CPU time of one change in µs.
func perChange(n int, do func(i int)) float64 {
	runtime.GC()
	start := testenv.ProcessorTime()
	for i := range n {
		do(i)
	}
	return float64((testenv.ProcessorTime() - start).Microseconds()) / float64(n)
}
