package rediscache

import (
	"testing"

	"kith/storage"
)

// BenchmarkHits measures how long one caller waits for values that are kept, and for reporting a change.
//
//	go test ./storage/cache/rediscache -run '^$' -bench Hits -benchmem
func BenchmarkHits(b *testing.B) {
	var ids []storage.UserID
	for id := range storage.UserID(20) {
		ids = append(ids, id+1)
	}
	s := newSource(b, ids...)
	for peer := range storage.UserID(50) {
		s.write(b, 1, 1000+peer*7, storage.Following)
	}
	_, c, _ := pair(b, s)
	c.agrees(b, s, ids...)
	calls := s.calls()
	for name, do := range map[string]func(){
		"1 user":        func() { c.Profiles(b.Context(), ids[:1]) },
		"20 users":      func() { c.Profiles(b.Context(), ids) },
		"a list of 50":  func() { c.Lists(b.Context(), storage.Forward, []storage.ListQuery{whole(1)}) },
		"change of two": func() { c.Changed(b.Context(), s.both(1, 2)) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
		})
	}
	b.Logf("%d look-ups of the store", s.calls()-calls)
}
