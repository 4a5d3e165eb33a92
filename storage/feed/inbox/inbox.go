// Package inbox keeps in Redis, for each active user, which posts are in its home feed: the newest 800, as candidates. A page is found
// among them by the same query as among recent posts in memory. So the only thing that must not happen is that an inbox lacks a post.
// That is ensured as follows:
//
//   - Posts are copied in the order of time, by one gateway at a time, up to the time before which no post may come any more
//     ([recent.Posts.Through]). Only then [State.Done] rises. Readers take newer posts from memory.
//   - An inbox is for certain followings: its head has their digest, and a reader with other followings does not use it. So a follow,
//     an unfollow, or an author who becomes hot ends it.
//   - The inboxes that a post goes to are in Redis as well: the fans of each author. The builder of an inbox adds its user to the fans
//     of all its authors; then it reads up to where posts are being copied ("doing"), and fills in all posts up to there by pull. For
//     all newer posts, the user is among the fans. The replica `follower`, which may lag, is not asked.
//   - A fan is a user with the number of a build. It is removed once the user's inbox is not of that build.
//   - All inboxes have the same number, which is in their digests. A greater number ends them all: when a new epoch begins (Redis is
//     another process, or lost keys), when posts are missing in memory, or when a post came late.
//
// Copying a post twice does no harm, so if a gateway dies, another one continues from Done.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/epoch"
	"kith/storage/feed/recent"
)

// How home feeds are found: merged when they are read; copied for active users; copied except for posts of hot authors.
const Pull, Push, Hybrid = "pull", "push", "hybrid"

// Config says where inboxes are, and for whom.
type Config struct {
	Clock  *epoch.Clock // its Redis, and its prefix of keys
	Counts storage.Answerer
	Recent *recent.Posts
	Logger *slog.Logger

	// Bounds may change while inboxes are kept. hot is how many followers make an author hot: its posts are not copied. It is hot
	// until it has fewer than half as many. 0: no author is hot. active is how long an inbox is kept after its user has last read it.
	Bounds func() (hot int64, active time.Duration)

	// Values that tests change; zero stands for those below.
	Lag   time.Duration // behind recent.Posts.Through
	Pause time.Duration // between the builds of an inbox
	Batch int           // how many commands are sent together
}

// Bounds.
const (
	// Capacity is how many posts an inbox has.
	Capacity = 800
	batch    = 500

	tick    = time.Second
	lease   = 5 * time.Second
	answers = 100 * time.Millisecond // how long Redis may take for a page
	working = time.Second            // in the background

	// lag keeps gateways that copy behind gateways that build inboxes: clocks differ, and each reads the newest posts every 5 s.
	lag        = 10 * time.Second
	buildEvery = 10 * time.Second
	buildTakes = time.Minute
	mostWanted = 1000 // builds that wait: if there are more, a later page asks again
	// renewEvery: reading an inbox keeps it for Config.Bounds from then on, by one write in this time, or in half the bound if
	// that is less.
	renewEvery = 24 * time.Hour
)

// ErrNotNow: another gateway copies posts, or an inbox is not built, because it is there, a build has begun a short while ago, or
// inboxes have ended meanwhile.
var ErrNotNow = errors.New("not now")

// Boxes are the inboxes.
type Boxes struct {
	Config
	counters
	Asked chan storage.UserID // whose inboxes are to be built, see [Boxes.Ask]

	token string // of the lease
	state atomic.Pointer[State]
	late  int64 // how many posts had come late when inboxes last ended; -1: they have to end

	sweeping sync.Mutex
	swept    map[string]uint64 // how far each server has been searched for fans who have no inbox any more
}

// New makes inboxes, which are used once Run has found out their state. There is one Boxes in a process.
func New(c Config, registerer prometheus.Registerer) *Boxes {
	c.Lag = cmp.Or(c.Lag, lag)
	c.Batch = cmp.Or(c.Batch, batch)
	c.Pause = cmp.Or(c.Pause, buildEvery)
	b := &Boxes{
		Config: c, token: strconv.FormatUint(rand.Uint64(), 36), late: c.Recent.Late(),
		Asked: make(chan storage.UserID, mostWanted), swept: map[string]uint64{},
	}
	b.count(registerer)
	return b
}

// State is what a gateway knows of all inboxes. It may be a second old, which is safe: Done only rises.
type State struct {
	name    string // of what they depend on: the epoch of Redis
	epoch   *epoch.Epoch
	number  int64
	late    int64 // of Boxes
	leads   bool  // this gateway copies posts
	version string
	turns   map[storage.UserID]uint64 // how often an author has become hot, or is no longer: hot if the number is odd

	Done storage.Micros // all posts up to there have been copied
}

// Current is the state; nil if inboxes cannot be used now.
func (b *Boxes) Current() *State {
	s := b.state.Load()
	if s == nil || s.Done == 0 || s.late != b.Recent.Late() || !s.epoch.Holds() {
		return nil
	}
	return s
}

// Hot lists the followings whose posts are not copied.
func (s *State) Hot(followings []storage.UserID) []storage.UserID {
	return storage.Filter(followings, s.isHot)
}

func (s *State) isHot(id storage.UserID) bool { return s.turns[id]%2 == 1 }

// Run keeps the state, and copies posts whenever no other gateway does, until the context is done.
func (b *Boxes) Run(ctx context.Context) {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for failing := false; ctx.Err() == nil; {
		err := b.Tick(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			b.Logger.WarnContext(ctx, "home feeds do not use their inboxes until Redis answers", "error", err)
		}
		failing = err != nil
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
}

// Tick is one round of [Boxes.Run].
func (b *Boxes) Tick(ctx context.Context) error {
	for {
		more := false
		s, err := b.look(ctx)
		if err == nil && s.leads {
			more, err = b.copyNewest(ctx, s)
		}
		if err != nil && !errors.Is(err, ErrNotNow) {
			b.fail(err)
			return err
		}
		if !more {
			return nil
		}
	}
}

// fail stops the use of inboxes until the next round.
func (b *Boxes) fail(err error) {
	b.state.Store(nil)
	b.failures.Inc()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		b.Clock.Forget()
	}
}

// look finds out the state, and takes the lease of who copies unless another has it.
func (b *Boxes) look(ctx context.Context) (*State, error) {
	ctx, cancel := context.WithTimeout(ctx, working)
	defer cancel()
	now, name, err := b.name(ctx)
	if err != nil {
		return nil, err
	}
	s := &State{name: name, epoch: now, late: b.Recent.Late()}
	got, err := round.EvalSha(ctx, b.Clock.Redis, []string{b.stateKey(), b.hotKey(), b.leaseKey()},
		name, int64(storage.MicrosOf(time.Now())), s.late != b.late, b.token, lease.Milliseconds()).StringSlice()
	if err != nil || len(got) != 4 {
		return nil, cmp.Or(err, errors.New("the state of inboxes is incomplete"))
	}
	b.late = s.late
	s.number, s.Done, s.version, s.leads = numberOf(got[0]), storage.Micros(numberOf(got[1])), got[2], got[3] == b.token
	if last := b.state.Load(); last != nil && last.number == s.number && last.version == s.version {
		s.turns = last.turns
	} else {
		turns, err := b.Clock.Redis.HGetAll(ctx, b.hotKey()).Result()
		if err != nil {
			return nil, err
		}
		s.turns = map[storage.UserID]uint64{}
		for author, n := range turns {
			s.turns[storage.UserID(numberOf(author))] = uint64(numberOf(n))
		}
	}
	b.state.Store(s)
	return s, nil
}

// name changes as soon as Redis may have lost fans: with its epoch and, if it may choose among all keys, whenever it has evicted one.
// Otherwise Redis evicts keys with a time to live: whole inboxes, whose absence is noticed.
func (b *Boxes) name(ctx context.Context) (*epoch.Epoch, string, error) {
	now, err := b.Clock.Now(ctx)
	if err != nil {
		return nil, "", err
	}
	var evicted atomic.Int64
	err = epoch.EachMaster(ctx, b.Clock.Redis, func(ctx context.Context, one *redis.Client) error {
		info, err := one.Info(ctx).Result()
		if strings.HasPrefix(epoch.Field(info, "maxmemory_policy"), "allkeys") {
			evicted.Add(numberOf(epoch.Field(info, "evicted_keys")))
		}
		return err
	})
	return now, fmt.Sprint("4 ", evicted.Load(), " ", now.Name), err // gateways of another form of what is kept end these inboxes, and we theirs
}
