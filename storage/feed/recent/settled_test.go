package recent

import (
	"slices"
	"testing"
	"time"

	"kith/internal/check"
	"kith/storage"
)

// TestBetween lists the posts between two times, whatever order they came in, and says which times it does not cover.
func TestBetween(t *testing.T) {
	began := storage.MicrosOf(day0)
	p := NewSince(1<<20, func() time.Time { return day0 }, began)
	var all []storage.PostAt
	for i := range 3 * chunkLen {
		at := began + storage.Micros(1+(i*7)%(3*chunkLen))
		one := storage.PostAt{PostID: storage.PostID{Author: storage.UserID(1 + i%9), Number: int64(i)}, CreatedAt: at}
		all = append(all, one)
		p.Add(one)
	}
	slices.SortFunc(all, func(a, b storage.PostAt) int { return a.Place().Compare(b.Place()) })
	for _, from := range []storage.Micros{began, began + 5000} {
		want := slices.DeleteFunc(slices.Clone(all), func(one storage.PostAt) bool { return one.CreatedAt <= from || one.CreatedAt > from+1000 })
		got, ok := p.Between(from, from+1000)
		check.That(t, ok && slices.Equal(got, want), "from %d: %v, %d posts, want %d", from-began, ok, len(got), len(want))
	}
	_, ok := p.Between(began-1, began+10)
	check.That(t, !ok, "it reaches beyond the floor")
	p.Settle(began + 100)
	p.Add(all[len(all)-1])
	p.Add(storage.PostAt{PostID: storage.PostID{Author: 1, Number: -1}, CreatedAt: began + 101})
	check.That(t, p.Late() == 0 && p.Through() == began+100, "%d posts are late, through %d", p.Late(), p.Through())
	p.Add(storage.PostAt{PostID: storage.PostID{Author: 1, Number: -2}, CreatedAt: began + 100})
	p.Add(storage.PostAt{PostID: storage.PostID{Author: 1, Number: -3}, CreatedAt: began - 100})
	check.Equal(t, "posts are late", p.Late(), 2)
}
