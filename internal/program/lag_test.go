package program_test

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// TestGatewaysSeeThatNobodyReplicates runs a gateway that does not replicate: its lag grows while no replicator works, and
// /readyz says so, but the gateway stays ready.
func TestGatewaysSeeThatNobodyReplicates(t *testing.T) {
	t.Parallel()
	store := kithtest.Args("--store", location(newMariaDB(t, 2)...))
	g := kithtest.Start(t, store, kithtest.Args("--no-replicate"))
	until := func(what string, grows bool) {
		t.Helper()
		g.Until(t, what, func() bool {
			r := askReadyz(t, g)
			metrics := g.Metrics(t)
			lags := regexp.MustCompile(`kith_replication_lag_seconds\{source="binlog [^"]+"\} (\S+)`).FindAllStringSubmatch(metrics, -1)
			must.That(t, r.status == http.StatusOK && strings.Contains(metrics, `kith_redundancy{mode="binlog"} 1`), "%s: %+v", what, r)
			for _, lag := range lags {
				if seconds, err := strconv.ParseFloat(lag[1], 64); err != nil || (seconds > 8) != grows {
					return false
				}
			}
			_, readyz := g.Get(t, "/readyz")
			state := map[bool]string{true: "no-replicator", false: "waiting"}[grows]
			return len(lags) == 2 && r.ok["replication"] != grows && strings.Count(readyz, `"state":"`+state+`"`) == 2
		})
	}
	until("nobody replicates", true)
	replicator := kithtest.Launch(t, kithtest.Args("replicate"), store)
	until("a replicator works", false)
	replicator.Kill(t)
	until("it is dead", true)
	check.Equal(t, "lines for two outages of two servers", strings.Count(g.Stderr(), "no replicator works on this server"), 4)
}

// TestTheStreamsRedisIsAway kills the Redis of a gateway in the mode stream: the lag grows, and /readyz says that the stream is not
// read, until Redis is back.
func TestTheStreamsRedisIsAway(t *testing.T) {
	t.Parallel()
	redis := testenv.Redis(t)
	g := kithtest.Start(t, kithtest.Args("--store", kithtest.DemoStore(t, 1), "--redundancy", "stream", "--redis", redis.URL()))
	until := func(what string, away bool) {
		t.Helper()
		g.Until(t, what, func() bool {
			r := askReadyz(t, g)
			metrics := g.Metrics(t)
			lag := regexp.MustCompile(`kith_replication_lag_seconds\{source="stream"\} (\S+)`).FindStringSubmatch(metrics)
			must.That(t, r.status == http.StatusOK && lag != nil, "%s: %+v", what, r)
			seconds, err := strconv.ParseFloat(lag[1], 64)
			return err == nil && (seconds > 3) == away && r.ok["replication"] != away
		})
	}
	until("the stream is read", false)
	redis.Kill(t)
	until("Redis has gone", true)
	redis.Restart(t)
	until("Redis is back", false)
}

// TestReplicatorsOfTheStream: `kith replicate` applies the stream for gateways that do not, and another one what a killed one has left.
func TestReplicatorsOfTheStream(t *testing.T) {
	t.Parallel()
	redis := testenv.Redis(t)
	with := kithtest.Args("--store", location(newSQLite(t, 2)...), "--redundancy", "stream", "--redis", redis.URL())
	g := kithtest.Start(t, kithtest.Args("--no-replicate"), with)
	id := func(handle string) (id, token string) {
		token = tokenOf(t, g, "", `register(handle: "`+handle+`", name: "N", password: "correct horse")`)
		return idOf(t, g, token), token
	}
	followed, _ := id("maya")
	followers := func() string {
		text := textAs(t, g, "", `{ user(by: {id: "`+followed+`"}) { followers(first: 9) { nodes { handle } } } }`)
		return text
	}
	for _, follower := range []string{"noor", "zoe"} {
		_, token := id(follower)
		textAs(t, g, token, `mutation { follow(userId: "`+followed+`") { changed } }`, `"changed":true`)
		time.Sleep(200 * time.Millisecond)
		check.Lacks(t, "while nobody replicates", followers(), follower)
		replicator := kithtest.Launch(t, kithtest.Args("replicate"), with)
		g.Until(t, "the follow is on the other side", func() bool { return strings.Contains(followers(), follower) })
		replicator.Kill(t)
	}
	for arguments, want := range map[string]string{"--resync": "--resync", "--redundancy=sync": "replicate is for stream and binlog"} {
		end := kithtest.Run(t, kithtest.Args("replicate"), with, kithtest.Args(arguments))
		complains(t, arguments, end, misused, want)
	}
}
