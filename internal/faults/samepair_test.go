package faults_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
)

// TestSamePair has 16 connections follow and unfollow the same pair at the same time, through both
// gateways and in both directions. Nobody sees an error, the edge ends in one of the two states,
// and the counts are exact.
func TestSamePair(t *testing.T) {
	t.Parallel()
	const connections, times = 16, 10
	inEach(t, []string{"sync", "binlog"}, func(t *testing.T, mode string) { // in stream a gateway writes the same as in binlog
		d := deploy(t, mode, 100)
		// If both users share a shard, one transaction locks the counts of both.
		near, far := d.onShard(0, 2), d.onShard(1, 1)[0]
		h := newHistory()
		t.Run("one shard", func(t *testing.T) { d.fight(t, h, edge{near[0], near[1]}, connections, times) })
		t.Run("two shards", func(t *testing.T) { d.fight(t, h, edge{near[0], far}, connections, times) })
	})
}

func (d *deployment) fight(t *testing.T, h *history, pair edge, connections, times int) {
	fields := []string{"follow", "unfollow", "removeFollower", "followMany"}
	seed := seedOf(t)
	results := make([][]result, connections)
	var writers sync.WaitGroup
	for i := range connections {
		c := d.client(t)
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		writers.Go(func() {
			for range times {
				o := operation{field: fields[random.IntN(len(fields))], viewer: pair.from, targets: []int64{pair.to}}
				if random.IntN(3) == 0 {
					o.viewer, o.targets = pair.to, []int64{pair.from}
				}
				results[i] = append(results[i], o.send(t.Context(), c, d.gateways[i%2].now.Load()))
			}
		})
	}
	writers.Wait()

	changes := 0
	var took []time.Duration
	for _, list := range results {
		for _, r := range list {
			took = append(took, r.ended.Sub(r.began))
			check.That(t, r.err == nil && r.code == "" && r.done && !r.stale, "%v: %v %s %s, stale: %v", r.operation, r.err, r.code, r.message, r.stale)
			must.OK(t, r.note(h))
			changes += len(r.changes)
		}
	}
	slices.Sort(took)
	t.Logf("%d operations took %v at the median, %v at most", len(took), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	check.Least(t, "changes", changes, connections)
	h.alternates(t)
	d.quiet(t, h)
	found := d.tables(t)
	if different := h.judge(t, found); len(different) > 0 {
		t.Errorf("%v differ: %+v; %s", different, found, h.story(t, different[0]))
	}
	d.countsAreExact(t)
}

// alternates checks that the changes of each edge, in the order of their versions, are follow,
// unfollow, follow …: each change was decided on the state that the previous one had left.
func (h *history) alternates(t *testing.T) {
	t.Helper()
	for e, list := range h.answered {
		follows := false
		for _, version := range slices.Sorted(maps.Keys(list)) {
			if list[version].follows == follows {
				t.Errorf("%v: at %d it was changed to what it was, follows: %v; %s", e, version, follows, h.story(t, e))
			}
			follows = list[version].follows
		}
	}
}
