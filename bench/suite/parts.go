package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"kith/bench"
	"kith/bench/private"
	"kith/bench/report"
	"kith/storage"
	"kith/storage/sleep"
	"kith/storage/sqlstore"
)

// Parts of a store that can be measured beside the questions.
const (
	PartBytes   = "bytes"   // the tables' bytes after the import, and after inserts in random order; packed lists
	PartFollows = "follows" // follows through the gateways
	PartHits    = "hits"    // what a gateway has in memory when users are asked for by Zipf's law
	PartDrain   = "drain"   // how fast a backlog of follows is replicated from the binlog; MariaDB only
	PartMove    = "move"    // how fast rows move to another database
)

// Parts are all of them.
var Parts = []string{PartBytes, PartFollows, PartHits, PartDrain, PartMove}

func (r *run) wants(part string) bool { return slices.Contains(r.Parts, part) }

// measureGateways measures what gateways that are running use at rest, and how fast they write.
func (r *run) measureGateways(ctx context.Context, subjects []*subject, graph *bench.Graph, store *report.Store, into *report.Size) (err error) {
	subjects = slices.DeleteFunc(slices.Clone(subjects), func(s *subject) bool { return s.state == report.Baseline })
	if len(r.Parts) == 0 || len(subjects) == 0 {
		return nil
	}
	if store.Engine != report.SQLite && store.Rest == nil {
		if store.Rest, err = r.atRest(ctx, len(subjects)); err != nil {
			return err
		}
	}
	if !r.wants(PartFollows) {
		return nil
	}
	follows, err := bench.NewFollows([]byte(r.secret))
	if err != nil {
		return err
	}
	return r.inRounds(ctx, subjects, graph, func(*subject) bench.Workload { return follows }, into)
}

// measureParts measures the parts that must not be disturbed by gateways.
func (r *run) measureParts(ctx context.Context, location string, graph *bench.Graph, store *report.Store) (err error) {
	if r.wants(PartHits) {
		if err := r.measureHits(ctx, location, graph, store); err != nil {
			return err
		}
	}
	if r.wants(PartDrain) && store.Engine != report.SQLite {
		if store.Drain, err = r.drain(ctx, graph); err != nil {
			return err
		}
	}
	if r.wants(PartMove) {
		store.Move, err = r.move(ctx, location, store)
	}
	return err
}

// restTime is how long gateways at rest are watched: each asks its shards once a second.
const restTime = 3 * time.Second

// atRest counts the connections that gateways have open, and the statements that they send to the
// server without requests.
func (r *run) atRest(ctx context.Context, gateways int) (*report.Rest, error) {
	before, err := r.serverStatus(ctx, "Questions")
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := sleep.For(ctx, restTime); err != nil {
		return nil, err
	}
	after, err := r.serverStatus(ctx, "Questions")
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	open, err := r.serverStatus(ctx, "Threads_connected")
	if err != nil {
		return nil, err
	}
	rest := &report.Rest{Gateways: gateways, Connections: open - 1, PerSecond: float64(after-before) / took.Seconds()}
	r.Log("at rest: %d connections of %d gateways, %.1f statements/s", rest.Connections, gateways, rest.PerSecond)
	return rest, nil
}

// measureHits asks gateways with the configured sizes of memory for users by Zipf's law.
func (r *run) measureHits(ctx context.Context, location string, graph *bench.Graph, store *report.Store) error {
	for _, bytes := range r.CacheBytes {
		for _, name := range []string{"q1", "q2"} {
			hits, err := r.hitsOf(ctx, location, graph, store.Engine, bench.QuestionByName(name), bytes)
			if err != nil {
				return err
			}
			store.Hits = append(store.Hits, hits)
		}
	}
	return nil
}

func (r *run) hitsOf(ctx context.Context, location string, graph *bench.Graph, engine string, q *bench.Question, bytes int64) (hits report.Hits, err error) {
	popular, err := bench.NewPopular(q, graph, r.Zipf)
	if err != nil {
		return hits, err
	}
	s := &subject{engine: engine, state: report.Warm, cacheBytes: bytes}
	if s.program, err = r.start(ctx, s, location); err != nil {
		return hits, err
	}
	defer func() { err = errors.Join(err, s.program.Stop()) }()
	load := r.load(s, graph)
	load.Warmup, load.Duration = r.HitsWarmup, r.Duration*time.Duration(r.Rounds)
	var result bench.Result
	for tries := 0; tries < 3 && (tries == 0 || result.HitRate() <= 0); tries++ { // in a short time on a busy machine no key, or no key twice, may be looked up
		if result, err = load.Run(ctx, popular); err == nil {
			err = result.Error
		}
		if err != nil {
			return hits, err
		}
	}
	f := report.FiguresOf(result)
	hits = report.Hits{CacheBytes: bytes, Question: q.Name, Shape: r.Zipf, Share: result.HitRate(), PerSecond: f.PerSecond, P50: f.P50, P99: f.P99}
	pages := s.program.admin
	entries, errEntries := metric(ctx, pages, "kith_cache_entries")
	kept, errBytes := metric(ctx, pages, "kith_cache_bytes")
	hits.Entries, hits.Bytes = int(entries), int64(kept)
	r.Log("%s, %s by Zipf's law: of %d bytes %.1f %% of the keys are in memory, %.0f/s", s.name(), q.Name, bytes, 100*hits.Share, hits.PerSecond)
	return hits, errors.Join(errEntries, errBytes)
}

// move splits the last shard: the upper half of its buckets goes to a database that is added to the
// store. Fewer buckets would give no rate: a move reads the whole shard.
func (r *run) move(ctx context.Context, location string, of *report.Store) (_ *report.Move, err error) {
	address := r.path(r.nextName() + ".db")
	if of.Engine != report.SQLite {
		name := r.nextName()
		if err := private.Execute(ctx, r.dsn(""), "CREATE DATABASE "+name); err != nil {
			return nil, err
		}
		r.databases, address = append(r.databases, name), r.dsn(name)
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{Location: location})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	from := store.Shards() - 1
	owned := store.ShardsStatus()[from].Buckets[0]
	to, err := store.AddShard(ctx, address)
	if err != nil {
		return nil, err
	}
	plan := sqlstore.Move{Buckets: storage.BucketRange{First: owned.First + (owned.Len()+1)/2, Last: owned.Last}, From: from, To: to}
	const keep = 2 * time.Second
	done, err := store.Move(ctx, plan, sqlstore.MoveConfig{Token: r.token, Load: sleep.Throttle{Load: 1}, Keep: keep})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", plan, err)
	}
	moved := &report.Move{
		Rows: done.Rows, PerSecond: float64(done.Rows) / (done.Took - keep).Seconds(), Waited: done.Waited.Seconds() * 1e3,
	}
	r.Log("%s: %s: %d rows, %.0f/s", of.Engine, plan, moved.Rows, moved.PerSecond)
	return moved, nil
}

// serverStatus reads a counter of MariaDB.
func (r *run) serverStatus(ctx context.Context, name string) (int, error) {
	var text string
	err := r.query(ctx, r.dsn(""), "SHOW GLOBAL STATUS LIKE '"+name+"'", func(scan func(...any) error) error { return scan(&name, &text) })
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}
