package resolvers_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// BenchmarkFollow follows and unfollows through HTTP on MariaDB, 16 requests at once, without
// replication: it measures the cost of the request and its transaction.
func BenchmarkFollow(b *testing.B) {
	dsn := testenv.SharedMariaDB(b, 1).FreshDatabases(b, 1)[0]
	store := apitest.Open(b, sqlstore.Config{Location: "mysql:" + dsn, StatementTimeout: 30 * time.Second})
	const users = 500
	apitest.Users(b, store, users)
	api := apitest.New(b, store, apitest.Options{Redundancy: never{}})
	for name, payload := range map[string]string{
		"bare":    `changed`,
		"forward": `changed viewer { user { followingCount } } relationship { following } user { handle }`,
	} {
		b.Run(name, func(b *testing.B) {
			var n atomic.Int64
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					field := []string{"follow", "unfollow"}[n.Add(1)%2]
					viewer := storage.UserID(1 + rand.IntN(users/2))
					api.As(viewer).Ask(`mutation($id: ID!) { `+apitest.Call(field, "$id")+` { `+payload+` } }`,
						apitest.Vars{"id": fmt.Sprint(users/2 + 1 + rand.IntN(users/2))})
				}
			})
		})
	}
}
