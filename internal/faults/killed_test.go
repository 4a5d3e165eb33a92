package faults_test

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

// TestKilledBeforeNotifying kills gateways between the commit of a write and the notification of
// the caches: before Redis is notified, or before the other gateways are notified. Soon after each
// kill, another gateway gives the same answers about the users of the write as a gateway without caches.
func TestKilledBeforeNotifying(t *testing.T) {
	t.Parallel()
	killsBeforeNotifying(t, 6, 4)
}

// TestLongKilledBeforeNotifying is the same with 200 kills in the mode sync, which has no log of writes to read. In stream and on SQLite,
// internal/sim kills gateways at the same moments.
func TestLongKilledBeforeNotifying(t *testing.T) {
	testenv.Long(t)
	killsBeforeNotifying(t, 200, 20)
}

func killsBeforeNotifying(t *testing.T, many, few int) {
	for _, c := range []struct {
		mode  string
		kills int
	}{{"sync", many}, {"binlog", few}} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			deployVictims(t, c.mode, c.kills).killAll(t)
		})
	}
}

// agreesWithin is how long after a kill a gateway may still give the old answer: in the mode binlog until the log has been
// read, otherwise until the lease of the killed gateway has ended, and a minute has passed since that of the one before.
func (v *victims) agreesWithin() time.Duration {
	if v.mode == "binlog" {
		return 5 * time.Second
	}
	return 75 * time.Second
}

// victims is a deployment with a gateway that keeps running, one without caches, and many gateways
// that write once and are killed.
type victims struct {
	*cachedDeployment
	cold  *life
	kills int

	stale, committed atomic.Int64 // how often the first look after a kill was old, and how many writes were committed
	mu               sync.Mutex
	longest          time.Duration
}

// victimsAtOnce is how many are started and killed at the same time, because a start waits for two seconds.
const victimsAtOnce = 20

func deployVictims(t *testing.T, mode string, kills int) *victims {
	t.Helper()
	v := &victims{kills: kills, cachedDeployment: prepareCached(t, mode, 2, 10+2*kills)}
	v.gateways = []*node{v.serving("the gateway that goes on", "--no-replicate", "--max-cost", "10000000")}
	if mode == "binlog" {
		v.replicators = []*node{v.serving("replicator")}
	}
	v.start(t)
	v.cold = v.cachedDeployment.cold(t)
	v.ready(t)
	return v
}

func (v *victims) killAll(t *testing.T) {
	began := time.Now()
	numbers := make(chan int, v.kills)
	for i := range v.kills {
		numbers <- i
	}
	close(numbers)
	var killers sync.WaitGroup
	for range min(victimsAtOnce, v.kills) {
		c := v.client(t)
		killers.Go(func() {
			for i := range numbers {
				if !t.Failed() {
					v.killOne(t, c, i)
				}
			}
		})
	}
	killers.Wait()
	c := v.client(t)
	for i := range v.kills { // and the answers stay equal
		if got, want := v.look(t, c, v.gateways[0].now.Load(), i), v.look(t, c, v.cold, i); got != want {
			t.Errorf("in the end, of write %d: %s", i, difference(got, want))
		}
	}
	// In the mode binlog the log usually notifies the other gateway before it is asked.
	if v.mode != "binlog" && v.stale.Load() < int64(v.kills/4) {
		t.Errorf("only after %d of %d kills did the other gateway show what was before: the test proves little", v.stale.Load(), v.kills)
	}
	v.allWell(t)
	t.Logf("%d kills in %v; after %d of them the other gateway showed what was before, for %v at most",
		v.kills, time.Since(began).Round(time.Millisecond), v.stale.Load(), v.longest.Round(time.Millisecond))
}

// pair are the users of a write.
func (v *victims) pair(i int) (from, to int64) { return int64(11 + 2*i), int64(12 + 2*i) }

// withoutChance is everything but suggestions, because those for newcomers are random.
var withoutChance = regexp.MustCompile(`user { followSuggestions.*} } } blocked`).ReplaceAllString(everything, "blocked")

// look is everything that a gateway shows of the users of a write.
func (v *victims) look(t *testing.T, c *client, l *life, i int) string {
	from, to := v.pair(i)
	variables := map[string]any{"ids": []string{id(from), id(to)}, "me": id(from)}
	return v.answerTo(t, c, l, from, withoutChance, variables) + v.answerTo(t, c, l, to, withoutChance, variables)
}

// write is the i-th write.
func (v *victims) write(i int) (query string, variables map[string]any) {
	_, to := v.pair(i)
	switch i % 5 {
	case 0:
		return `mutation { updateProfile(name: "Somebody else") { __typename } }`, nil
	case 1:
		return `mutation($id: ID!) { block(userId: $id) { __typename } }`, map[string]any{"id": id(to)}
	case 2:
		return `mutation($ids: [ID!]!) { followMany(userIds: $ids) { __typename } }`, map[string]any{"ids": []string{"1", id(to)}}
	}
	return `mutation($id: ID!) { follow(userId: $id) { __typename } }`, map[string]any{"id": id(to)}
}

// killOne starts a gateway, lets it write, and kills it before it has reported the write.
func (v *victims) killOne(t *testing.T, c *client, i int) {
	from, _ := v.pair(i)
	other := v.gateways[0].now.Load()
	way := testenv.NewLink(t, v.redis.Addr())
	victim := v.serving(fmt.Sprint("victim ", i), "--no-replicate", "--redis", "redis://"+way.Addr+"/0")
	victim.start(t)
	before := v.look(t, c, other, i) // this is in Redis, and in the memory of the other gateway
	if again := v.look(t, c, other, i); again != before {
		t.Errorf("write %d: nobody has written, and %s", i, difference(before, again))
	}
	sprung := way.SilenceAt(changedScript(t), "{"+id(from)+"}:user") // before Redis is notified
	switch {
	case i%2 == 0:
	case v.mode == "sync":
		sprung = way.SilenceAt("publish") // before the other gateways are notified
	}
	answered := make(chan struct{}) // usually because the victim is killed
	go func() {
		defer close(answered)
		query, variables := v.write(i)
		answer, err := v.client(t).ask(t.Context(), victim.now.Load().gateway.URL, from, "", query, variables)
		check.That(t, err != nil || answer.code() == "", "write %d: %+v", i, answer.Errors)
	}()
	select {
	case <-sprung:
	case <-answered: // on a very busy machine
		t.Logf("write %d was answered before it could be killed", i)
	case <-time.After(patience):
		t.Errorf("write %d: it notified nobody", i)
	}
	victim.kill(t)
	killed := time.Now()
	<-answered
	way.Cut()
	for first := true; ; first = false {
		asked := time.Since(killed)
		got, want := v.look(t, c, other, i), v.look(t, c, v.cold, i)
		if first && want != before {
			v.committed.Add(1)
		}
		if got == want {
			check.That(t, want != before, "write %d: it has changed nothing", i)
			v.mu.Lock()
			v.longest = max(v.longest, asked)
			v.mu.Unlock()
			return
		}
		if first {
			v.stale.Add(1)
		}
		if asked > v.agreesWithin() {
			t.Errorf("write %d: %v after the kill the other gateway shows %s", i, asked, difference(got, want))
			return
		}
		time.Sleep(500 * time.Millisecond) // both answers are of many fields, and other victims share the machine
	}
}

// changedScript is the name that Redis uses for the script that notifies it of a change.
func changedScript(t testing.TB) string {
	sum := sha1.Sum(must.File(t, "../../storage/cache/rediscache/lua/changed.lua"))
	return hex.EncodeToString(sum[:])
}
