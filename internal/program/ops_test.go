package program_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// readyz is the answer of /readyz, with shards and others by name.
type readyz struct {
	status int
	ok     map[string]bool
	took   time.Duration
}

func askReadyz(t *testing.T, g *kithtest.Gateway) readyz {
	t.Helper()
	began := time.Now()
	status, body := g.Get(t, "/readyz")
	r := readyz{status: status, ok: map[string]bool{}, took: time.Since(began)}
	var report struct {
		Ready  bool
		Shards []struct {
			Shard int
			Name  string
			OK    bool
		}
		Checks []struct {
			Name string
			OK   bool
		}
	}
	must.OK(t, json.Unmarshal([]byte(body), &report))
	check.That(t, report.Ready == (status == http.StatusOK) && !strings.Contains(body, "app:"), "status %d: %s", status, body)
	for _, s := range report.Shards {
		r.ok[fmt.Sprintf("shard %d: %s", s.Shard, s.Name)] = s.OK
	}
	for _, c := range report.Checks {
		r.ok[c.Name] = c.OK
	}
	return r
}

// TestReadyzNamesWhatIsGone freezes and kills two servers and Redis, one after the other. The
// process is healthy all the time, and answers with everything on the other shard.
func TestReadyzNamesWhatIsGone(t *testing.T) {
	t.Parallel()
	var servers [2]*testenv.MariaDBServer
	var shards []database
	for i := range servers {
		servers[i] = testenv.MariaDB(t)
		shards = append(shards, database{"mysql", servers[i].CreateDatabase(t, "kith")})
	}
	redis := testenv.Redis(t)
	store := location(shards...)
	importFew(t, store)
	g := kithtest.Start(t, kithtest.Args("--statement-timeout=500ms", "--cache-bytes=0",
		"--store", store, "--redis", redis.URL()))

	names := []string{"shard 0: " + servers[0].Addr() + "/kith", "shard 1: " + servers[1].Addr() + "/kith", "redis"}
	all := []*testenv.Server{servers[0].Server, servers[1].Server, redis.Server}
	expect := func(what string, gone int) {
		t.Helper()
		g.Until(t, what, func() bool {
			r := askReadyz(t, g)
			status, body := g.Get(t, "/healthz")
			check.That(t, status == http.StatusOK && body == "ok\n", "%s: /healthz: %d %s", what, status, body)
			check.Most(t, what, r.took, 10*time.Second)
			matches := true
			for i, name := range names {
				ok, there := r.ok[name]
				must.That(t, there, "%s: %s is not in %+v", what, name, r)
				matches = matches && ok == (i != gone)
			}
			return matches && r.status == http.StatusOK // the rest can be answered
		})
	}
	owner := [2]string{ownedBy(t, shards[0]), ownedBy(t, shards[1])}
	answers := func(what string, gone int) {
		t.Helper()
		for shard, id := range owner {
			answer, err := g.Ask(`query($id: ID!) { user(by: {id: $id}) { handle } }`, map[string]any{"id": id})
			must.OK(t, err)
			if shard != gone && (len(answer.Errors) > 0 || !strings.Contains(string(answer.Data), `"handle"`)) {
				t.Errorf("%s: user %s of shard %d: %s %+v", what, id, shard, answer.Data, answer.Errors)
			}
			if shard == gone && (len(answer.Errors) != 1 || answer.Errors[0].Extensions["code"] != "UNAVAILABLE") {
				t.Errorf("%s: user %s of shard %d: %s %+v, want UNAVAILABLE", what, id, shard, answer.Data, answer.Errors)
			}
		}
	}

	expect("at first", -1)
	answers("at first", -1)
	for i, server := range all {
		what := names[i] + " frozen"
		server.Freeze(t)
		expect(what, i)
		answers(what, i)
		server.Thaw(t)
		expect(what+" and thawed", -1)

		what = names[i] + " killed"
		server.Kill(t)
		expect(what, i)
		answers(what, i)
		server.Restart(t)
		expect(what+" and back", -1)
		answers(what+" and back", -1)
	}
	for _, s := range servers {
		s.Kill(t)
	}
	g.Until(t, "none of its shards answers", func() bool { return askReadyz(t, g).status == http.StatusServiceUnavailable })
	check.That(t, !g.Ended(), "the gateway has ended")
}

// TestWithoutItsRedis starts two gateways and a replicator whose Redis is not there, and starts it later. They are ready at once,
// say what is missing, and join. When Redis is killed again, they stay ready. Another one starts while Redis is silent.
func TestWithoutItsRedis(t *testing.T) {
	t.Parallel()
	redis := testenv.Redis(t)
	redis.Kill(t)
	shards := newMariaDB(t, 2)
	store := location(shards...)
	importFew(t, store)
	with := kithtest.Args("--store", store, "--redis", redis.URL())
	gateway := kithtest.Args("--no-replicate", "--jwt-secret", "nobody will guess what this test has for a secret")
	a, b := kithtest.Start(t, with, gateway), kithtest.Start(t, with, gateway)
	replicator := kithtest.Launch(t, kithtest.Args("replicate"), with)
	both := func(what string, there bool) {
		t.Helper()
		for i, g := range []*kithtest.Gateway{a, b} {
			g.Until(t, what, func() bool {
				r := askReadyz(t, g)
				must.Equal(t, fmt.Sprintf("%s: gateway %d", what, i), r.status, http.StatusOK)
				metrics := g.Metrics(t)
				return r.ok["redis"] == there && strings.Contains(metrics, map[bool]string{true: `kith_degraded{part="redis"} 0`, false: `kith_degraded{part="redis"} 1`}[there])
			})
		}
	}
	both("without Redis", false)
	token := tokenOf(t, a, "", `register(handle: "early", name: "Early", password: "correct horse")`)
	names := func(g *kithtest.Gateway) string { return textAs(t, g, "", `{ user(by: {handle: "early"}) { name } }`) }
	check.Has(t, "the name", names(b), "Early")
	redis.Restart(t)
	both("Redis has come", true)
	for _, g := range []*kithtest.Gateway{a, b} {
		g.Until(t, "it keeps users in memory", func() bool { return strings.Contains(g.Metrics(t), "\nkith_cache_enabled 1\n") })
	}
	names(b)
	textAs(t, a, token, `mutation { updateProfile(name: "Later") { viewer { user { name } } } }`, "Later")
	b.Until(t, "it hears of the change", func() bool { return strings.Contains(names(b), "Later") })
	redis.Kill(t)
	both("Redis has gone", false)
	check.Has(t, "the name", names(b), "Later")
	redis.Restart(t)
	redis.Freeze(t) // it accepts connections, and says nothing
	began := time.Now()
	silent := kithtest.Start(t, with, gateway)
	check.Most(t, "the time of a start with a silent Redis", time.Since(began), 10*time.Second)
	r := askReadyz(t, silent)
	check.That(t, r.status == http.StatusOK && !r.ok["redis"], "with a silent Redis: %+v", r)
	check.That(t, !replicator.Ended(), "the replicator has ended")
}

// A Redis that answers, and refuses what gateways do, is named with the reason in /readyz and once in the log. Gateways start all
// the same.
func TestRedisRefuses(t *testing.T) {
	t.Parallel()
	server, master := testenv.Redis(t), testenv.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	tell := func(words ...any) {
		t.Helper()
		must.OK(t, client.Do(t.Context(), words...).Err())
	}
	tell("ACL", "SETUSER", "app", "on", ">"+password, "~*", "&*", "+@all", "-@scripting")
	g := kithtest.Start(t, kithtest.Args("--store", location(newSQLite(t, 1)...), "--redis", "redis://app:"+password+"@"+server.Addr()))
	shown := func(reason string) {
		t.Helper()
		want := `{"name":"redis","ok":false,"error":"` + reason + `"}`
		if reason == "" {
			want = `{"name":"redis","ok":true}`
		}
		g.Until(t, want, func() bool {
			status, body := g.Get(t, "/readyz")
			return status == http.StatusOK && strings.Contains(body, want)
		})
	}
	logged := func(what string) {
		t.Helper()
		g.Until(t, "the log has "+what, func() bool { return strings.Contains(g.Stderr(), what) })
	}
	shown("NOPERM")
	logged("it refuses what gateways do: NOPERM")
	tell("ACL", "SETUSER", "app", "+@all")
	shown("")
	logged("Redis is of use again")
	tell("CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "noeviction")
	shown("OOM")
	logged("it refuses what gateways do: OOM")
	dir, err := client.ConfigGet(t.Context(), "dir").Result()
	must.OK(t, err)
	inTheWay := filepath.Join(dir["dir"], "dump.rdb") // a folder: what is saved cannot get its name, as on a full disk
	must.OK(t, os.Mkdir(inTheWay, 0o700))
	tell("CONFIG", "SET", "maxmemory", "0", "save", "3600 1000000")
	tell("BGSAVE")
	shown("MISCONF")
	logged("it refuses what gateways do: MISCONF")
	kithtest.Start(t, kithtest.Args("--store", location(newSQLite(t, 1)...), "--redis", server.URL()))
	must.OK(t, os.Remove(inTheWay))
	tell("BGSAVE")
	shown("")
	tell("CONFIG", "SET", "save", "", "min-replicas-to-write", "1")
	shown("NOREPLICAS")
	tell("CONFIG", "SET", "min-replicas-to-write", "0")
	host, port, _ := strings.Cut(master.Addr(), ":")
	tell("REPLICAOF", host, port)
	shown("READONLY")
	tell("REPLICAOF", "NO", "ONE")
	shown("")
	log := g.Stderr()
	check.That(t, strings.Count(log, ": NOPERM") == 1 && strings.Count(log, ": OOM") == 1 && !strings.Contains(log, password), "%v", log)
}

// importFew imports users 1 to 16, each of whom follows the next.
func importFew(t *testing.T, store string) {
	t.Helper()
	var edges strings.Builder
	for from := 1; from < 16; from++ {
		fmt.Fprintf(&edges, "%d\t%d\n", from, from+1)
	}
	file := written(t, "few.tsv", edges.String())
	kithtest.Ends(t, 0, kithtest.Args("import", "--store", store, file))
}

// ownedBy is the id of a user on a shard.
func ownedBy(t *testing.T, d database) string { return d.text(t, "SELECT MIN(user_id) FROM users") }

func TestMetrics(t *testing.T) {
	t.Parallel()
	g := kithtest.Start(t, kithtest.Args("--cache-bytes", "0", "--store", kithtest.DemoStore(t, 2)))
	const queries = 3
	for range queries {
		g.Query(t, `{ users(by: {ids: ["1", "2", "3"]}) { handle followings(first: 5) { totalCount nodes { name } } } }`, nil, new(any))
	}
	_, err := g.Ask(`{ nonsense }`, nil)
	must.OK(t, err)
	metrics := g.Metrics(t)
	for _, want := range []string{
		fmt.Sprintf(`kith_graphql_requests_total{operation="query",outcome="ok"} %d`, queries),
		`kith_graphql_requests_total{operation="unknown",outcome="refused"} 1`,
		fmt.Sprintf(`kith_graphql_request_duration_seconds_count{operation="query"} %d`, queries),
		`kith_sql_statement_duration_seconds_count{lookup="users",shard="0"} `,
		`kith_sql_statement_duration_seconds_count{lookup="users",shard="1"} `,
		`kith_sql_batch_keys_count{lookup="users"} `,
		`kith_sql_batch_keys_count{lookup="profiles"} `,
		`go_sql_open_connections{db_name="shard0"} `,
		`go_sql_open_connections{db_name="shard1_write"} `,
		`go_sql_wait_duration_seconds_total{db_name="shard0"} `,
		`go_goroutines `,
		`process_resident_memory_bytes `,
	} {
		check.That(t, strings.Contains(metrics, "\n"+want), "/metrics has no %s", want)
	}
	if t.Failed() {
		t.Log(metrics)
	}
}
