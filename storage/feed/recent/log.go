package recent

import (
	"math"
	"slices"

	"kith/storage"
)

// position is where a post is in the log. Positions rise, and start over after the greatest: a
// position is in the log if it is less than the log's length behind the first.
type position uint32

const (
	chunkBits = 12
	chunkLen  = 1 << chunkBits // posts in a chunk: at 16 bytes each, a chunk is dropped without much loss

	// nobody is the author of a post that has been deleted.
	nobody = math.MaxUint32
)

// log is posts as they came, oldest first. A chunk takes chunkLen positions, however many posts it
// has.
type log struct {
	chunks []*chunk
	first  position // of the first chunk
	full   int      // posts in all chunks but the last
}

// chunk is posts with times that are no more than half an hour apart, 16 bytes each.
type chunk struct {
	base   storage.Micros // time of the first post
	number int64          // and its number
	oldest storage.Micros // the least time in it
	newest storage.Micros // the greatest time in this chunk and in those before it when it was filled
	behind storage.Micros // by how much a post here is older, at most, than one that came before it

	times   []int32 // later than base by so many microseconds
	numbers []int32 // greater than foreseen, see foreseen
	authors []uint32
	next    []position // the author's next older post
}

// A number is predicted from the time: numbers that are made as ids are (accounts/ids) rise by 2^24 every 10
// ms. So a number takes 4 bytes instead of 8. A number that is further away is kept beside the log.
const (
	numbersTick = 10_000 // µs
	numbersBits = 24
	isOdd       = math.MinInt32
)

// none is a position that is not in the log, and will not be.
func (l *log) none() position { return l.first - 1 }

func (l *log) has(at position) bool { return at-l.first < position(len(l.chunks))<<chunkBits }

// at is the chunk of a position in the log, and the index in it.
func (l *log) at(at position) (*chunk, int) {
	return l.chunks[(at-l.first)>>chunkBits], int(at & (chunkLen - 1))
}

func (l *log) time(at position) storage.Micros {
	c, i := l.at(at)
	return c.time(i)
}

// upTo is a time that is no older than a post and all posts that came before it. It does not read the
// post.
func (l *log) upTo(at position) storage.Micros { return l.chunks[(at-l.first)>>chunkBits].newest }

func (l *log) next(at position) position {
	c, i := l.at(at)
	return c.next[i]
}

func (l *log) link(at, next position) {
	c, i := l.at(at)
	c.next[i] = next
}

func (l *log) kill(at position) {
	c, i := l.at(at)
	c.authors[i] = nobody
}

// number is the number of a post; odd if it is kept beside the log.
func (l *log) number(at position) (n int64, odd bool) {
	c, i := l.at(at)
	return c.foreseen(c.time(i)) + int64(c.numbers[i]), c.numbers[i] == isOdd
}

func (c *chunk) time(i int) storage.Micros { return c.base + storage.Micros(c.times[i]) }

func (c *chunk) foreseen(t storage.Micros) int64 {
	return c.number + int64(t/numbersTick-c.base/numbersTick)<<numbersBits
}

// append adds a post at the end. fits is false if its number has to be kept beside the log.
func (l *log) append(post storage.PostAt, author uint32, next position) (at position, fits bool) {
	c := l.last()
	if c == nil || len(c.times) == chunkLen || !fitsIn(int64(post.CreatedAt-c.base)) {
		c = l.begin(post)
	}
	number := post.Number - c.foreseen(post.CreatedAt)
	fits = fitsIn(number)
	if !fits {
		number = isOdd
	}
	c.oldest = min(c.oldest, post.CreatedAt)
	c.newest, c.behind = max(c.newest, post.CreatedAt), max(c.behind, c.newest-post.CreatedAt)
	c.times = append(c.times, int32(post.CreatedAt-c.base))
	c.numbers = append(c.numbers, int32(number))
	c.authors = append(c.authors, author)
	c.next = append(c.next, next)
	return l.first + position(len(l.chunks)-1)<<chunkBits + position(len(c.times)-1), fits
}

func fitsIn(n int64) bool { return n > math.MinInt32 && n <= math.MaxInt32 }

func (l *log) last() *chunk {
	if len(l.chunks) == 0 {
		return nil
	}
	return l.chunks[len(l.chunks)-1]
}

func (l *log) begin(post storage.PostAt) *chunk {
	c := &chunk{base: post.CreatedAt, number: post.Number, oldest: post.CreatedAt, newest: post.CreatedAt}
	if before := l.last(); before != nil {
		before.clip()
		l.full += len(before.times)
		c.newest = max(c.newest, before.newest)
	}
	l.chunks = append(l.chunks, c)
	return c
}

// clip frees room that appending has left.
func (c *chunk) clip() {
	if len(c.times) < cap(c.times) {
		c.times, c.numbers = slices.Clone(c.times), slices.Clone(c.numbers)
		c.authors, c.next = slices.Clone(c.authors), slices.Clone(c.next)
	}
}

func (l *log) dropFirst() {
	if len(l.chunks) > 1 {
		l.full -= len(l.chunks[0].times)
	}
	l.chunks[0] = nil
	l.chunks = l.chunks[1:]
	l.first += chunkLen
}

// chunkBytes is what a chunk takes besides its posts.
const chunkBytes = 40 + 4*24 + 8

func (l *log) bytes() int {
	if len(l.chunks) == 0 {
		return 0
	}
	return chunkBytes*len(l.chunks) + 16*(l.full+cap(l.last().times))
}
