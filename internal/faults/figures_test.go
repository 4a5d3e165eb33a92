package faults_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/must"
	"kith/internal/testenv"
)

var (
	duration = flag.Duration("duration", 10*time.Second, "how long a benchmark writes, after a tenth of it to warm up")
	rate     = flag.Int("rate", 500, "follows per second of the lag benchmark")
)

// The graph of the benchmarks.
const (
	benchUsers  = 20_000
	connections = 16
)

// flushes are the settings of the servers: those of tests, and those with which a power cut loses nothing.
var flushes = []struct {
	name    string
	options []string
}{
	{"flush=2,0", []string{"--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0"}},
	{"flush=1,1", []string{"--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"}},
}

// payloads are payloads of a follow: with fields from the inverse side, and without.
var payloads = []struct{ name, text string }{
	{"forward", `{ changed user { id name } relationship { following followedAt } }`},
	{"inverse", `{ changed user { id name followerCount } relationship { following followedBy status } }`},
}

// BenchmarkFollows measures follows from 16 connections: first the bare transaction through
// database/sql, then the same through GraphQL in each mode. Both run on the same two servers with
// two databases each, with one gateway that also replicates.
//
//	go test ./internal/faults -run '^$' -bench Follows -benchtime 1x -timeout 30m
func BenchmarkFollows(b *testing.B) {
	for _, flush := range flushes {
		b.Run(flush.name, func(b *testing.B) {
			servers := privateServers(b, flush.options)
			b.Run("bare", func(b *testing.B) {
				d := prepare(b, servers, "binlog", benchUsers)
				measure(b, connections, d, nil, d.bareFollows(b))
			})
			for _, mode := range modes {
				d := prepare(b, servers, mode, benchUsers)
				l := d.lone(b)
				for _, payload := range payloads {
					b.Run(mode+"/"+payload.name, func(b *testing.B) {
						stale := measure(b, connections, d, l, d.follows(b, l, payload.text))
						b.ReportMetric(100*stale, "stale-%")
					})
				}
			}
			b.Run("binlog/forward, nobody replicates", func(b *testing.B) {
				d := prepare(b, servers, "binlog", benchUsers)
				l := d.lone(b, "--no-replicate")
				measure(b, connections, d, l, d.follows(b, l, payloads[0].text))
			})
		})
	}
}

// BenchmarkFollowMany measures followMany of 200 users whom the viewer does not follow yet.
func BenchmarkFollowMany(b *testing.B) {
	servers := privateServers(b, flushes[0].options)
	for _, mode := range modes {
		for _, n := range []int{1, connections} {
			b.Run(fmt.Sprintf("%s/%d", mode, n), func(b *testing.B) {
				d := prepare(b, servers, mode, benchUsers)
				l := d.lone(b)
				measure(b, n, d, l, d.followsOfMany(b, l))
			})
		}
	}
}

// BenchmarkLag measures, in the mode binlog under a steady rate of follows, how long it takes until
// the other user's shard shows the row. It looks every millisecond, for every tenth follow. The lag
// is measured from the gateway's clock reading before the transaction, and from the answer.
func BenchmarkLag(b *testing.B) {
	for _, flush := range flushes {
		b.Run(flush.name, func(b *testing.B) {
			d := prepare(b, privateServers(b, flush.options), "binlog", benchUsers)
			l := d.lone(b)
			for b.Loop() {
				d.steady(b, l)
			}
		})
	}
}

func privateServers(b *testing.B, options []string) testenv.Servers {
	options = append([]string{"--innodb-buffer-pool-size=512M", "--innodb-log-file-size=256M"}, options...)
	return testenv.Servers{testenv.MariaDB(b, options...), testenv.MariaDB(b, options...)}
}

// lone starts one gateway, which also replicates unless an argument forbids it.
func (d *deployment) lone(t testing.TB, more ...string) *life {
	n := d.serving("gateway", more...)
	n.start(t)
	l := n.now.Load()
	l.Until(t, "ready", func() bool { status, _ := l.gateway.Get(t, "/readyz"); return status == 200 })
	return l
}

// write does one write on a connection, and reports whether the answer was stale.
type write func(ctx context.Context) (stale bool, err error)

// measure makes connections write, each one write after the other. It reports the rate, the times,
// and the CPU time per write, and returns the share of stale answers. l may be nil.
func measure(b *testing.B, connections int, d *deployment, l *life, connect func(i int) write) (stale float64) {
	b.Helper()
	for b.Loop() {
		writes := make([]write, connections)
		for i := range writes {
			writes[i] = connect(i)
		}
		run(b, writes, *duration/10)
		began, before := time.Now(), d.used(b, l)
		times, late := run(b, writes, *duration)
		took := time.Since(began).Seconds()
		must.Least(b, "writes", len(times), 1)
		b.ReportMetric(float64(len(times))/took, "writes/s")
		for of, cpu := range d.used(b, l) {
			b.ReportMetric((cpu-before[of])*1e3/float64(len(times)), of+"-cpu-ms/write")
		}
		reportTimes(b, "", times)
		stale = float64(late) / float64(len(times))
	}
	b.ReportMetric(0, "ns/op") // hidden, because the load runs for a fixed time
	return stale
}

// used is the CPU time, in seconds, that the servers, the gateway, and this process, which makes
// the load, have used so far.
func (d *deployment) used(b *testing.B, l *life) map[string]float64 {
	b.Helper()
	used := map[string]float64{"load": processCPU(b, os.Getpid())}
	for _, s := range d.servers {
		used["database"] += processCPU(b, s.PID())
	}
	if l != nil {
		used["gateway"] = l.metric(b, "process_cpu_seconds_total", "")
	}
	return used
}

// processCPU is the CPU time of a process in seconds, from Linux's /proc. On other systems it is 0.
func processCPU(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before may contain blanks
	fields := strings.Fields(rest)
	user, errUser := strconv.Atoi(fields[11])
	system, errSystem := strconv.Atoi(fields[12])
	must.OK(b, errors.Join(errUser, errSystem))
	return float64(user+system) / 100 // USER_HZ is 100 for all programs
}

func run(b *testing.B, writes []write, d time.Duration) (times []time.Duration, late int) {
	b.Helper()
	ctx, end := b.Context(), time.Now().Add(d)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, w := range writes {
		wg.Go(func() {
			var mine []time.Duration
			staleOnes := 0
			for time.Now().Before(end) {
				began := time.Now()
				stale, err := w(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				mine = append(mine, time.Since(began))
				if stale {
					staleOnes++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			times, late = append(times, mine...), late+staleOnes
		})
	}
	wg.Wait()
	return times, late
}

func reportTimes(b *testing.B, of string, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2].Seconds()*1e3, of+"p50-ms")
	b.ReportMetric(times[len(times)*99/100].Seconds()*1e3, of+"p99-ms")
	b.ReportMetric(times[len(times)-1].Seconds()*1e3, of+"max-ms")
}

// pair draws two users.
func pair(r *rand.Rand) (from, to int64) {
	from, to = 1+r.Int64N(benchUsers), 1+r.Int64N(benchUsers-1)
	if to >= from {
		to++
	}
	return from, to
}

// follows is a follow through GraphQL.
func (d *deployment) follows(b *testing.B, l *life, payload string) func(int) write {
	query := mutation("follow", payload)
	return func(i int) write {
		c, r := d.client(b), rand.New(rand.NewPCG(rand.Uint64(), uint64(i)))
		for user := range int64(benchUsers) {
			c.tokens(user + 1) // signed before the clock runs
		}
		return func(ctx context.Context) (bool, error) {
			from, to := pair(r)
			a, err := c.ask(ctx, l.gateway.URL, from, "", query, map[string]any{"id": id(to)})
			return a.Extensions.Stale, failure(a, err)
		}
	}
}

// followsOfMany is a followMany of 200 users, each time by another viewer.
func (d *deployment) followsOfMany(b *testing.B, l *life) func(int) write {
	var mu sync.Mutex
	next := int64(0)
	return func(i int) write {
		c, r := d.client(b), rand.New(rand.NewPCG(rand.Uint64(), uint64(i)))
		return func(ctx context.Context) (bool, error) {
			mu.Lock()
			next++
			viewer := next
			mu.Unlock()
			ids := map[string]bool{}
			for len(ids) < 200 {
				if to := 1 + r.Int64N(benchUsers); to != viewer {
					ids[strconv.FormatInt(to, 10)] = true
				}
			}
			var list []string
			for to := range ids {
				list = append(list, to)
			}
			a, err := c.ask(ctx, l.gateway.URL, viewer, "", followMany, map[string]any{"ids": list})
			return a.Extensions.Stale, failure(a, err)
		}
	}
}

func failure(a answer, err error) error {
	if err == nil && len(a.Errors) > 0 {
		err = fmt.Errorf("%+v", a.Errors)
	}
	return err
}

// bareFollows is the transaction of a follow, and nothing else.
func (d *deployment) bareFollows(b *testing.B) func(int) write {
	var pools []*sql.DB
	for _, dsn := range d.dsns {
		db, err := sql.Open("mysql", dsn+"?interpolateParams=true&tx_isolation=%27READ-COMMITTED%27")
		must.OK(b, err)
		db.SetMaxIdleConns(connections)
		b.Cleanup(func() { _ = db.Close() })
		pools = append(pools, db)
	}
	return func(i int) write {
		r := rand.New(rand.NewPCG(rand.Uint64(), uint64(i)))
		return func(ctx context.Context) (bool, error) {
			from, to := pair(r)
			return false, bareFollow(ctx, pools[d.shardOf(from)], from, to)
		}
	}
}

func bareFollow(ctx context.Context, db *sql.DB, from, to int64) error {
	now := time.Now().UnixMicro()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var user, following, follower, version int64
	err = tx.QueryRowContext(ctx, `SELECT user_id, following_count, follower_count, version FROM user_counts WHERE user_id IN (?) ORDER BY user_id FOR UPDATE`, from).
		Scan(&user, &following, &follower, &version)
	if err != nil {
		return err
	}
	var kind int
	err = tx.QueryRowContext(ctx, `SELECT type FROM following WHERE from_user_id = ? AND to_user_id IN (?)`, from, to).Scan(&kind)
	if err == nil {
		return tx.Commit() // the user follows already
	}
	if err != sql.ErrNoRows {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO following (from_user_id, to_user_id, type, update_time) VALUES (?,?,1,?)
		ON DUPLICATE KEY UPDATE type = VALUES(type), update_time = VALUES(update_time)`, from, to, now); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO user_counts (user_id, following_count) VALUES (?,1)
		ON DUPLICATE KEY UPDATE following_count = following_count + VALUES(following_count), version = version + 1`, from); err != nil {
		return err
	}
	return tx.Commit()
}

// steady follows at the rate of the flag, and reports how late the inverse rows are.
func (d *deployment) steady(b *testing.B, l *life) {
	b.Helper()
	const workers = 2 * connections
	work := make(chan bool, *rate)
	var mu sync.Mutex
	var lags, behind []time.Duration
	var wg sync.WaitGroup
	for i := range workers {
		c, r := d.client(b), rand.New(rand.NewPCG(rand.Uint64(), uint64(i)))
		wg.Go(func() {
			for sample := range work {
				lag, after, err := d.lagOf(b.Context(), c, l, r, sample)
				if err != nil {
					b.Error(err)
					continue
				}
				if lag > 0 {
					mu.Lock()
					lags, behind = append(lags, lag), append(behind, after)
					mu.Unlock()
				}
			}
		})
	}
	began := time.Now()
	sent := 0
	for time.Since(began) < *duration {
		for due := int(time.Since(began).Seconds() * float64(*rate)); sent < due; sent++ {
			work <- sent%10 == 0
		}
		time.Sleep(time.Millisecond)
	}
	close(work)
	wg.Wait()
	b.ReportMetric(float64(sent)/time.Since(began).Seconds(), "writes/s")
	b.ReportMetric(0, "ns/op")
	must.Least(b, "lags", len(lags), 1)
	reportTimes(b, "", lags)
	reportTimes(b, "answered-", behind)
}

// lagOf follows somebody and, if wait is set, waits for the inverse row. It returns how long that
// took, from the clock reading and from the answer, or 0 if it did not wait.
func (d *deployment) lagOf(ctx context.Context, c *client, l *life, r *rand.Rand, wait bool) (lag, after time.Duration, err error) {
	from, to := pair(r)
	a, err := c.ask(ctx, l.gateway.URL, from, "", mutation("follow", lean), map[string]any{"id": id(to)})
	if err := failure(a, err); err != nil || !wait {
		return 0, 0, err
	}
	answered := time.Now()
	payload, err := a.followed()
	if err != nil || !payload.Changed {
		return 0, 0, err
	}
	version, err := versions(payload.token)
	if err != nil {
		return 0, 0, err
	}
	at := version[edge{from, to}]
	for ; ; time.Sleep(time.Millisecond) {
		var n int
		err := d.shards[d.shardOf(to)].QueryRowContext(ctx, `SELECT COUNT(*) FROM follower WHERE to_user_id = ? AND from_user_id = ? AND update_time >= ?`, to, from, at).Scan(&n)
		switch {
		case err != nil:
			return 0, 0, err
		case n > 0:
			return time.Since(time.UnixMicro(at)), time.Since(answered), nil
		case time.Since(answered) > patience:
			return 0, 0, fmt.Errorf("%d → %d is not in follower after %s", from, to, patience)
		}
	}
}
