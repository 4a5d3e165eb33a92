package program_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	goredis "github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// complains checks that the program ended with a code, and wrote one line that has some parts to its standard error.
func complains(t *testing.T, what any, end kithtest.End, code int, parts ...string) {
	t.Helper()
	end.Fails(t, what, code, parts...)
	check.Equal(t, "lines of "+end.Stderr, strings.Count(end.Stderr, "\n"), 1)
}

// refusedToStart starts a process that has to end with one line that contains a text.
func refusedToStart(t *testing.T, want string, args ...string) {
	t.Helper()
	end := kithtest.Run(t, kithtest.Args(args...))
	check.That(t, (end.Code == 1 || end.Code == misused) && strings.Contains(end.Stderr, want) && strings.Count(end.Stderr, "\n") == 1, "%v: %+v; want %q", args, end, want)
}

// set sets settings of a store, and returns what is printed.
func set(t *testing.T, store string, values ...string) string {
	t.Helper()
	end := kithtest.Run(t, kithtest.Args(append([]string{"settings", "set", store}, values...)...))
	must.That(t, end.Code == 0, "%v: %s", values, end.Stderr)
	return end.Stdout
}

// The settings of a store lie in the store. A process that was told another value does not start, and says what to write. What
// can change while processes run takes effect without a restart; what cannot is set while none runs.
func TestSettingsLieInTheStore(t *testing.T) {
	t.Parallel()
	store := "--store=" + kithtest.DemoStore(t, 1)
	gateway := []string{"serve", "--addr=127.0.0.1:0", store}
	g := kithtest.Start(t, kithtest.Args(store, "--jwt-secret", secret, "--write-limit=0", "--friend-request-pause=1h")) // nobody had set it, so it is recorded
	refusedToStart(t, "--friend-request-pause 2h: this store says 1h; to change it: kith settings set friend-request-pause=2h", append(gateway, "--friend-request-pause=2h")...)
	refusedToStart(t, "--max-following 6: this store says 5000; to change it: kith settings set max-following=6", append(gateway, "--max-following=6")...)
	refusedToStart(t, "--redis-cache true: this store says false", append(gateway, "--redis-cache")...)
	refusedToStart(t, "--friend-request-ttl 1h: this store says 2160h", "reconcile", "full", "--friend-request-ttl=1h", store)
	refusedToStart(t, "redundancy: gateways or replicators run on this store", "settings", "set", "redundancy=stream", "--redis="+testenv.Redis(t).URL(), store)
	other := kithtest.Start(t, kithtest.Args(store, "--max-following=5000")) // told the same
	other.Interrupt(t)

	doctor := kithtest.Run(t, kithtest.Args("doctor", "--max-following=6", store))
	check.Has(t, "doctor", doctor.Stdout, "fail  settings: --max-following 6: this store says 5000")

	follow := func(id int) string {
		return textAs(t, g, signed(t, jwt.MapClaims{"sub": "1900"}), fmt.Sprintf("mutation { follow(userId: %d) { changed } }", id))
	}
	answer := follow(1283)
	must.That(t, strings.Contains(answer, `"data"`) && !strings.Contains(answer, "errors"), "%v", answer)
	check.Has(t, "set", set(t, store, "max-following=1", "suggest=77,1999"), "max-following: 5000 → 1, within 5s, without a restart\n", "suggest: none → 77,1999,")
	began, id := time.Now(), 1284
	g.Until(t, "the limit holds", func() bool {
		id++
		return strings.Contains(follow(id), "LIMIT_REACHED")
	})
	took := time.Since(began)
	check.That(t, took <= 15*time.Second, "after %s", took) // three times as long as it takes, on a machine under load
	refusedToStart(t, "--max-following 5000: this store says 1", append(gateway, "--max-following=5000")...)
	check.Has(t, "set", set(t, store, "max-following="), "max-following: 1 → 5000")
	g.Until(t, "no limit holds", func() bool { id++; return !strings.Contains(follow(id), "errors") })

	end := kithtest.Run(t, kithtest.Args("settings", "get", "redundancy", store))
	check.That(t, strings.HasPrefix(end.Stdout, "redundancy            auto (now sync)   default "), "%+v", end)
	var shown []struct {
		Name, Value, Now string
		Default          bool
	}
	end = kithtest.Run(t, kithtest.Args("settings", "get", "redundancy", "max-following", "suggest", "--output=json", store))
	err := json.Unmarshal([]byte(end.Stdout), &shown)
	check.That(t, err == nil && fmt.Sprint(shown) == "[{redundancy auto sync true} {max-following 5000  true} {suggest 77,1999  false}]", "%v, %+v", shown, end)
}

// Processes on one store have one Redis, or none, by whatever address they reach it. One that answers late, or has lost its data,
// is compared once it answers.
func TestProcessesAgreeOnTheRedis(t *testing.T) {
	t.Parallel()
	redis, other := testenv.Redis(t), testenv.Redis(t)
	away := testenv.Redis(t)
	away.Kill(t)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	gateway := []string{"serve", "--addr=127.0.0.1:0", store}
	refused := func(want string, args ...string) {
		t.Helper()
		complains(t, args, kithtest.Run(t, kithtest.Args(args...)), 1, "--redis (KITH_REDIS): it is "+want)
	}
	agrees := func(g *kithtest.Gateway, want bool) {
		t.Helper()
		g.Until(t, fmt.Sprintf("its settings are those of the others: %t", want), func() bool {
			_, ready := g.Get(t, "/readyz")
			return strings.Contains(ready, fmt.Sprintf(`{"name":"settings","ok":%t`, want))
		})
	}
	first := kithtest.Serve(t, kithtest.Args("--redis", redis.URL(), store))
	refused("none here, and one whose kith:id is ", gateway...)
	refused("one whose kith:id is ", append(gateway, "--redis", other.URL())...)
	refused("none here, and one whose kith:id is ", "reconcile", "full", store)
	doctor := kithtest.Run(t, kithtest.Args("doctor", "--redis", other.URL(), store))
	check.Has(t, "doctor", doctor.Stdout, "warn  settings: --redis (KITH_REDIS): it is one whose")

	late := kithtest.Serve(t, kithtest.Args("--redis", away.URL(), store))
	agrees(late, true)
	away.Restart(t)
	late.Until(t, "it says that it has another Redis", func() bool { return strings.Contains(late.Stderr(), "--redis (KITH_REDIS): it is one whose") })
	agrees(late, false)
	agrees(first, true)
	late.Interrupt(t)

	options, err := goredis.ParseURL(redis.URL())
	must.OK(t, err)
	client := goredis.NewClient(options)
	defer client.Close()
	must.OK(t, client.FlushAll(t.Context()).Err())
	second := kithtest.Serve(t, kithtest.Args("--redis", strings.Replace(redis.URL(), "127.0.0.1", "localhost", 1), store))
	agrees(first, true)
	agrees(second, true)
}

// A gateway takes the mode of the store, and does not start if it was told another one. The mode is set while nothing runs.
func TestProcessesAgreeOnTheMode(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	store := "--store=mysql:" + testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]
	first := kithtest.Serve(t, kithtest.Args("--redundancy=binlog", store))
	const otherwise = "--redundancy sync: this store says binlog; to change it: kith settings set redundancy=sync"
	refusedToStart(t, otherwise, "serve", "--addr=127.0.0.1:0", store, "--redundancy=sync")
	mode := func(g *kithtest.Gateway, mode string) {
		t.Helper()
		check.Has(t, "the metrics", g.Metrics(t), fmt.Sprintf("kith_redundancy{mode=%q} 1", mode))
	}
	second := kithtest.Serve(t, kithtest.Args(store))
	mode(second, "binlog")
	refusedToStart(t, "redundancy: gateways or replicators run on this store", "settings", "set", "redundancy=sync", store)
	first.Interrupt(t)
	second.Interrupt(t)
	refusedToStart(t, otherwise, "serve", "--addr=127.0.0.1:0", store, "--redundancy=sync")
	check.Has(t, "set", set(t, store, "redundancy=sync"), "redundancy: binlog → sync, from the next start on\n", "kith reconcile full --repair")
	refusedToStart(t, "it is sync: replicate is for stream and binlog", "replicate", store)
	mode(kithtest.Serve(t, kithtest.Args(store)), "sync")
}

// A setting that a running gateway cannot take over is in its log and in /readyz until it is started again.
func TestASettingThatNeedsAStart(t *testing.T) {
	t.Parallel()
	redis := testenv.Redis(t)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	with := kithtest.Args(store, "--redis", redis.URL())
	g := kithtest.Serve(t, with)
	said := set(t, store, "feed=pull", "--redis="+redis.URL())
	check.That(t, said == "nothing changed\n", "%v", said)                    // it is the default
	second := kithtest.Serve(t, with, kithtest.Env("KITH_REDIS_CACHE=false")) // records it
	_, ready := g.Get(t, "/readyz")
	check.Has(t, "defaults were set, and nothing differs", ready, `{"name":"settings","ok":true`)
	second.Interrupt(t)
	set(t, store, "feed=push", "--redis="+redis.URL())
	const says = `feed: this process has to be started again: it is "push" in the store, and was "pull"`
	g.Until(t, "it says so", func() bool {
		_, ready := g.Get(t, "/readyz")
		return strings.Contains(ready, `{"name":"settings","ok":false`) && strings.Contains(g.Stderr(), strings.ReplaceAll(says, `"`, `\"`))
	})
	g.Interrupt(t)
	again := kithtest.Serve(t, with)
	again.Until(t, "it has the setting", func() bool {
		_, ready := again.Get(t, "/readyz")
		return strings.Contains(ready, `{"name":"settings","ok":true`)
	})
	refusedToStart(t, "--feed (KITH_FEED): push needs a Redis", "serve", "--addr=127.0.0.1:0", store)
}

// A store whose settings a newer program has set, or somebody by hand, is served or refused with one line.
func TestSettingsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	file := newSQLite(t, 1)[0]
	store := "--store=" + location(file)
	kithtest.Ends(t, 0, kithtest.Args("migrate", store, "--max-following=7")) // whatever makes the store records what it is told
	for value, want := range map[string]string{
		`{"max-following":"8","of-tomorrow":"x"}`: "",
		`{"max-following":"many"}`:                "max-following",
		`{"max-following":"-1"}`:                  "must not be negative",
		`nonsense`:                                "the settings in the store",
	} {
		file.exec(t, fmt.Sprintf("UPDATE kith_checkpoints SET value = x'%x' WHERE name = 'settings of the store'", value))
		end := kithtest.Run(t, kithtest.Args("settings", store))
		check.That(t, (end.Code == 0) == (want == "") && strings.Contains(end.Stderr, want) && strings.Count(end.Stderr, "\n") <= 1, "%s: %+v", value, end)
	}
}
