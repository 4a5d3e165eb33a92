package faults_test

import (
	"encoding/binary"
	"fmt"
	"io"
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
	"kith/storage"
	"kith/storage/wire"
)

// auditor is `kith reconcile watch`, which audits the gateways of a deployment.
type auditor struct {
	*kithtest.Command
	metrics string
	urls    []string // of the gateways
}

func (d *deployment) audits(t testing.TB, more ...string) *auditor {
	t.Helper()
	admin := testenv.FreeAddress(t)
	args := append(append([]string{"reconcile", "watch", "--jwt-secret", secret, "--admin-addr", admin}, d.settings()...), more...)
	var urls []string
	for _, n := range d.gateways {
		urls = append(urls, n.now.Load().gateway.URL)
		n.options = []kithtest.Option{kithtest.Args("--addr", strings.TrimPrefix(urls[len(urls)-1], "http://"))} // of each next life
	}
	return &auditor{kithtest.Launch(t, kithtest.Args(append(args, urls...)...)), "http://" + admin + "/metrics", urls}
}

// counts are the values of a metric by kind; nil while it does not answer.
func (a *auditor) counts(t testing.TB, metric string) map[string]float64 {
	t.Helper()
	if a.Ended() {
		t.Fatalf("the auditor has ended: %s", a.Stderr())
	}
	answer, err := http.Get(a.metrics)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must.OK(t, err)
	counts := map[string]float64{}
	for _, m := range regexp.MustCompile(metric+`\{kind="(\w+)"\} (\S+)`).FindAllStringSubmatch(string(text), -1) {
		n, _ := strconv.ParseFloat(m[2], 64)
		counts[m[1]] += n
	}
	return counts
}

func sum(counts map[string]float64) (n float64) {
	for _, of := range counts {
		n += of
	}
	return n
}

// compares waits until so much more of each kind has been compared.
func (a *auditor) compares(t testing.TB, more float64) {
	t.Helper()
	before := a.counts(t, "kith_audit_compared_total")
	for _, kind := range []string{"users", "lists", "relations", "feeds"} {
		until(t, fmt.Sprintf("%v more %s are compared", more, kind), func() bool { return a.counts(t, "kith_audit_compared_total")[kind] >= before[kind]+more })
	}
}

// behind changes rows of all shards so that no gateway hears of it.
func (d *cachedDeployment) behind(t testing.TB, changes ...string) {
	t.Helper()
	for _, shard := range d.shards {
		conn, err := shard.Conn(t.Context())
		must.OK(t, err)
		for _, change := range append(append([]string{"SET SESSION sql_log_bin = 0"}, changes...), "SET SESSION sql_log_bin = 1") {
			_, err := conn.ExecContext(t.Context(), change)
			must.OK(t, err)
		}
		conn.Close()
	}
}

// haveWritten has all users follow some who have posted.
func (d *cachedDeployment) haveWritten(t testing.TB) {
	t.Helper()
	c := d.client(t)
	for user := range int64(everybodyThere) {
		text := fmt.Sprintf(`mutation { a: follow(userId: %d) { changed } }`, 1+(user+1)%stars)
		if user < stars {
			text = fmt.Sprintf(`mutation { a: follow(userId: %d) { changed } publishPost(text: "x", clientKey: "k") { changed } }`, 1+(user+1)%stars)
		}
		if user == everybodyThere-1 { // gateways read changes of states from here on
			text = `mutation { deactivateAccount { changed } }`
		}
		d.gateways[0].asks(t, c, 1+user, text, nil)
	}
}

// TestAnswersAreAudited: while users write and a gateway is killed, all answers are those of the tables. Then rows are changed behind the gateways'
// backs: names, counts, follows, posts, and who is hidden. Each is found and named.
func TestAnswersAreAudited(t *testing.T) {
	t.Parallel()
	testenv.NotOn(t, "its binlog cannot be turned off", "tidb")
	d := deployCached(t, testenv.SharedMariaDB(t, 2), testenv.Redis(t), "binlog", everybodyThere)
	d.haveWritten(t)
	a := d.audits(t, "--window", "3s", "--max-load", "0.2")
	r := &running{schedule: schedule{operations: 1 << 30, connections: 4, users: everybodyThere}, deployment: d.deployment, seed: seedOf(t)}
	r.slow.Store(true)
	r.write(t)
	a.compares(t, 10)
	d.gateways[1].kill(t)
	d.gateways[1].start(t)
	d.ready(t)
	a.compares(t, 20)
	time.Sleep(4 * time.Second) // what is suspected is asked for again
	if wrong := a.counts(t, "kith_audit_differed_total"); len(wrong) != 4 || sum(wrong) != 0 {
		t.Fatalf("differed: %v\n%s", wrong, a.Stderr())
	}
	t.Logf("compared %v", a.counts(t, "kith_audit_compared_total"))
	d.behind(t, "INSERT INTO user_states (user_id, state, changed_at) SELECT user_id, 1, 1 FROM users WHERE user_id % 9 = 0")
	b := d.audits(t, "--window", "3s", "--max-load", "0.2") // who is hidden, it reads whole at its start
	until(t, "hidden users who are still seen are found", func() bool {
		return b.counts(t, "kith_audit_differed_total")["users"] > 0 && strings.Contains(b.Stderr(), "tables=null")
	})
	b.Kill(t)
	d.behind(t, "UPDATE users SET name = 'somebody else'", "UPDATE user_counts SET follower_count = follower_count + 7", "UPDATE following SET type = 0", "UPDATE post SET state = 1")
	for _, kind := range []string{"users", "lists", "relations", "feeds"} {
		until(t, "wrong "+kind+" are found", func() bool { return a.counts(t, "kith_audit_differed_total")[kind] > 0 })
	}
	for _, want := range []string{"level=ERROR", a.urls[0], a.urls[1], "somebody else", "kind=feeds"} {
		until(t, "the log has "+want, func() bool { return strings.Contains(a.Stderr(), want) })
	}
}

// damageRedis gives users another name, and empties lists, in what Redis keeps of them.
func (d *cachedDeployment) damageRedis(t testing.TB) (damaged map[string]int) {
	t.Helper()
	client := d.admin(t)
	keys, err := client.Keys(t.Context(), "*{*}:*").Result()
	must.OK(t, err)
	damaged = map[string]int{}
	for _, key := range keys {
		held, err := client.HGetAll(t.Context(), key).Result()
		if err != nil {
			continue // it is no value of a user
		}
		_, rest, _ := strings.Cut(key, "{")
		owner, kind, _ := strings.Cut(rest, "}:")
		id, _ := strconv.ParseInt(owner, 10, 64)
		version, _ := strconv.ParseInt(held["v"], 10, 64)
		for field, value := range held {
			form, isValue := strings.CutPrefix(field, "d")
			if !isValue {
				continue
			}
			wrong := string(binary.AppendUvarint(binary.AppendUvarint([]byte{0}, 1000), 0)) // a whole list, of nobody
			if kind == "user" {
				p, err := wire.ParseProfile(storage.UserID(id), value, held["c"+form], version)
				if err != nil || !p.Exists {
					continue
				}
				p.User.Name = "somebody else"
				wrong = string(wire.AppendProfile(nil, p))
			}
			must.OK(t, client.HSet(t.Context(), key, field, wrong).Err())
			damaged[kind]++
		}
	}
	return damaged
}

// TestDamagedRedisIsFound: values that are wrong in Redis only, in a gateway that has kept nothing yet. The others, which have kept them
// before, answer as the tables do.
func TestDamagedRedisIsFound(t *testing.T) {
	t.Parallel()
	d := deployCached(t, testenv.SharedMariaDB(t, 2), testenv.Redis(t), "binlog", everybodyThere)
	d.haveWritten(t)
	first := d.audits(t, "--window", "3s", "--max-load", "0.2")
	first.compares(t, 20) // the caches are filled
	if wrong := first.counts(t, "kith_audit_differed_total"); sum(wrong) != 0 {
		t.Fatalf("differed: %v\n%s", wrong, first.Stderr())
	}
	first.Kill(t)
	damaged := d.damageRedis(t)
	must.That(t, damaged["user"] != 0 && damaged["following"] != 0 && damaged["follower"] != 0, "damaged: %v", damaged)
	fresh := d.serving("gateway 2", "--no-replicate", "--max-cost", "10000000")
	fresh.start(t)
	d.gateways = append(d.gateways, fresh)
	d.ready(t)
	a := d.audits(t, "--window", "3s", "--max-load", "0.2")
	for _, kind := range []string{"users", "lists"} {
		until(t, "wrong "+kind+" are found", func() bool { return a.counts(t, "kith_audit_differed_total")[kind] > 0 })
	}
	until(t, "the name is told", func() bool { return strings.Contains(a.Stderr(), "somebody else") })
	check.Has(t, "the log", a.Stderr(), "of="+a.urls[2])
}

// TestLongAudit: an auditor that may use a core compares 10⁸ answers while users write, buckets move, and gateways are killed.
//
//	KITH_TEST_LONG=1 go test ./internal/faults -run TestLongAudit -v -timeout 3h
func TestLongAudit(t *testing.T) {
	testenv.Long(t)
	d := deployCached(t, testenv.SharedMariaDB(t, 2), testenv.Redis(t), "binlog", everybodyThere)
	d.haveWritten(t)
	a := d.audits(t, "--max-load", "1")
	r := &running{schedule: schedule{operations: 1 << 30, connections: 8, users: everybodyThere}, deployment: d.deployment, seed: seedOf(t)}
	r.slow.Store(true)
	r.write(t)
	began, kills, moves := time.Now(), 0, 0
	for sum(a.counts(t, "kith_audit_compared_total")) < 1e8 {
		n := d.gateways[kills%2]
		n.kill(t)
		time.Sleep(time.Second)
		n.start(t)
		kills++
		from, to := strconv.Itoa(moves%2), strconv.Itoa(1-moves%2)
		if end := d.command("shards", "move", "--from", from, "--to", to, "--buckets", [...]string{"0-31", "0-31"}[moves%2], "--keep", "2s")(t).Wait(t); end.Code == 0 {
			moves++
		}
		time.Sleep(10 * time.Second)
		t.Logf("%s: %d kills, %d moves, compared %v, differed %v", time.Since(began).Round(time.Second), kills, moves, a.counts(t, "kith_audit_compared_total"), a.counts(t, "kith_audit_differed_total"))
	}
	time.Sleep(80 * time.Second)
	if wrong := a.counts(t, "kith_audit_differed_total"); sum(wrong) != 0 {
		t.Errorf("differed: %v\n%s", wrong, a.Stderr())
	}
}
