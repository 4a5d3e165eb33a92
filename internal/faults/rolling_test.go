package faults_test

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/testenv"
)

// stopDelay is the time of 30 checks of the load balancer.
const stopDelay = "3s"

// traffic is the requests of clients of a load balancer, and their answers.
type traffic struct {
	asked, failed, followed atomic.Int64
	first                   atomic.Pointer[string] // the first failure
	acknowledged            sync.Map               // edge
	stop                    func()
}

// start makes clients ask through the balancer, each with a pause after an answer. Every third request follows a user
// whom the client does not follow yet.
func (b *balancer) start(t *testing.T, d *deployment, viewers []int64, users int64, pause time.Duration) *traffic {
	t.Helper()
	load := new(traffic)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, viewer := range viewers {
		c := d.client(t)
		c.http.Transport = b
		running.Go(func() {
			next := int64(0)
			for n := 0; ctx.Err() == nil; n++ {
				query, variables := `query($id: ID!) { user(by: {id: $id}) { handle followings(first: 10) { nodes { handle } } } }`, map[string]any{"id": id(viewer)}
				follows := n%3 == 2 && next < users-1
				if follows {
					if next++; next == viewer {
						next++
					}
					query, variables = `mutation($id: ID!) { follow(userId: $id) { changed } }`, map[string]any{"id": id(next)}
				}
				a, err := c.ask(context.WithoutCancel(ctx), "http://balancer", viewer, "", query, variables)
				load.asked.Add(1)
				switch {
				case err != nil || len(a.Errors) > 0:
					load.failed.Add(1)
					text := fmt.Sprintf("%s: %v %+v", query, err, a.Errors)
					load.first.CompareAndSwap(nil, &text)
				case follows:
					load.followed.Add(1)
					load.acknowledged.Store(edge{viewer, next}, true)
				}
				time.Sleep(pause)
			}
		})
	}
	var once sync.Once
	load.stop = func() { once.Do(func() { cancel(); running.Wait() }) }
	t.Cleanup(load.stop)
	return load
}

// roll replaces one gateway: it is asked to stop, as a supervisor does, and is started again when it has ended.
func (b *balancer) roll(t *testing.T, i int) {
	t.Helper()
	n := b.gateways[i]
	l := n.now.Load()
	l.wasWell(t)
	l.Signal(syscall.SIGTERM)
	check.Equal(t, l.name, l.Wait(t).Code, 0)
	n.start(t)
	b.has(t, i, true)
}

// rolledWell checks that next to nothing failed, and that everything that was acknowledged exists on both sides.
func (load *traffic) rolledWell(t *testing.T, d *deployment, allowed float64) {
	t.Helper()
	load.stop()
	asked, failed := load.asked.Load(), load.failed.Load()
	t.Logf("%d requests, %d failed; %d follows", asked, failed, load.followed.Load())
	if float64(failed) > allowed*float64(asked) {
		t.Errorf("%d of %d requests failed, the first: %s", failed, asked, *load.first.Load())
	}
	count := func(table string) int64 { return d.total(t, "SELECT COUNT(*) FROM "+table) }
	rows := count("following")
	check.That(t, rows >= load.followed.Load() && rows <= load.followed.Load()+failed, "%d follows were acknowledged, there are %d", load.followed.Load(), rows)
	until(t, "follower has all", func() bool { return count("follower") == count("following") })
	d.allWell(t)
}

// TestRollingUpgrade replaces two gateways of this version by ones of the next, under load, one after the other. The first of the next
// migrates the tables while the other one of this version serves, and both write. No request fails. The long form then restarts
// gateways until 100,000 requests have been sent, of which at most one may fail.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	const users = 400
	next := kithtest.Next(t)
	d := prepare(t, testenv.SharedMariaDB(t, 2), "binlog", users)
	d.twoGateways("--stop-delay", stopDelay)
	d.start(t)
	b := d.balancer(t)
	pause := 30 * time.Millisecond // more requests would keep the processors from other tests
	if testenv.AllTests() {
		pause = 10 * time.Millisecond
	}
	load := b.start(t, d, append(d.onShard(0, 2), d.onShard(3, 1)...), users, pause)
	for i, n := range d.gateways {
		was := buildOf(t, n)
		n.options = append(n.options, next)
		b.roll(t, i)
		is := buildOf(t, n)
		check.That(t, is != was, "%s was %s and is still", n.name, was)
		beside := load.asked.Load()
		until(t, "requests to both versions", func() bool { return load.asked.Load() > beside+100 })
	}
	if testenv.AllTests() {
		for restarts := 0; load.asked.Load() < 100_000; restarts++ {
			b.roll(t, restarts%2)
		}
	}
	load.rolledWell(t, d, 1e-5)
}

// buildOf is the build that a gateway reports.
func buildOf(t *testing.T, n *node) string {
	t.Helper()
	return regexp.MustCompile(`(?m)^kith_build_info.*$`).FindString(n.now.Load().gateway.Metrics(t))
}
