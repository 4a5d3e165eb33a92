package bench

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"kith/storage"
)

// Posts are what the users of a graph have posted until now, oldest first. How many posts a user has is log-normal, and they are spread over the
// last 30 days.
func (g *Graph) Posts(now time.Time) (posts []storage.PostRow) {
	const (
		days   = 30
		span   = days * 24 * int64(time.Hour/time.Microsecond)
		mean   = 10  // of a user
		spread = 1.2 // sigma of their log-normal distribution
	)
	for n := 1; n <= g.Users; n++ {
		r := g.random(purposePosts, n)
		id := storage.PostID{Author: g.ID(n)}
		for range int(math.Exp(r.NormFloat64()*spread + math.Log(mean) - spread*spread/2)) {
			posts = append(posts, storage.PostRow{PostID: id, At: storage.MicrosOf(now) - storage.Micros(r.Int64N(span))})
		}
	}
	slices.SortFunc(posts, func(a, b storage.PostRow) int { return int(a.At - b.At) })
	for i := range posts { // as accounts/ids makes numbers: by the time in 10 ms, and 24 bits
		p := &posts[i]
		p.Number = int64(p.At/10_000)<<24 | int64(i)&(1<<24-1)
		p.Key = strconv.FormatInt(p.Number, 10)
		p.Text = "What user " + p.Author.String() + " had to say on this day, as post " + p.Key + " of all, in about as many words as people take."
	}
	return posts
}

// Reader makes the follows of a user who comes after all users of the graph, and whom nobody follows. Half of those followed are drawn by
// popularity, so that celebrities are among them, the rest from all.
func (g *Graph) Reader(followings int) (id storage.UserID, follows []storage.Edge) {
	id = g.ID(g.Users + 1)
	r := g.random(purposeReaders, g.Users+1)
	seen := map[int]bool{}
	for tries := 0; tries < followings && len(seen) < followings/2; tries++ {
		seen[g.pickPopular(r)] = true
	}
	for len(seen) < min(followings, g.Users) {
		seen[g.anyone(r)] = true
	}
	begin := storage.MicrosOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for i, n := range slices.Sorted(maps.Keys(seen)) {
		follows = append(follows, storage.Edge{From: id, To: g.ID(n), Type: storage.Following, UpdateTime: begin + storage.Micros(i)})
	}
	return id, follows
}
