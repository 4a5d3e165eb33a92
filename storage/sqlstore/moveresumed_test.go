package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
	"kith/storage/sqlstore/internal/db"
)

// A few buckets are moved in small pages, and moved back. The rows of all other buckets stay where they are.
func TestAFewBucketsMove(t *testing.T) {
	grow(t, 200, func(g *grower) {
		t, ctx := g.t, g.t.Context()
		g.preload(6)
		to, err := g.mover.AddShard(ctx, g.add)
		must.OK(t, err)
		for _, plan := range []sqlstore.Move{
			{Buckets: storage.BucketRange{First: 100, Last: 227}, From: 0, To: to},
			{Buckets: storage.BucketRange{First: 130, Last: 150}, From: to, To: 0},
		} {
			before := g.rows(plan)
			report, err := g.mover.Move(ctx, plan, sqlstore.MoveConfig{Token: "test", Page: 3, Keep: time.Millisecond})
			must.OK(t, err)
			check.That(t, report.Repaired == 0 && report.Rows == before && report.Compared == before && report.Removed == before, "%+v, want %d rows", report, before)
		}
		g.checkRows()
	})
}

// A move reads past the rows of users of other buckets, on both shards, however many they are: one statement that read them all
// would not end in time.
func TestAMoveDoesNotReadTheFollowersOfOthers(t *testing.T) {
	testenv.NotOn(t, "a store on TiDB does not move", "tidb")
	const stays, followers = 30, 50_000
	server := testenv.MariaDB(t) // no other test's reads are counted
	for i, where := range []string{"from", "to"} {
		t.Run(where, func(t *testing.T) {
			shards := [...]string{"kith_from_" + where, "kith_to_" + where}
			name := shards[i]
			g := newGrower(t, "mysql:"+server.CreateDatabase(t, shards[0]), server.CreateDatabase(t, shards[1]), 40)
			to, err := g.mover.AddShard(t.Context(), g.add)
			must.OK(t, err)
			at := storage.UserID(stays).Bucket()
			cfg := sqlstore.MoveConfig{Token: "test", Keep: time.Millisecond}
			if i == to {
				_, err = g.mover.Move(t.Context(), sqlstore.Move{Buckets: storage.BucketRange{First: at, Last: at}, From: 0, To: to}, cfg)
				must.OK(t, err)
			}
			server.Exec(t, fmt.Sprintf("INSERT INTO %s.follower VALUES (%d, 100, 1, 100)", name, stays))
			for n := 1; n < followers; n *= 2 {
				server.Exec(t, fmt.Sprintf("INSERT INTO %s.follower SELECT %d, from_user_id + %d, 1, 100 FROM %[1]s.follower WHERE to_user_id = %[2]d AND from_user_id >= 100", name, stays, n))
			}
			before, _ := handlerReads(t, server.DSN(name))
			_, err = g.mover.Move(t.Context(), sqlstore.Move{Buckets: storage.BucketRange{First: 0, Last: at - 1}, From: 0, To: to}, cfg)
			must.OK(t, err)
			after, _ := handlerReads(t, server.DSN(name))
			check.Most(t, "rows read", after-before, followers)
		})
	}
}

// rows returns how many rows a move is about to copy, of users, handles and follows.
func (g *grower) rows(plan sqlstore.Move) (n int64) {
	address := g.mover.Addresses()[plan.From]
	for table, owner := range map[string]string{"users": "user_id", "user_words": "user_id", "user_counts": "user_id", "following": "from_user_id", "follower": "to_user_id"} {
		for _, id := range g.owners(address, "SELECT "+owner+" FROM "+table) {
			if plan.Buckets.Contains(id.Bucket()) {
				n++
			}
		}
	}
	for handle := range g.users {
		if plan.Buckets.Contains(storage.BucketOfHandle(fmt.Sprintf("user%d", handle+1))) {
			n++
		}
	}
	return n
}

// A move beside writers who are as fast as it says so, and goes on when they are slower.
func TestAMoveThatStaysBehindEnds(t *testing.T) {
	grow(t, 120, func(g *grower) {
		t, ctx := g.t, g.t.Context()
		g.preload(6)
		to, err := g.mover.AddShard(ctx, g.add)
		must.OK(t, err)
		plan, shard := half(0, to), connect(g.t, g.mover.Addresses()[0])
		cfg := sqlstore.MoveConfig{Token: "test", Keep: time.Millisecond, Patience: 50 * time.Millisecond, OnProgress: func(p sqlstore.MoveProgress) {
			if p.Phase == "switching" {
				const more = `INSERT INTO kith_moved_rows (kind, owner, peer, handle) SELECT 6, a.user_id, 0, '' FROM users a CROSS JOIN users b LIMIT 12000`
				_, err := shard.ExecContext(ctx, more)
				check.That(t, err == nil, "%v", err)
			}
		}}
		_, err = g.mover.Move(ctx, plan, cfg)
		must.That(t, err != nil && strings.Contains(err.Error(), "rows are written as fast as they are copied"), "beside fast writers: %v", err)
		cfg.OnProgress = nil
		_, err = g.mover.Move(ctx, plan, cfg)
		must.OK(t, err)
		g.checkRows()
	})
}

// A move beside fast writers compares only once it has copied what is noted, and goes on to copy that while it compares: each
// page that differs is looked up among all notes.
func TestAMoveComparesBesideFewNotes(t *testing.T) {
	grow(t, 120, func(g *grower) {
		t, ctx := g.t, g.t.Context()
		g.preload(6)
		to, err := g.mover.AddShard(ctx, g.add)
		must.OK(t, err)
		shard := connect(g.t, g.mover.Addresses()[0])
		write := func() {
			const more = `INSERT INTO kith_moved_rows (kind, owner, peer, handle) SELECT 6, a.user_id, 0, '' FROM users a CROSS JOIN users b LIMIT 12000`
			_, err := shard.ExecContext(ctx, more)
			check.That(t, err == nil, "%v", err)
		}
		noted := func(when string) {
			var n int
			err := shard.QueryRowContext(ctx, "SELECT COUNT(*) FROM kith_moved_rows").Scan(&n)
			check.That(t, err == nil && n == 0, "%s: %d rows are noted (%v)", when, n, err)
		}
		compared := false
		_, err = g.mover.Move(ctx, half(0, to), sqlstore.MoveConfig{Token: "test", Keep: time.Millisecond, Step: func(step string) {
			if step == "copy comment" {
				write()
			}
		}, OnProgress: func(p sqlstore.MoveProgress) {
			switch {
			case p.Phase != "comparing":
			case p.Table == "users" && !compared:
				noted("at the first page")
				write()
				compared = true
			case p.Table == "comment":
				noted("at the last page")
			}
		}})
		must.OK(t, err)
		g.checkRows()
	})
}

// A move that is cut off in the middle of a table continues there, and copies no row twice, except for rows
// that have been written in between.
func TestAMoveGoesOnWhereItWas(t *testing.T) {
	grow(t, 60, func(g *grower) {
		t, ctx := g.t, g.t.Context()
		g.preload(6)
		to, err := g.mover.AddShard(ctx, g.add)
		must.OK(t, err)
		const page = 10
		plan := half(0, to)
		all, copied, cuts := g.rows(plan), int64(0), 0
		for {
			limited, cut := context.WithCancel(ctx)
			report, err := g.mover.Move(limited, plan, sqlstore.MoveConfig{Token: fmt.Sprint(cuts), Page: page, Keep: time.Millisecond, OnProgress: func(p sqlstore.MoveProgress) {
				if p.Phase == "copying" && p.Rows > 5*page {
					cut()
				}
			}})
			cut()
			copied += report.Rows
			if err == nil {
				check.That(t, report.Repaired == 0, "%+v", report)
				break
			}
			cuts++
			must.That(t, errors.Is(err, context.Canceled) && report.Rows > 5*page && cuts <= 30, "try %d: %+v, %v", cuts, report, err)
			from, peer := storage.UserID(1+cuts%g.users), storage.UserID(1000+cuts)
			changed := g.mover.ChangeEdges(ctx, storage.Forward, from, []storage.EdgeChange{{To: peer, Type: storage.Following, At: 7}}, storage.ChangeOptions{Inverse: true})[0]
			must.OK(t, changed.Err)
			g.acknowledged.Store(storage.Pair{From: from, To: peer}, storage.Following)
		}
		// A follow makes three rows at most: on both sides, and the counts of a user who had none.
		most := all + 3*int64(cuts)
		check.That(t, cuts >= 4 && copied >= all && copied <= most, "%d rows have been copied in %d tries, not %d to %d", copied, cuts+1, all, most)
		g.checkRows()
	})
}

// The rows stay for as long as they are to stay by the clock of the one who removes them: that of who decided the move may be behind.
func TestRowsStayWhateverTheClockOfTheMover(t *testing.T) {
	grow(t, 10, func(g *grower) {
		to, err := g.mover.AddShard(g.t.Context(), g.add)
		must.OK(g.t, err)
		const keep = 300 * time.Millisecond
		var left, removed time.Time
		_, err = g.mover.Move(g.t.Context(), half(0, to), sqlstore.MoveConfig{Token: "test", Keep: keep, Step: func(step string) {
			switch step {
			case "wait": // it is decided
				left = time.Now()
				for _, shard := range g.mover.Addresses() {
					execOn(g.t, shard, "UPDATE kith_buckets SET changed_at = changed_at - 3600000000 WHERE state <> 0")
				}
			case "remove":
				removed = time.Now()
			}
		}})
		stayed := removed.Sub(left)
		check.That(g.t, err == nil && stayed >= keep, "they stayed for %s, %v", stayed, err)
	})
}

// The shard that gets the buckets is restored to a moment in the middle of the move: it lacks rows that the mover knows to be there. The move
// begins again, and opens no bucket with a part of its rows.
func TestAMoveWhoseNewShardIsRestored(t *testing.T) {
	for _, restored := range []struct{ to, at string }{
		{"copy following", "open"}, // it is decided
		{"close", "open"},          // the last rows are missing
		{"copy following", "keep"}, // it is open
		{"begin", "keep"},          // the shard does not know of the move
		{"compare", "close"},       // rows that were noted and copied are not compared again
	} {
		t.Run(fmt.Sprintf("to %s at %s", restored.to, restored.at), func(t *testing.T) {
			grow(t, 60, func(g *grower) {
				t, ctx := g.t, g.t.Context()
				g.preload(6)
				to, err := g.mover.AddShard(ctx, g.add)
				must.OK(t, err)
				var restore func()
				for try := 0; ; try++ {
					_, err := g.mover.Move(ctx, half(0, to), sqlstore.MoveConfig{Token: fmt.Sprint(try), Page: 10, Keep: time.Millisecond, Step: func(step string) {
						switch {
						case step == restored.to && restore == nil:
							restore = backUp(t, g.mover.Addresses()[to])
							g.follow(storage.Pair{From: 1, To: 2}, storage.None)
							for user := range storage.UserID(60) {
								g.follow(storage.Pair{From: user + 1, To: 1000}, storage.Following)
							}
						case step == restored.at && try == 0:
							restore()
							operator := open(t, g.location)
							must.OK(t, operator.Readmit(ctx, to))
							g.checkEdges(operator)
						}
					}})
					if err == nil {
						break
					}
					must.That(t, (errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrLayout)) && try < 2, "try %d: %v", try, err)
				}
				g.checkRows()
			})
		})
	}
}

// follow makes or ends a follow on both sides.
func (g *grower) follow(p storage.Pair, kind storage.EdgeType) {
	g.t.Helper()
	r := g.mover.ChangeEdges(g.t.Context(), storage.Forward, p.From, []storage.EdgeChange{{To: p.To, Type: kind, At: storage.MicrosOf(time.Now())}}, storage.ChangeOptions{})[0]
	must.OK(g.t, r.Err)
	must.All(g.t, g.mover.Apply(g.t.Context(), storage.Inverse, []storage.Edge{r.Value.Row}, storage.IfNewer))
	g.acknowledged.Store(p, kind)
}

// backUp keeps the rows of a shard as they are. restore puts them back, and the shard is readmitted.
func backUp(t *testing.T, address string) (restore func()) {
	columns := map[string]string{"kith_buckets": "*", "kith_copied": "*", "kith_mover": "*"}
	for _, t := range db.Tables {
		columns[t.Name] = strings.Join(t.All(), ", ") // others are generated
	}
	var texts []string
	for name, of := range columns {
		execOn(t, address, fmt.Sprintf("CREATE TABLE backup_%s AS SELECT %s FROM %[1]s", name, of))
		into := strings.TrimSuffix(name+" ("+of+")", " (*)")
		texts = append(texts, "DELETE FROM "+name, fmt.Sprintf("INSERT INTO %s SELECT * FROM backup_%s", into, name))
	}
	return func() {
		for _, text := range append(texts, "UPDATE kith_epoch SET epoch = epoch + 1000000") {
			execOn(t, address, text)
		}
	}
}
