package program_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// replicator is `kith replicate` with its address for operators.
type replicator struct {
	*kithtest.Command
	admin string
}

func launchReplicator(t *testing.T, options ...kithtest.Option) replicator {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	addr := l.Addr().String()
	l.Close()
	options = append([]kithtest.Option{kithtest.Args("replicate", "--admin-addr", addr)}, options...)
	return replicator{kithtest.Launch(t, options...), "http://" + addr}
}

// ask is the answer of a page; "" if there is none.
func (r replicator) ask(page string) (status int, text string) {
	answer, err := http.Get(r.admin + page)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

// tails waits until the replicator follows so many servers, and not the others.
func (r replicator) tails(t *testing.T, servers, of int) {
	t.Helper()
	r.Until(t, fmt.Sprintf("%d of %d servers are followed", servers, of), func() bool {
		status, text := r.ask("/readyz")
		ready := servers == of
		return (status == http.StatusOK) == ready && strings.Contains(text, fmt.Sprintf(`"checks":[{"name":"replication","ok":%t,`, ready)) &&
			strings.Count(text, `"state":"tailing"`) == servers && strings.Count(text, `"state":"stopped"`) == of-servers
	})
}

// TestARefusedTransactionStopsItsServerOnly deletes rows by hand, on one server and then on the other. The replicator follows the
// other one until it is refused, too; then it ends. The way that the log names leads back, beside processes that are stopped.
func TestARefusedTransactionStopsItsServerOnly(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	shards := newMariaDB(t, 2)
	store := kithtest.Args("--store", location(shards...))
	s := opened(t, shards)
	var users [2][]storage.UserID // by shard
	for id := storage.UserID(1); len(users[0]) < 9 || len(users[1]) < 9; id++ {
		users[s.ShardOf(id)] = append(users[s.ShardOf(id)], id)
	}
	r := launchReplicator(t, store)
	r.tails(t, 2, 2)
	for shard := range shards {
		follow(t, s, users[shard][0], users[shard][1])
		r.Until(t, "the follow is on the other side", func() bool { return isFollower(t, s, users[shard][0], users[shard][1]) })
	}

	shards[0].exec(t, "DELETE FROM follower")
	r.tails(t, 1, 2)
	follow(t, s, users[1][2], users[1][3])
	r.Until(t, "the other server is followed", func() bool { return isFollower(t, s, users[1][2], users[1][3]) })
	status, _ := r.ask("/healthz")
	check.Equal(t, "/healthz", status, http.StatusOK) // or a probe would end it
	r.Until(t, "the lag of the one server grows", func() bool {
		_, metrics := r.ask("/metrics")
		lags := regexp.MustCompile(`kith_replication_lag_seconds\{source="binlog [^"]+"\} (\S+)`).FindAllStringSubmatch(metrics, -1)
		growing := 0
		for _, lag := range lags {
			if seconds, err := strconv.ParseFloat(lag[1], 64); err == nil && seconds > 3 {
				growing++
			}
		}
		return len(lags) == 2 && growing == 1 && strings.Contains(metrics, `kith_degraded{part="replication"} 1`)
	})

	skipped := ""
	skipping := func() replicator { // the transaction that has not been skipped yet
		skips := regexp.MustCompile(`run: kith replicate (--skip=[^; ]+);`).FindAllStringSubmatch(r.Stderr(), -1)
		skipped = skips[slices.IndexFunc(skips, func(m []string) bool { return m[1] != skipped })][1]
		beside := launchReplicator(t, store, kithtest.Args(skipped))
		beside.Until(t, "it has skipped", func() bool {
			_, text := beside.ask("/readyz")
			return strings.Contains(text, `"state":"tailing"`) && strings.Contains(beside.Stderr(), "skipped what cannot be followed")
		})
		return beside
	}
	first := skipping()
	shards[1].exec(t, "DELETE FROM following") // comes back as it was, as from a dump
	end := r.Wait(t)
	lines := strings.Split(strings.TrimSpace(end.Stderr), "\n")
	if last := lines[len(lines)-1]; end.Code != 1 || !strings.HasPrefix(last, "kith: replication of ") || strings.Count(last, "is stopped at transaction") != 2 {
		t.Errorf("it ended with %d: %s", end.Code, last)
	}
	for _, pair := range [][2]storage.UserID{{users[1][0], users[1][1]}, {users[1][2], users[1][3]}} {
		e := storage.EdgeLookups[storage.Inverse].Read(t.Context(), s, storage.Pair{From: pair[0], To: pair[1]})[0].Value
		shards[1].exec(t, fmt.Sprintf("INSERT IGNORE INTO following (from_user_id, to_user_id, type, update_time) VALUES (%d, %d, %d, %d)", e.From, e.To, e.Type, e.UpdateTime))
	}

	first.tails(t, 1, 2) // it has taken over the second server, and stopped at the same transaction
	second := skipping()
	check.Equal(t, "the code, if it is asked to end", first.Interrupt(t).Code, 0)
	second.tails(t, 2, 2)
	kithtest.Ends(t, 0, kithtest.Args("reconcile", "full", "--repair"), store)
	check.That(t, isFollower(t, s, users[0][0], users[0][1]), "the row of follower has not come back")
	kithtest.Ends(t, 0, kithtest.Args("reconcile", "full"), store)
}

func follow(t *testing.T, s *sqlstore.Store, from, to storage.UserID) {
	t.Helper()
	edge := storage.Edge{From: from, To: to, Type: storage.Following, UpdateTime: storage.MicrosOf(time.Now())}
	must.OK(t, s.Apply(t.Context(), storage.Forward, []storage.Edge{edge}, storage.IfNewer)[0].Err)
}

// isFollower reports whether the row of a follow is on the other side.
func isFollower(t *testing.T, s *sqlstore.Store, from, to storage.UserID) bool {
	t.Helper()
	r := storage.EdgeLookups[storage.Inverse].Read(t.Context(), s, storage.Pair{From: from, To: to})[0]
	must.OK(t, r.Err)
	return r.Value.Type == storage.Following
}
