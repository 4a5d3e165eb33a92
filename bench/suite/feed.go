package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/bench"
	"kith/bench/baseline"
	"kith/bench/report"
	"kith/storage"
	"kith/storage/sleep"
	"kith/storage/sqlstore"
)

// FeedConfig says what to measure of home feeds. Engines and Questions of the Config are not used: the
// engine is MariaDB with Redis, the questions are pages of feeds and q2.
type FeedConfig struct {
	Config
	Followings []int // of the readers, by group
	Followers  []int // of the authors whose posts are watched until others see them
	PerSecond  int   // posts by other users meanwhile
	Posts      int   // of each such author
	Active     int   // followers of each such author who have inboxes when their writes are counted, at most; 0: not counted
}

// RunFeed measures home feeds, beside a join and beside inboxes in Redis, both written by hand. It stops
// everything that it has started.
func RunFeed(ctx context.Context, c FeedConfig) (size report.Size, machine report.Machine, err error) {
	c.Engines = []string{report.MariaDB, report.MariaDBRedis}
	r := &feedRun{what: c, run: run{Config: c.Config, machine: describeMachine(), shards: 1}}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.openServers(ctx); err != nil {
		return size, r.machine, err
	}
	graph := bench.NewGraph(c.Graphs[0].Users, c.Seed)
	graph.Degree = max(1, c.Graphs[0].Edges/graph.Users)
	graph.Spread = c.Sonyflake
	r.graph = bench.NewFeedGraph(graph, time.Now(), c.Followings)
	size = report.Size{Users: graph.Users, Sonyflake: c.Sonyflake, Feeds: &report.Feeds{}}
	err = r.measureFeeds(ctx, &size)
	return size, r.machine, err
}

type feedRun struct {
	run
	what    FeedConfig
	graph   *bench.FeedGraph
	authors []author
	watcher storage.UserID // follows all of them

	followers int // the numbers of their followers begin here; the watcher follows in place of the first one
}

// author is an author whose posts are watched.
type author struct {
	id        storage.UserID
	followers int
}

func (r *feedRun) measureFeeds(ctx context.Context, into *report.Size) (err error) {
	location, err := r.makeFeeds(ctx, into)
	if err != nil {
		return err
	}
	if err := r.fillInboxes(ctx); err != nil {
		return err
	}
	join := &subject{engine: report.MariaDB, state: report.Baseline, location: location}
	inboxes := &subject{engine: report.MariaDBRedis, state: report.Inboxes, location: location}
	kith := &subject{engine: report.MariaDBRedis, state: report.Warm, location: location}
	hybrid := &subject{engine: report.MariaDBRedis, state: report.Hybrid, location: location}
	subjects := []*subject{join, inboxes, kith, hybrid}
	defer func() { err = errors.Join(err, stopAll(subjects)) }()
	for _, s := range subjects {
		if s.program, err = r.start(ctx, s, location); err != nil {
			return err
		}
	}
	if err := r.loaded(ctx, kith.program, into.Feeds); err != nil {
		return err
	}
	if err := r.inboxesBuilt(ctx, hybrid.program, into.Feeds); err != nil {
		return err
	}
	q2 := bench.QuestionByName("q2")
	if err := r.heat(ctx, kith, r.graph.Graph, q2); err != nil {
		return err
	}
	asked := []*subject{kith}
	if err := r.inRounds(ctx, asked, r.graph.Graph, func(*subject) bench.Workload { return q2 }, into); err != nil {
		return err
	}
	for i := range r.graph.Groups {
		pages, err := bench.NewFeedPages(r.graph, &r.graph.Groups[i], []byte(r.secret))
		if err != nil {
			return err
		}
		if err := r.inRounds(ctx, subjects, r.graph.Graph, func(*subject) bench.Workload { return pages }, into); err != nil {
			return err
		}
	}
	if into.Feeds.Seen, err = r.watch(ctx, kith); err != nil {
		return err
	}
	if into.Feeds.SeenHybrid, err = r.watch(ctx, hybrid); err != nil {
		return err
	}
	into.Feeds.PerSecond = r.what.PerSecond
	return r.countCopies(ctx, hybrid.program, into.Feeds.SeenHybrid)
}

// loaded waits until a gateway has the recent posts in memory, and reports what they take.
func (r *run) loaded(ctx context.Context, p *program, into *report.Feeds) error {
	for began := time.Now(); ; {
		posts, err := metric(ctx, p.admin, "kith_feed_posts")
		if err != nil {
			return err
		}
		window, err := metric(ctx, p.admin, "kith_feed_window_seconds")
		if err != nil {
			return err
		}
		if posts > 0 && window > 0 {
			bytes, err := metric(ctx, p.admin, "kith_feed_bytes")
			into.Recent, into.RecentBytes = int(posts), int64(bytes)
			r.Log("recent posts: %d in %d bytes", into.Recent, into.RecentBytes)
			return err
		}
		if time.Since(began) > time.Minute {
			return errors.New("the gateway has not loaded the recent posts in a minute")
		}
		if err := sleep.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// makeFeeds makes a store that holds the graph, the posts, the readers, and authors with the configured
// numbers of followers.
func (r *feedRun) makeFeeds(ctx context.Context, into *report.Size) (location string, err error) {
	if location, err = r.emptyStore(ctx, report.MariaDB); err != nil {
		return "", err
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{Location: location})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if into.Edges, err = Fill(ctx, store, r.graph.Graph); err != nil {
		return "", err
	}
	last := r.graph.Users
	for _, group := range r.graph.Groups {
		last += len(group.IDs)
	}
	beside := last + 1 // the watcher, and the authors
	r.watcher = r.graph.ID(beside)
	for i, n := range r.what.Followers {
		r.authors = append(r.authors, author{r.graph.ID(beside + 1 + i), n})
	}
	if err := createUsers(ctx, store, r.graph.Graph, r.graph.Users+1, beside+len(r.authors)); err != nil {
		return "", err
	}
	if _, err := importEdges(ctx, store, r.graph.ReaderEdges()); err != nil {
		return "", err
	}
	first := beside + len(r.authors) + 1 // followers of the authors
	r.followers = first
	if _, err := importEdges(ctx, store, func(yield func(storage.Edge) bool) {
		for _, a := range r.authors {
			for i := range a.followers {
				follower := r.graph.ID(first + i)
				if i == 0 {
					follower = r.watcher
				}
				if !yield(storage.Edge{From: follower, To: a.id, Type: storage.Following, UpdateTime: 1_750_000_000_000_000 + storage.Micros(i)}) {
					return
				}
			}
		}
	}); err != nil {
		return "", err
	}
	posts, err := restorePosts(ctx, store, r.graph)
	if err != nil {
		return "", err
	}
	into.Feeds.Posts = posts
	r.Log("%d users, %d follows and %d posts loaded", r.graph.Users, into.Edges, posts)
	return location, r.analyze(ctx, location)
}

func restorePosts(ctx context.Context, store *sqlstore.Store, graph *bench.FeedGraph) (posts int, err error) {
	const atOnce = 2000
	all := slices.SortedFunc(graph.Rows(), func(a, b storage.PostRow) int { return a.PostID.Compare(b.PostID) }) // an author is a transaction
	for rows := range slices.Chunk(all, atOnce) {
		for _, restored := range store.RestorePosts(ctx, rows) {
			if restored.Err != nil {
				return posts, restored.Err
			}
		}
		posts += len(rows)
	}
	return posts, nil
}

// fillInboxes puts into Redis what a program that pushes posts would have put there: the newest 800 posts
// for each reader.
func (r *feedRun) fillInboxes(ctx context.Context) error {
	options, err := redis.ParseURL(r.redisURL)
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	const capped = 800
	for i := range r.graph.Groups {
		group := &r.graph.Groups[i]
		for reader, id := range group.IDs {
			var members []redis.Z
			for _, p := range r.graph.Newest(group, reader, capped) {
				members = append(members, redis.Z{Score: float64(p.At), Member: p.Author.String() + ":" + strconv.FormatInt(p.Number, 10)})
			}
			if len(members) == 0 {
				continue
			}
			if err := client.ZAdd(ctx, baseline.InboxKey(int64(id)), members...).Err(); err != nil {
				return fmt.Errorf("fill inboxes: %w", err)
			}
		}
	}
	return nil
}
