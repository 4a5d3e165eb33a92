package rediscache

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sleep"
)

// TestRandomHistory lets clients of two gateways follow, unfollow and read, while Redis is
// flushed, killed, frozen and rolled back to old data.
//
//   - Always: a writer sees its own writes on the gateway that it wrote on.
//   - Without faults: it sees them on the other gateway as well, at most 100 ms later.
//   - At the end both gateways agree with the store about everything.
func TestRandomHistory(t *testing.T) {
	t.Parallel()
	for _, faults := range []bool{false, true} {
		name := map[bool]string{false: "quiet", true: "with faults"}[faults]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runHistory(t, faults)
		})
	}
}

func runHistory(t *testing.T, faults bool) {
	const clients = 32
	length := 5 * time.Second
	if os.Getenv("KITH_TEST_LONG") == "1" {
		length = time.Minute
	}
	// Each client is one user, who follows stars and other clients.
	var everybody, peers []storage.UserID
	for id := range storage.UserID(clients) {
		everybody = append(everybody, 100+id)
	}
	peers = append([]storage.UserID{1, 2, 3, 4}, everybody[:8]...)
	everybody = append(everybody, 1, 2, 3, 4, 404)
	s := newSource(t, everybody[:clients+2]...) // 3 and 4 have only counts, and 404 has nothing
	server, a, b := pair(t, s, func(c *Cache) {
		c.mostLate = 20
		if c.timeout = 5 * time.Second; faults { // without faults, no change may come late
			c.timeout = timeout
		}
	})
	gateways := []*Cache{a, b}

	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var steps, worst atomic.Int64
	for i := range clients {
		load.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 30))
			c := &client{t: t, s: s, me: storage.UserID(100 + i), follows: map[storage.UserID]bool{}}
			for ctx.Err() == nil && !t.Failed() {
				own, other := gateways[i%2], gateways[1-i%2]
				c.step(own, peers[random.IntN(len(peers))], everybody[random.IntN(len(everybody))])
				if !faults {
					took := c.seenOn(other)
					for w := worst.Load(); took > w && !worst.CompareAndSwap(w, took); w = worst.Load() {
					}
				}
				steps.Add(1)
			}
		})
	}
	hits := func() (n float64) {
		for _, c := range gateways {
			n += c.looked("user", "hit") + c.looked("following", "hit") + c.looked("follower", "hit")
		}
		return n
	}
	end := time.Now().Add(length)
	if faults {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 31))
		rollBack := saved(t, server)
		for time.Now().Before(end) && !t.Failed() {
			_ = sleep.For(ctx, time.Duration(random.IntN(800))*time.Millisecond)
			switch random.IntN(6) {
			case 0:
				admin(t, server).FlushAll(ctx)
			case 1:
				server.Kill(t)
				_ = sleep.For(ctx, time.Duration(random.IntN(300))*time.Millisecond)
				server.Restart(t)
			case 2:
				server.Freeze(t)
				_ = sleep.For(ctx, time.Duration(random.IntN(300))*time.Millisecond)
				server.Thaw(t)
			case 3:
				rollBack = saved(t, server)
			case 4:
				rollBack()
			case 5:
				admin(t, server).ScriptFlush(ctx)
			}
		}
	} else {
		for time.Now().Before(end) && !t.Failed() {
			_ = sleep.For(ctx, 10*time.Millisecond)
		}
	}
	// On a busy machine the gateways may have given up on Redis for most of the time.
	must.Soon(t, "100 values were found in Redis", func() bool { return t.Failed() || steps.Load() >= 100 && hits() >= 100 })
	stop()
	load.Wait()
	must.Soon(t, "all is reported", func() bool { return !a.Behind() && !b.Behind() })
	for _, c := range gateways {
		c.idle(t)
		c.agrees(t, s, everybody...)
	}
	t.Logf("%d steps, %v epochs, %v look-ups of users hit; on the other gateway old for %s at most", steps.Load(), epochs(gateways), a.looked("user", "hit"), time.Duration(worst.Load()))
	check.That(t, time.Duration(worst.Load()) <= 100*time.Millisecond, "the other gateway did not have it after %s", time.Duration(worst.Load()))
}

func epochs(gateways []*Cache) (names []string) {
	for _, c := range gateways {
		if e, err := c.clock.Known(context.Background()); err == nil {
			names = append(names, e.Name)
		}
	}
	return names
}

// client is one user. Only this client writes the user's follows.
type client struct {
	t       *testing.T
	s       *source
	me      storage.UserID
	follows map[storage.UserID]bool
	last    storage.UserID // the user it has followed or unfollowed last
	asked   time.Time      // the time of its last question
}

// step writes, and checks everything that follows from the write, and another user as well.
func (c *client) step(own *Cache, peer, somebody storage.UserID) {
	if peer == c.me {
		return
	}
	kind := storage.Following
	if c.follows[peer] {
		kind = storage.None
	}
	c.s.write(c.t, c.me, peer, kind)
	c.follows[peer], c.last = kind == storage.Following, peer
	own.Changed(context.Background(), c.s.both(c.me, peer))
	text := c.missing(own)
	check.That(c.t, text == "", "user %d, %v to %d: %s", c.me, kind, peer, text)
	own.profile(c.t, somebody)
	own.list(c.t, storage.Inverse, whole(somebody))
}

// missing returns which of the client's changes a gateway does not show.
func (c *client) missing(on *Cache) string {
	ctx := context.Background()
	c.asked = time.Now()
	mine := storage.SnapshotLookups[storage.Forward].Read(ctx, on, whole(c.me))[0]
	n := 0
	for _, e := range mine.Value.Edges {
		if (e.Type == storage.Following) != c.follows[e.To] {
			return "its own list is old"
		}
		if e.Type == storage.Following {
			n++
		}
	}
	for _, follows := range c.follows {
		if follows {
			n--
		}
	}
	if mine.Err != nil || n != 0 {
		return "its own list lacks somebody"
	}
	c.asked = time.Now()
	profile := storage.ProfileLookups.Read(ctx, on, c.me)[0]
	follows := int64(0)
	for _, f := range c.follows {
		if f {
			follows++
		}
	}
	if profile.Err != nil || profile.Value.Counts.Following != follows {
		return "its own count is old"
	}
	c.asked = time.Now()
	followers := storage.SnapshotLookups[storage.Inverse].Read(ctx, on, whole(c.last))[0]
	at := slices.IndexFunc(followers.Value.Edges, func(e storage.Edge) bool { return e.From == c.me })
	if followers.Err != nil || at < 0 || (followers.Value.Edges[at].Type == storage.Following) != c.follows[c.last] {
		return "the followers are old"
	}
	return ""
}

// seenOn returns how long after the change another gateway was asked and still did not show it,
// in nanoseconds. How long it took to answer does not count.
func (c *client) seenOn(other *Cache) int64 {
	if c.last == 0 {
		return 0
	}
	began := time.Now()
	var stale time.Duration
	for {
		text := c.missing(other)
		if text == "" {
			return int64(stale)
		}
		if stale = c.asked.Sub(began); stale > 5*time.Second {
			c.t.Errorf("user %d, on the other gateway: %s", c.me, text)
			return 0
		}
	}
}
