package recent

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/storage"
	"kith/storage/cache/idset"
)

// day0 is the time of the tests.
var day0 = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// began is an empty memory of posts, when no posts exist from before.
func began(bytes uint64, now func() time.Time) *Posts { return NewSince(bytes, now, 0) }

func newest(list []storage.PostAt) []storage.PostAt {
	slices.SortFunc(list, func(a, b storage.PostAt) int { return a.Place().Compare(b.Place()) })
	return list
}

// TestPagesAreThoseOfBruteForce: after any sequence of posts, in any order of time, deletions and
// loads, with numbers as they are made and with any others, and with any bound on memory.
func TestPagesAreThoseOfBruteForce(t *testing.T) {
	properties.Check(t, 40, func(t *rapid.T) {
		now := storage.MicrosOf(day0)
		clock := day0
		p := began(rapid.SampledFrom([]uint64{1 << 30, 1 << 30, 200_000}).Draw(t, "bytes"), func() time.Time { return clock })
		known, numbers := map[storage.PostID]storage.PostAt{}, map[int64]bool{}
		authors := rapid.SampledFrom([]int{1, 5, 3000}).Draw(t, "authors")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		step := rapid.SampledFrom([]int64{1, 20_000, 3600e6}).Draw(t, "µs between posts")
		at := now - storage.Micros(min(step*8000, 6*24*3600e6))
		publish := func() {
			if at += storage.Micros(random.Int64N(step)); at > now {
				clock = at.Time() // no post is of the future
			}
			late := storage.Micros(0)
			if random.IntN(10) == 0 {
				late = storage.Micros(random.Int64N(20 * step))
			}
			one := storage.PostAt{PostID: storage.PostID{Author: storage.UserID(1 + random.IntN(authors))}, CreatedAt: at - late}
			one.Number = int64(one.CreatedAt/numbersTick)<<numbersBits + random.Int64N(1<<numbersBits)
			if random.IntN(20) == 0 {
				one.Number = random.Int64()
			}
			if numbers[one.Number] {
				return
			}
			known[one.PostID], numbers[one.Number] = one, true
			if p.Add(one) {
				must.That(t, !p.Add(one), "a post was added twice")
			}
		}
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			for range rapid.SampledFrom([]int{1, 50, 50, 300, 300, 300, 5000}).Draw(t, "posts") {
				publish()
			}
			for id := range known {
				if random.IntN(9) > 0 {
					break
				}
				p.Remove(id)
				p.Remove(id)
				delete(known, id)
			}
			if rapid.IntRange(0, 3).Draw(t, "load") == 0 {
				p.beginLoad()
				read := newest(slices.Collect(maps.Values(known)))
				slices.Reverse(read)
				publish()
				p.install(read, 0)
			}
			checkPages(t, p, known, authors, random)
		}
	})
}

func checkPages(t *rapid.T, p *Posts, known map[storage.PostID]storage.PostAt, authors int, random *rand.Rand) {
	floor := p.Floor()
	here := 0
	for _, one := range known {
		if one.CreatedAt > floor {
			here++
		}
	}
	must.Least(t, "posts", p.Len(), here)
	all := newest(slices.Collect(maps.Values(known)))
	for range 4 {
		var ids []storage.UserID
		share := random.IntN(5)
		for id := range authors {
			if share == 0 || random.IntN(share+1) == 0 {
				ids = append(ids, storage.UserID(id+1))
			}
		}
		q := Query{Authors: idset.Of(ids), Limit: 1 + random.IntN(60)}
		if random.IntN(2) == 0 {
			q.Hides = func(id storage.UserID) bool { return id%3 == 0 }
		}
		if len(all) > 0 && random.IntN(3) > 0 {
			q.After = all[random.IntN(len(all))].Place()
		}
		var want []storage.PostAt
		for _, one := range all {
			wanted := q.Authors.Contains(one.Author) && (q.Hides == nil || !q.Hides(one.Author))
			if wanted && one.CreatedAt > floor && (q.After == storage.Place{} || one.Place().Compare(q.After) > 0) && len(want) < q.Limit {
				want = append(want, one)
			}
		}
		merged, near := p.merge(&q)
		for name, got := range map[string][]storage.PostAt{"page": p.Page(q).Posts, "scan": p.scan(&q, math.MaxInt, math.MaxInt).Posts, "merge": merged.Posts} {
			must.That(t, name == "merge" && !near || slices.Equal(got, want), "%s behind %v, floor %d: got %v, want %v", name, q.After, floor, got, want)
		}
		// A scan that is cut off has everything down to the point where it ended.
		part := p.scan(&q, random.IntN(3000), cmp.Or(random.IntN(3)*500, math.MaxInt))
		if part.Ended {
			want = slices.DeleteFunc(want, func(one storage.PostAt) bool { return one.CreatedAt <= part.Through })
		}
		must.That(t, slices.Equal(part.Posts, want), "part of a scan, through %d: got %v, want %v", part.Through, part.Posts, want)
	}
}

// TestOldPostsLeave by the chunk: the posts in memory exceed the window and the bound by no more than a chunk.
func TestOldPostsLeave(t *testing.T) {
	now := day0
	p := began(1<<20, func() time.Time { return now })
	number := int64(0)
	add := func(n int) {
		for range n {
			number++
			now = now.Add(time.Millisecond)
			p.Add(storage.PostAt{PostID: storage.PostID{Author: storage.UserID(1 + number%100), Number: number << numbersBits / 10}, CreatedAt: storage.MicrosOf(now)})
		}
	}
	add(10 * chunkLen)
	check.That(t, p.Len() == 10*chunkLen && p.Floor() == 0, "%d posts, floor %d", p.Len(), p.Floor())
	add(20 * chunkLen)
	n, b := p.Len(), p.Bytes()
	check.That(t, n >= 14*chunkLen && b <= 1<<20, "%d posts take %d bytes", n, b)
	now = now.Add(Window)
	add(1)
	check.Most(t, "posts after a week", p.Len(), chunkLen)
	check.That(t, len(p.authors.ids) <= 100 && p.authors.n <= 100, "%d authors", p.authors.n)
	now = now.Add(2 * Window)
	p.Add(storage.PostAt{PostID: storage.PostID{Author: 7, Number: number}, CreatedAt: storage.MicrosOf(now)})
	check.Equal(t, "authors are left", p.authors.n, 1)
}

func TestNothingIsKeptWithoutRoom(t *testing.T) {
	p := New(0, func() time.Time { return day0 })
	check.That(t, !p.Add(storage.PostAt{PostID: storage.PostID{Author: 1, Number: 1}, CreatedAt: storage.MicrosOf(day0)}) && p.Len() == 0, "a post is kept")
	page := p.Page(Query{Authors: idset.Of([]storage.UserID{1}), Limit: 1})
	check.That(t, len(page.Posts) == 0 && page.Through == math.MaxInt64, "%+v", page)
}

// TestBytesAPost: of authors who post six times, which is as often as many users do, and of few authors.
func TestBytesAPost(t *testing.T) {
	for _, load := range []struct {
		posts   int
		between int64   // µs
		most    float64 // bytes each
	}{{1_000_000, 500_000, 20}, {100_000, 5_000_000, 22}} { // the latter in small chunks, just after the table of authors has doubled
		const postsEach = 6
		p := began(1<<30, func() time.Time { return day0 })
		random := rand.New(rand.NewPCG(1, 2))
		before := heapBytes()
		at := storage.MicrosOf(day0.Add(-6 * 24 * time.Hour))
		for range load.posts {
			at += storage.Micros(random.Int64N(2 * load.between))
			number := int64(at/numbersTick)<<numbersBits + random.Int64N(1<<numbersBits)
			author := storage.UserID(1 + random.Int64N(int64(load.posts)/postsEach))
			p.Add(storage.PostAt{PostID: storage.PostID{Author: author << numbersBits, Number: number}, CreatedAt: at})
		}
		heap, counted := float64(heapBytes()-before)/float64(load.posts), float64(p.Bytes())/float64(load.posts)
		t.Logf("%d posts: %.1f bytes each in the heap, %.1f counted", load.posts, heap, counted)
		check.That(t, heap <= load.most && counted <= load.most && counted >= 0.9*heap, "%d posts: %.1f bytes each in the heap, %.1f counted", load.posts, heap, counted)
		for p.Len() > 0 {
			p.drop()
		}
		check.That(t, p.log.bytes() == 0 && p.authors.n == 0, "%d bytes and %d authors are left", p.log.bytes(), p.authors.n)
		runtime.KeepAlive(p)
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A post of the future stays out until its time has come. It does not end the memory for the posts of today.
func TestPostsOfTheFuture(t *testing.T) {
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	p := NewSince(1<<16, func() time.Time { return now }, 0)
	at := func(number int64, at time.Time) storage.PostAt {
		return storage.PostAt{PostID: storage.PostID{Author: 1, Number: number}, CreatedAt: storage.MicrosOf(at)}
	}
	future := at(1, now.Add(time.Hour))
	check.That(t, !p.Add(future) && !p.Add(at(2, now.AddDate(7000, 0, 0))), "a post of the future is there")
	for i := range int64(20_000) { // more than there is room for
		now = now.Add(time.Millisecond)
		must.That(t, p.Add(at(10+i, now)), "post %d of today is refused", i)
	}
	now = now.Add(time.Hour)
	check.That(t, p.Add(future), "a post is refused although its time has come")
}
