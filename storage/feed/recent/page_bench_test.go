package recent

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/storage"
	"kith/storage/cache/idset"
)

// BenchmarkPage finds the first page of users with several numbers of followings, half of them drawn by how much they
// post, among 50,000 authors with 111,000 recent posts, log-normally many each; and of users whose followings have
// hardly posted. It also times both ways alone.
//
//	go test ./storage/feed/recent -run '^$' -bench Page -benchtime 2000x
func BenchmarkPage(b *testing.B) {
	const users = 50_000
	random := rand.New(rand.NewPCG(1, 2))
	var ids []storage.UserID
	id := storage.UserID(1) << 40
	for range users {
		id += storage.UserID(random.Int64N(1 << 30))
		ids = append(ids, id)
	}
	now := storage.MicrosOf(day0)
	var posts []storage.PostAt
	var quiet []storage.UserID
	for _, id := range ids {
		before := len(posts)
		for range int(math.Exp(random.NormFloat64()*1.2 + math.Log(2.7) - 1.2*1.2/2)) {
			at := now - storage.Micros(random.Int64N(7*24*3600e6))
			posts = append(posts, storage.PostAt{PostID: storage.PostID{Author: id, Number: int64(at/numbersTick)<<numbersBits + random.Int64N(1<<20)}, CreatedAt: at})
		}
		if len(posts)-before < 2 {
			quiet = append(quiet, id)
		}
	}
	slices.Reverse(newest(posts))
	p := began(1<<30, func() time.Time { return day0 })
	for _, one := range posts {
		p.Add(one)
	}
	dir := idset.NewDirectory()
	dir.Learn(ids)
	for _, followings := range []int{50, 200, 500, 1000, 2000, 5000, 20_000, -1000, -5000, -20_000} {
		active := followings > 0
		sets := make([]*idset.Set, 16)
		for i := range sets {
			of := map[storage.UserID]bool{}
			for active && len(of) < followings/2 {
				of[posts[random.IntN(len(posts))].Author] = true
			}
			for active && len(of) < followings {
				of[ids[random.IntN(users)]] = true
			}
			for !active && len(of) < -followings {
				of[quiet[random.IntN(len(quiet))]] = true
			}
			var list []storage.UserID
			for id := range of {
				list = append(list, id)
			}
			sets[i] = idset.Build(dir, list)
		}
		for name, find := range map[string]func(Query){
			"page":  func(q Query) { p.Page(q) },
			"merge": func(q Query) { p.merge(&q) },
			"scan":  func(q Query) { p.scan(&q, scanMost, math.MaxInt) },
		} {
			kind := map[bool]string{true: "active", false: "quiet"}[active]
			b.Run(fmt.Sprintf("%d %s/%s", max(followings, -followings), kind, name), func(b *testing.B) {
				i := 0
				for b.Loop() {
					i++
					find(Query{Authors: sets[i%len(sets)], Limit: 21})
				}
			})
		}
	}
}
