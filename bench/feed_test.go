package bench_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/identity"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/localcache"
	"kith/storage/recent"
	"kith/storage/sqlstore"
)

// feedJoin is a home feed as one writes it by hand: the posts of those whom one follows, with their
// authors. The optimizer chooses the plan.
const feedJoin = `
SELECT p.author_id, p.post_id, p.text, p.media, p.created_at, c.comment_count, u.handle, u.name, u.avatar_url
FROM following f
JOIN post p ON p.author_id = f.to_user_id
JOIN post_counts c ON c.author_id = p.author_id AND c.post_id = p.post_id
JOIN users u ON u.user_id = p.author_id
WHERE f.from_user_id = ? AND f.type = 1 AND p.state = 0
ORDER BY p.created_at DESC, p.post_id DESC LIMIT 20`

// feedOfInbox reads the posts that an inbox names, with their authors: a primary key each.
const feedOfInbox = `
SELECT p.author_id, p.post_id, p.text, p.media, p.created_at, c.comment_count, u.handle, u.name, u.avatar_url
FROM post p
JOIN post_counts c ON c.author_id = p.author_id AND c.post_id = p.post_id
JOIN users u ON u.user_id = p.author_id
WHERE (p.author_id, p.post_id) IN (?) AND p.state = 0
ORDER BY p.created_at DESC, p.post_id DESC`

// BenchmarkFeed compares a page of 20 posts with their authors, as the gateway's handler answers it with what it has
// in memory, with the same by a join written by hand, and with an inbox of the viewer in Redis whose first 20 posts
// are read with one statement, on MariaDB on one server: 20,000 users with 10 posts each, 7 of them of the last week.
//
//	go test ./bench -run '^$' -bench Feed -benchtime 300x
func BenchmarkFeed(b *testing.B) {
	const users, posts = 20_000, 10
	dsn := testenv.SharedMariaDB(b, 1).FreshDatabases(b, 1)[0]
	store, err := sqlstore.Open(b.Context(), sqlstore.Config{Location: "mysql:" + dsn, StatementTimeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	follows := map[storage.UserID]int{1: 50, 2: 1000, 3: 5000}
	fillFeeds(b, store, db, users, posts, follows)

	cache := localcache.New(localcache.Config{Source: store, Rows: store, Bytes: 256 << 20})
	b.Cleanup(cache.Close)
	f := &recent.Follower{Posts: recent.New(64<<20, time.Now), Source: store, Hub: events.NewHub(nil), Logger: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(b.Context())
	var following sync.WaitGroup
	began := time.Now()
	following.Go(f.Start(ctx))
	f.Hearing(true)
	b.Cleanup(func() { stop(); following.Wait() })
	for f.Posts.Len() == 0 {
		time.Sleep(time.Millisecond)
	}
	b.Logf("%d recent posts loaded in %s: %.1f bytes each", f.Posts.Len(), time.Since(began), float64(f.Posts.Bytes())/float64(f.Posts.Len()))
	handler := handlerWith(b, store, cache, f.Posts)

	address, err := redis.ParseURL(testenv.Redis(b).URL())
	if err != nil {
		b.Fatal(err)
	}
	inboxes := redis.NewClient(address)
	b.Cleanup(func() { _ = inboxes.Close() })
	for _, viewer := range []storage.UserID{1, 2, 3} {
		b.Run(fmt.Sprintf("%d followings/Kith", follows[viewer]), func(b *testing.B) {
			ask := func() {
				body := `{"query":"{ viewer { feed(first: 20) { nodes { id text media { url kind } createdAt commentCount author { handle name avatarUrl } } pageInfo { hasNextPage endCursor } } } }"}`
				request := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(body))
				request.Header.Set("Content-Type", "application/json")
				var answer bytes.Buffer
				recorder := httptest.NewRecorder()
				recorder.Body = &answer
				handler.ServeHTTP(recorder, request.WithContext(identity.With(request.Context(), identity.Viewer{ID: viewer})))
				if n := strings.Count(answer.String(), `"post_`); n != 20 {
					b.Fatalf("%d posts: %.300s", n, answer.String())
				}
			}
			ask()
			timed(b, ask)
		})
		fillInbox(b, inboxes, db, viewer)
		for _, way := range []string{"join", "inbox"} {
			b.Run(fmt.Sprintf("%d followings/%s", follows[viewer], way), func(b *testing.B) {
				ask := func() {
					text, args := feedJoin, []any{int64(viewer)}
					if way == "inbox" {
						text, args = inboxStatement(b, inboxes, viewer)
					}
					rows, err := db.QueryContext(b.Context(), text, args...)
					if err != nil {
						b.Fatal(err)
					}
					n := 0
					for ; rows.Next(); n++ {
						var author, post, at, comments int64
						var text, media, handle, name, avatar sql.NullString
						if err := rows.Scan(&author, &post, &text, &media, &at, &comments, &handle, &name, &avatar); err != nil {
							b.Fatal(err)
						}
					}
					if err := rows.Err(); err != nil || n != 20 {
						b.Fatal(n, err)
					}
				}
				ask()
				timed(b, ask)
			})
		}
	}
}

func inboxOf(viewer storage.UserID) string { return "inbox:" + viewer.String() }

// fillInbox puts the newest 1,000 posts of those whom a user follows into its inbox.
func fillInbox(b *testing.B, inboxes *redis.Client, db *sql.DB, viewer storage.UserID) {
	b.Helper()
	rows, err := db.QueryContext(b.Context(), strings.Replace(feedJoin, "LIMIT 20", "LIMIT 1000", 1), int64(viewer))
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var author, post, at, comments int64
		var text, media, handle, name, avatar sql.NullString
		if err := rows.Scan(&author, &post, &text, &media, &at, &comments, &handle, &name, &avatar); err != nil {
			b.Fatal(err)
		}
		entry := redis.Z{Score: float64(at), Member: fmt.Sprintf("%d_%d", author, post)}
		if err := inboxes.ZAdd(b.Context(), inboxOf(viewer), entry).Err(); err != nil {
			b.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
}

// inboxStatement reads the first 20 entries of an inbox, and is the statement that reads their posts.
func inboxStatement(b *testing.B, inboxes *redis.Client, viewer storage.UserID) (text string, args []any) {
	entries, err := inboxes.ZRangeArgs(b.Context(), redis.ZRangeArgs{Key: inboxOf(viewer), Start: 0, Stop: 19, Rev: true}).Result()
	if err != nil {
		b.Fatal(err)
	}
	for _, entry := range entries {
		var author, post int64
		if _, err := fmt.Sscanf(entry, "%d_%d", &author, &post); err != nil {
			b.Fatal(err)
		}
		args = append(args, author, post)
	}
	return strings.Replace(feedOfInbox, "IN (?)", "IN ((?, ?)"+strings.Repeat(", (?, ?)", len(entries)-1)+")", 1), args
}

// timed reports the median and the 99th percentile.
func timed(b *testing.B, ask func()) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		ask()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// fillFeeds makes users who post evenly over ten days, and some who follow many of them.
func fillFeeds(b *testing.B, store storage.Store, db *sql.DB, users, posts int, follows map[storage.UserID]int) {
	b.Helper()
	all := make([]storage.User, users)
	for i := range all {
		id := storage.UserID(i + 1)
		all[i] = storage.User{ID: id, Handle: "u" + id.String(), Name: "u" + id.String(), AvatarURL: "https://example.org/a.png", CreatedAt: 1, UpdatedAt: 1}
	}
	for _, r := range store.CreateUsers(b.Context(), all) {
		if r.Err != nil {
			b.Fatal(r.Err)
		}
	}
	var edges []storage.Edge
	for viewer, n := range follows {
		for i := range n {
			edges = append(edges, storage.Edge{From: viewer, To: storage.UserID(10 + i*((users-10)/n)), Type: storage.Following, UpdateTime: storage.Micros(i + 1)})
		}
	}
	for _, r := range store.Apply(b.Context(), storage.Forward, edges, storage.IfNewer) {
		if r.Err != nil {
			b.Fatal(r.Err)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	span := int64(10*24*time.Hour) / 1000
	first := time.Now().UnixMicro() - span
	text := strings.Repeat("word ", 30)
	const rows = 1000
	for n := 0; n < users*posts; n += rows {
		var post, counts []string
		for i := range rows {
			at := first + span*int64(n+i)/int64(users*posts)
			number := at/10_000<<24 | int64(n+i)&0xffff
			author := 1 + random.IntN(users)
			post = append(post, fmt.Sprintf("(%d,%d,'%d','%s','[]',%d)", author, number, number, text, at))
			counts = append(counts, fmt.Sprintf("(%d,%d,0,1)", author, number))
		}
		for _, statement := range []string{
			"INSERT INTO post (author_id, post_id, client_key, text, media, created_at) VALUES " + strings.Join(post, ","),
			"INSERT INTO post_counts (author_id, post_id, comment_count, version) VALUES " + strings.Join(counts, ","),
		} {
			if _, err := db.ExecContext(b.Context(), statement); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, table := range []string{"post", "post_counts", "following", "users"} {
		if _, err := db.ExecContext(b.Context(), "ANALYZE TABLE "+table); err != nil {
			b.Fatal(err)
		}
	}
}
