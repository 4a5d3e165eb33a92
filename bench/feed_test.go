package bench_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/accounts/identity"
	"kith/bench"
	"kith/storage"
	"kith/storage/cache/localcache"
	"kith/storage/feed/recent"
	"kith/storage/sqlstore"
)

// BenchmarkFeed is a page of 20 posts with their authors, as the gateway's handler answers it from memory. Its
// readers are those of `kith bench feed`, among 10,000 users whose numbers of posts in 30 days are log-normal.
//
//	go test ./bench -run '^$' -bench Feed -benchmem -benchtime 2000x -cpuprofile cpu.out
func BenchmarkFeed(b *testing.B) {
	now := time.Now()
	graph := bench.NewGraph(10_000, 42)
	graph.Degree = 2
	feeds := bench.NewFeedGraph(graph, now, []int{50, 1000, 5000})
	store, err := sqlstore.Open(b.Context(), sqlstore.Config{Location: "sqlite:" + filepath.Join(b.TempDir(), "kith.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	fill(b, store, graph)
	for i := range feeds.Groups {
		var readers []storage.User
		for _, id := range feeds.Groups[i].IDs {
			readers = append(readers, storage.User{ID: id, Handle: "u" + id.String(), Name: "u" + id.String(), CreatedAt: 1, UpdatedAt: 1})
		}
		allDone(b, store.CreateUsers(b.Context(), readers))
	}
	allDone(b, store.Apply(b.Context(), storage.Forward, slices.Collect(feeds.ReaderEdges()), storage.IfNewer))
	floor := storage.MicrosOf(now.Add(-recent.Window))
	posts := recent.NewSince(64<<20, time.Now, floor)
	var rows []storage.PostRow
	for row := range feeds.Rows() {
		if row.At > floor {
			rows = append(rows, row)
			posts.Add(storage.PostAt{PostID: row.PostID, CreatedAt: row.At})
		}
	}
	slices.SortFunc(rows, func(a, b storage.PostRow) int { return a.PostID.Compare(b.PostID) }) // each author is one transaction
	for some := range slices.Chunk(rows, 2000) {
		allDone(b, store.RestorePosts(b.Context(), some))
	}
	cache := localcache.New(localcache.Config{Source: store, Rows: store, Bytes: 256 << 20})
	b.Cleanup(cache.Close)
	handler := handlerWith(b, store, cache, posts)
	for _, group := range feeds.Groups {
		ask := func(b *testing.B, reader int) {
			body := `{"query":"query Feed { viewer { feed(first: 20) { edges { node { id text createdAt author { id name } } } complete } } }"}`
			request := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			var answer bytes.Buffer
			recorder := httptest.NewRecorder()
			recorder.Body = &answer
			handler.ServeHTTP(recorder, request.WithContext(identity.With(request.Context(), identity.Viewer{ID: group.IDs[reader]})))
			if n := strings.Count(answer.String(), `"post_`); n != bench.FeedPageSize {
				b.Fatalf("%d posts: %.300s", n, answer.String())
			}
		}
		b.Run(fmt.Sprint(group.Followings, " followings"), func(b *testing.B) {
			for reader := range group.IDs { // three times, so that lists are kept as sets
				ask(b, reader)
				ask(b, reader)
				ask(b, reader)
			}
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				ask(b, i%len(group.IDs))
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

func allDone[V any](b *testing.B, results []storage.Result[V]) {
	b.Helper()
	for _, r := range results {
		if r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}
