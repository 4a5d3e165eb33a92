package bench

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"kith/storage"
)

// FeedGraph is a graph whose users have posted, with readers of home feeds beside it. How many posts a user has is log-normal, and they are
// spread over the last 30 days. The same arguments always give the same graph.
type FeedGraph struct {
	*Graph
	Groups []Readers

	posts []feedPost // oldest first
}

// Readers are users who each follow the same number of users of the graph, and whom nobody follows.
type Readers struct {
	Followings int
	IDs        []storage.UserID
	follows    [][]int // numbers of users, by reader
}

// feedPost is the place of a post in home feeds.
type feedPost struct {
	storage.PostID
	At storage.Micros
}

const (
	readersOfEach = 16
	postDays      = 30
	meanPosts     = 10  // of a user
	postSpread    = 1.2 // sigma of their log-normal distribution
)

// NewFeedGraph lets the users of a graph post until now, and adds readers with the given numbers of followings.
func NewFeedGraph(g *Graph, now time.Time, followings []int) *FeedGraph {
	f := &FeedGraph{Graph: g}
	f.draw(storage.MicrosOf(now))
	next := g.Users
	for _, n := range followings {
		group := Readers{Followings: n}
		for range readersOfEach {
			next++
			group.IDs = append(group.IDs, g.ID(next))
			group.follows = append(group.follows, f.followed(min(n, g.Users), next))
		}
		f.Groups = append(f.Groups, group)
	}
	return f
}

func (f *FeedGraph) draw(now storage.Micros) {
	const span = postDays * 24 * int64(time.Hour/time.Microsecond)
	for n := 1; n <= f.Users; n++ {
		r := f.random(purposePosts, n)
		id := f.ID(n)
		count := math.Exp(r.NormFloat64()*postSpread + math.Log(meanPosts) - postSpread*postSpread/2)
		for range int(count) {
			f.posts = append(f.posts, feedPost{PostID: storage.PostID{Author: id}, At: now - storage.Micros(r.Int64N(span))})
		}
	}
	slices.SortFunc(f.posts, func(a, b feedPost) int { return int(a.At - b.At) })
	for i := range f.posts { // as accounts/ids makes numbers: by the time in 10 ms, and 24 bits
		f.posts[i].Number = int64(f.posts[i].At/10_000)<<24 | int64(i)&(1<<24-1)
	}
}

// followed draws a number of users: half of them by popularity, so that readers follow celebrities, the rest from all.
func (f *FeedGraph) followed(count, reader int) []int {
	r := f.random(purposeReaders, reader)
	seen := map[int]bool{}
	for tries := 0; tries < count && len(seen) < count/2; tries++ {
		seen[f.pickPopular(r)] = true
	}
	for len(seen) < count {
		seen[f.anyone(r)] = true
	}
	list := make([]int, 0, count)
	for n := range seen {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// Rows yields the posts as a store keeps them, oldest first.
func (f *FeedGraph) Rows() iter.Seq[storage.PostRow] {
	return func(yield func(storage.PostRow) bool) {
		for _, p := range f.posts {
			number := strconv.FormatInt(p.Number, 10)
			text := "What user " + p.Author.String() + " had to say on this day, as post " + number + " of all, in about as many words as people take."
			if !yield(storage.PostRow{NewPost: storage.NewPost{PostID: p.PostID, Key: number, Text: text, At: p.At}}) {
				return
			}
		}
	}
}

// ReaderEdges yields the follows of the readers.
func (f *FeedGraph) ReaderEdges() iter.Seq[storage.Edge] {
	begin := storage.MicrosOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return func(yield func(storage.Edge) bool) {
		for _, group := range f.Groups {
			for i, id := range group.IDs {
				for at, n := range group.follows[i] {
					if !yield(storage.Edge{From: id, To: f.ID(n), Type: storage.Following, UpdateTime: begin + storage.Micros(at)}) {
						return
					}
				}
			}
		}
	}
}
