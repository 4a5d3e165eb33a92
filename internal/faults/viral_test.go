package faults_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/replication"
	"kith/storage"
	"kith/storage/sqlstore"
)

// These are the viral account, the ordinary users, and the users who come to follow.
const (
	viralUser      = int64(1)
	viralOthers    = 20_000 // users 2 …
	viralFollowers = 120_000
)

// BenchmarkViral has 1,000 users a second follow either one account or each another user, in turn.
// At the same time 100 other pairs a second follow each other, and 200 pages a second are read
// through a gateway with its caches on. The difference between the two is what the account costs
// the other users. Times are measured from when a request was due.
//
//	go test ./internal/faults -run '^$' -bench Viral -benchtime 1x -duration 6s -timeout 30m
func BenchmarkViral(b *testing.B) {
	for _, of := range []struct {
		mode   string
		shards int
	}{{"binlog", 2}, {"sync", 1}, {"sync", 2}} {
		b.Run(fmt.Sprintf("%s/%d", of.mode, of.shards), func(b *testing.B) {
			for b.Loop() {
				server := testenv.MariaDB(b, "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=256M")
				v := goViral(b, testenv.Servers{server}, of.mode, of.shards, viralOthers+viralFollowers)
				table := &strings.Builder{}
				fmt.Fprintf(table, "\n| %s, %d shards | others' follows: p50 ms | p99 ms | their pages: p50 ms | p99 ms | the account: p50 ms | p99 ms | the 1,000: p50 ms | p99 ms | a second |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n", of.mode, of.shards)
				for round := range 3 {
					for _, viral := range []bool{false, true} {
						name := "spread evenly"
						if viral {
							name = "towards one account"
						}
						p := v.phase(b, viral)
						if round > 0 { // the first round is to warm up
							fmt.Fprintf(table, "| %s | %s | %s | %s | %s | %.0f |\n", name, p.others, p.pages, p.account, p.followers, p.rate)
							fmt.Fprintf(table, "| | %s |||||||||\n", p.notes)
						}
					}
				}
				fmt.Println(table)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// viral is a store that the test writes to, and a gateway that replicates and is read from.
type viral struct {
	*deployment
	store  *sqlstore.Store
	inCall *replication.Synchronous
	life   *life
	next   int64  // the next follower
	asker  string // the token of the user who reads
}

func goViral(t testing.TB, servers testenv.Servers, mode string, shards, users int) *viral {
	t.Helper()
	d := assemble(t, servers, servers.FreshDatabases(t, shards), nil, mode, users)
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: d.location()})
	must.OK(t, err)
	t.Cleanup(func() { _ = store.Close() })
	v := &viral{deployment: d, store: store, next: viralOthers + 1}
	v.inCall = replication.NewSynchronous(store, nil, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	t.Cleanup(v.inCall.Close)
	g := kithtest.Start(t, kithtest.Args("--store", d.location(), "--redundancy", mode, "--log-level", "warn", "--jwt-secret", secret))
	v.asker = d.token(t, 2)
	v.life = &life{Command: g.Command, gateway: g, name: "gateway"}
	return v
}

// follow writes a follow as the mode does.
func (v *viral) follow(ctx context.Context, from, to int64) error {
	options := storage.ChangeOptions{MaxFollowing: 5000, Inverse: v.mode == "sync"}
	change := storage.EdgeChange{To: storage.UserID(to), Type: storage.Following, At: storage.MicrosOf(time.Now())}
	r := v.store.ChangeEdges(ctx, storage.Forward, storage.UserID(from), []storage.EdgeChange{change}, options)[0]
	if r.Err != nil || v.mode != "sync" {
		return r.Err
	}
	return v.inCall.Propagate(ctx, r.Value.Written())
}

// In the mode binlog followers write their own rows, and only the replicator writes the rows of the
// account. While those are locked, neither followers nor other users wait. Afterwards all new
// followers are written together.
func TestFollowersAreReplicatedTogether(t *testing.T) {
	t.Parallel()
	const followers = 60
	v := goViral(t, testenv.SharedMariaDB(t, 1), "binlog", 2, followers+10)
	until(t, "it replicates", func() bool { return v.isReplicating(t) })
	holder, err := v.shards[v.shardOf(viralUser)].Begin()
	must.OK(t, err)
	defer holder.Rollback()
	var before int64
	must.OK(t, holder.QueryRow(`SELECT version FROM user_counts WHERE user_id = ? FOR UPDATE`, viralUser).Scan(&before))
	for from := int64(2); from < 2+followers; from++ {
		must.OK(t, v.follow(t.Context(), from, viralUser))
	}
	must.OK(t, v.follow(t.Context(), followers+3, followers+4))
	must.OK(t, holder.Rollback())
	counts := func() storage.Counts {
		return storage.CountLookups.Read(t.Context(), v.store, storage.UserID(viralUser))[0].Value
	}
	until(t, "all followers are there", func() bool { return counts().Follower == followers })
	check.Most(t, fmt.Sprintf("transactions for %d followers", followers), counts().Version-before, followers/6)
}

// isReplicating follows somebody, and reports whether the follow has arrived.
func (v *viral) isReplicating(t testing.TB) bool {
	t.Helper()
	must.OK(t, v.follow(t.Context(), 2, 3))
	return storage.CountLookups.Read(t.Context(), v.store, 3)[0].Value.Follower == 1
}

// phase is the result of one load.
type phase struct {
	others, pages, account, followers times
	rate                              float64 // of the 1,000
	notes                             string
}

type times []time.Duration

func (t times) String() string {
	if len(t) == 0 {
		return " | "
	}
	slices.Sort(t)
	return fmt.Sprintf("%.2f | %.2f", t[len(t)/2].Seconds()*1e3, t[len(t)*99/100].Seconds()*1e3)
}

func (v *viral) phase(b *testing.B, viral bool) (p phase) {
	b.Helper()
	const followersPerSecond = 1000
	before := v.readings(b)
	until := time.Now().Add(*duration)
	first := v.next
	other := func(r *rand.Rand) int64 { return 2 + r.Int64N(viralOthers-1) }
	var running sync.WaitGroup
	var took time.Duration
	began := time.Now()
	running.Go(func() {
		next := make(chan int64, followersPerSecond*60)
		for ; v.next < first+int64(duration.Seconds()*followersPerSecond)+10; v.next++ {
			next <- v.next
		}
		p.followers = paced(b, until, followersPerSecond, 64, func(ctx context.Context, r *rand.Rand) error {
			to := viralUser
			if !viral {
				to = other(r)
			}
			return v.follow(ctx, <-next, to)
		})
		took = time.Since(began)
	})
	running.Go(func() {
		p.others = paced(b, until, 100, 32, func(ctx context.Context, r *rand.Rand) error {
			from, to := other(r), other(r)
			if from == to {
				return nil
			}
			return v.follow(ctx, from, to)
		})
	})
	running.Go(func() {
		p.pages = paced(b, until, 200, 16, func(ctx context.Context, r *rand.Rand) error {
			return v.read(ctx, `($id: ID!) { user(by: {id: $id}) { name followerCount followers(first: 20) { nodes { id name } } } }`, other(r))
		})
	})
	running.Go(func() {
		p.account = paced(b, until, 100, 16, func(ctx context.Context, r *rand.Rand) error {
			return v.read(ctx, `($id: ID!) { user(by: {id: $id}) { name followerCount followers(first: 20) { nodes { id name } } } }`, viralUser)
		})
	})
	running.Wait()
	p.rate = float64(len(p.followers)) / took.Seconds()
	after := v.readings(b)
	d := func(name string) float64 { return after[name] - before[name] }
	p.notes = fmt.Sprintf("the account: %.0f new followers in %.0f transactions; gateway %.2f cores, database %.2f; users: %.0f of %.0f from memory; followers: %.0f of %.0f; look-ups: profiles %.0f, lists %.0f; long lists read %.0f; forgotten %.0f; replicated rows a transaction %.1f",
		d("followers"), d("version"), d("gateway")/took.Seconds(), d("database")/took.Seconds(), d("user hits"), d("user hits")+d("user misses"),
		d("follower hits"), d("follower hits")+d("follower misses"), d("profiles"), d("lists"), d("built"), d("forgotten"), d("rows")/max(1, d("batches")))
	return p
}

// readings returns totals at a moment when everything has been replicated.
func (v *viral) readings(b *testing.B) map[string]float64 {
	b.Helper()
	v.life.Until(b, "replicated", func() bool { return v.life.metric(b, "kith_replication_pending_rows", "") == 0 })
	counts := storage.CountLookups.Read(b.Context(), v.store, storage.UserID(viralUser))[0].Value
	m := func(name, label string) float64 { return v.life.metric(b, name, label) }
	return map[string]float64{
		"followers": float64(counts.Follower), "version": float64(counts.Version),
		"gateway": m("process_cpu_seconds_total", ""), "database": processCPU(b, v.servers[0].PID()),
		"user hits": m("kith_cache_hits_total", `"user"`), "user misses": m("kith_cache_misses_total", `"user"`),
		"follower hits": m("kith_cache_hits_total", `"follower"`), "follower misses": m("kith_cache_misses_total", `"follower"`),
		"profiles": m("kith_sql_statement_duration_seconds_count", `"profiles"`),
		"lists":    m("kith_sql_statement_duration_seconds_count", `"lists.follower"`),
		"built":    m("kith_cache_long_list_seconds_count", ""), "forgotten": m("kith_cache_forgotten_total", ""),
		"rows": m("kith_replication_batch_rows_sum", ""), "batches": m("kith_replication_batch_rows_count", ""),
	}
}

var viralClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second}

// read asks the gateway.
func (v *viral) read(ctx context.Context, query string, about int64) error {
	c := &client{http: viralClient, tokens: func(int64) string { return v.asker }}
	a, err := c.ask(ctx, v.life.gateway.URL, 0, "", "query"+query, map[string]any{"id": id(about)})
	return failure(a, err)
}

// paced does something at a rate until a time, with a number of workers. It returns how long after
// it was due each action was done.
func paced(b *testing.B, until time.Time, perSecond, workers int, do func(context.Context, *rand.Rand) error) (took times) {
	due := make(chan time.Time, 60*perSecond)
	var mu sync.Mutex
	var working sync.WaitGroup
	for i := range workers {
		r := rand.New(rand.NewPCG(rand.Uint64(), uint64(i)))
		working.Go(func() {
			var mine times
			for at := range due {
				if err := do(b.Context(), r); err != nil {
					b.Error(err)
					break
				}
				mine = append(mine, time.Since(at))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	began, sent := time.Now(), 0
	for ; time.Now().Before(until); time.Sleep(time.Millisecond) {
		for want := int(time.Since(began).Seconds() * float64(perSecond)); sent < want; sent++ {
			due <- began.Add(time.Duration(sent+1) * time.Second / time.Duration(perSecond))
		}
	}
	close(due)
	working.Wait()
	return took
}
