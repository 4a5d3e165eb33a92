package resolvers_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

var named = flag.Int("named", 50_000, "users that BenchmarkNames makes")

// BenchmarkNames finds users by name on MariaDB, among 50,000 users of whom 3,000 follow user 1, and 20,000 user 2; the viewer is user 1.
// Every second user is found by `s`, every hundredth by `sota`, every thousandth by `sota yilmaz` or by 太郎, a third by 郎. It reports the statements of a request, too.
//
//	go test ./resolvers -run '^$' -bench BenchmarkNames -named 50000
func BenchmarkNames(b *testing.B) {
	databases := testenv.SharedMariaDB(b, 2).FreshDatabases(b, 2)
	store := opened.Store(b, sqlstore.Config{Location: "mysql:" + strings.Join(databases, ";"), StatementTimeout: generous})
	fillNames(b, store, *named)
	for _, reads := range []struct {
		name string
		api  *apitest.API
	}{
		{"from the store", apitest.New(b, store, apitest.Options{}).As(1)},
		{"in memory", apitest.New(b, newWarmStore(b, store), apitest.Options{}).As(1)},
	} {
		for _, q := range []struct{ name, query string }{
			{"3,000 followers, few match", `{ user(by: {id: 1}) { followers(first: 20, filter: {match: "sota"}) { totalCount nodes { name } } } }`},
			{"3,000 followers, half of them match", `{ user(by: {id: 1}) { followers(first: 20, filter: {match: "s"}) { totalCount nodes { name } } } }`},
			{"3,000 followers, the closest", `{ user(by: {id: 1}) { followers(first: 20, orderBy: CLOSEST) { totalCount nodes { name } } } }`},
			{"3,000 followers, the most followed", `{ user(by: {id: 1}) { followers(first: 20, orderBy: MOST_FOLLOWED) { totalCount nodes { name } } } }`},
			{"20,000 followers, few match", `{ user(by: {id: 2}) { followers(first: 20, filter: {match: "sota yil"}) { totalCount nodes { name } } } }`},
			{"20,000 followers, half of them match", `{ user(by: {id: 2}) { followers(first: 20, filter: {match: "s"}) { totalCount nodes { name } } } }`},
			{"all users, few match", `{ searchUsers(text: "sota yil", first: 10) { nodes { name } } }`},
			{"all users, half of them match", `{ searchUsers(text: "s", first: 10) { nodes { name } } }`},
			{"all users, few have the end of a word", `{ searchUsers(text: "太郎", first: 10) { nodes { name } } }`},
			{"all users, many have the end of a word", `{ searchUsers(text: "郎", first: 10) { nodes { name } } }`},
			{"followers you know", `{ user(by: {id: 2}) { followersYouKnow(first: 10) { totalCount nodes { name } } } }`},
		} {
			b.Run(q.name+", "+reads.name, func(b *testing.B) {
				for b.Loop() {
					reads.api.Ask(q.query, nil).Whole()
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/request")
			})
		}
	}
}

func fillNames(b *testing.B, store storage.Store, n int) {
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"Sōta", "Ali", "Søren", "Ben", "Sara", "Mia"}
	var users []storage.User
	followed := map[storage.Pair]bool{}
	var edges []storage.Edge
	for id := storage.UserID(1); id <= storage.UserID(n); id++ {
		name := names[1+r.IntN(5)]
		if id%2 == 0 {
			name = "Sam"
		}
		if id%100 == 0 {
			name = names[0]
		}
		surname := fmt.Sprintf("Tak%d", r.IntN(5000))
		if id%1000 == 0 {
			surname = "Yılmaz"
		}
		if id%3 == 1 {
			name, surname = "山田", string([]rune{'一' + rune(r.IntN(5000)), '郎'})
			if id%1000 == 1 {
				surname = "太郎"
			}
			name, surname = name+surname, ""
		}
		users = append(users, storage.User{ID: id, Handle: fmt.Sprintf("u%d", id), Name: strings.TrimSpace(name + " " + surname), CreatedAt: apitest.Epoch})
		follow := func(to storage.UserID) {
			if p := (storage.Pair{From: id, To: to}); to != id && !followed[p] {
				followed[p] = true
				edges = append(edges, storage.Edge{From: id, To: to, Type: storage.Following, UpdateTime: apitest.Epoch + storage.Micros(r.IntN(1e9))})
			}
		}
		if id%16 == 4 {
			follow(1)
		}
		if id%5 < 2 {
			follow(2)
		}
		if id%100 < 2 {
			for range 30 {
				follow(storage.UserID(10 + r.IntN(n-10)))
			}
		}
	}
	for id := storage.UserID(3); id < 403; id++ {
		edges = append(edges, storage.Edge{From: 1, To: id * 100, Type: storage.Following, UpdateTime: apitest.Epoch + storage.Micros(id)})
	}
	for chunk := range chunks(edges, 5000) {
		apitest.Apply(b, store, chunk...)
	}
	for len(users) > 0 {
		some := min(1000, len(users))
		apitest.CreateUsers(b, store, users[:some]...)
		users = users[some:]
	}
}
