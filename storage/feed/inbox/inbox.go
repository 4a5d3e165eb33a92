// Package inbox keeps in Redis, for each active user, which posts are in its home feed: the newest 800,
// as candidates. A reader leaves out of a page the posts of users whom the viewer does not follow, posts that the viewer
// must not see, and posts that no longer exist. So the only thing that must not happen is that an inbox lacks a post.
// That is ensured as follows:
//
//   - Posts are copied in the order of time, by one gateway at a time, up to the time before which no post
//     may come any more ([recent.Posts.Through]). Only then [State.Done] rises. Readers take newer posts
//     from memory.
//   - An inbox is for certain followings: its head has their digest, and a reader with other followings does
//     not use it. So a follow, an unfollow, or an author who becomes hot ends it.
//   - The inboxes that a post goes to are in Redis as well: the fans of each author. The builder of an inbox adds its
//     user to the fans of all its authors; then it reads up to where posts are being copied (Doing), and fills in all
//     posts up to there by pull. For all newer posts, the user is among the fans. The replica `follower`, which may lag,
//     is not asked.
//   - A user is removed from the fans of an author only by the number of the build that has added it, when that build's
//     inbox is gone.
//   - All inboxes have the same number. A greater number ends them all: when a new epoch begins (Redis
//     is another process, or lost keys), when posts are missing in memory, or when a post came late.
//
// Copying a post twice does no harm, so if a gateway dies, another one continues from Done.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/epoch"
	"kith/storage/feed/recent"
)

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
	Pause time.Duration // between the builds of an inbox, at least 2 ms
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

	// lag keeps gateways that copy behind gateways that build inboxes: their clocks differ, and each gateway reads the
	// newest posts every 5 s.
	lag        = 10 * time.Second
	buildEvery = 10 * time.Second
	buildTakes = time.Minute
	// renewEvery: reading an inbox keeps it for Config.Bounds from then on, by one write in this time.
	renewEvery = 24 * time.Hour
)

// Boxes are the inboxes.
type Boxes struct {
	Config
	metrics *counters
	token   string // of the lease
	state   atomic.Pointer[State]
	late    atomic.Bool // all inboxes have to end
	waking  chan struct{}

	sweeps sweeps
}

// end ends all inboxes in the next round, and their use by this gateway at once.
func (b *Boxes) end() {
	b.late.Store(true)
	b.state.Store(nil)
	select {
	case b.waking <- struct{}{}:
	default:
	}
}

// New makes inboxes, which are used once Run has found out their state.
func New(c Config) *Boxes {
	c.Lag = cmp.Or(c.Lag, lag)
	c.Batch = cmp.Or(c.Batch, batch)
	c.Pause = cmp.Or(c.Pause, buildEvery)
	b := &Boxes{Config: c, token: strconv.FormatUint(rand.Uint64(), 36), waking: make(chan struct{}, 1)}
	b.metrics = newCounters()
	c.Recent.OnLate(b.end)
	return b
}

// State is what a gateway knows of all inboxes. It may be a second old, which is safe: Done only rises.
type State struct {
	name    string // of what they depend on: the epoch of Redis
	number  string
	epoch   *epoch.Epoch
	version string
	turns   map[storage.UserID]uint64 // how often an author has become hot, or is no longer: hot if the number is odd

	Done  storage.Micros // all posts up to there have been copied
	Doing storage.Micros // newer posts have not been copied
}

// Current is the state; nil if inboxes cannot be used now.
func (b *Boxes) Current() *State {
	s := b.state.Load()
	if s == nil || s.Done == 0 || !s.epoch.Holds() {
		return nil
	}
	return s
}

// Hot lists the followings whose posts are not copied.
func (s *State) Hot(followings []storage.UserID) (hot []storage.UserID) {
	if len(s.turns) == 0 {
		return nil
	}
	for _, id := range followings {
		if s.isHot(id) {
			hot = append(hot, id)
		}
	}
	return hot
}

func (s *State) isHot(id storage.UserID) bool { return s.turns[id]%2 == 1 }

// Run keeps the state, and copies posts whenever no other gateway does, until the context is done.
func (b *Boxes) Run(ctx context.Context) {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	var last *State
	for failing := false; ; {
		if s := b.state.Load(); s != nil { // before, because a round that is interrupted forgets it
			last = s
		}
		err := b.Tick(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			b.Logger.WarnContext(ctx, "home feeds do not use their inboxes until Redis answers", "error", err)
		}
		failing = err != nil
		select {
		case <-ticks.C:
		case <-b.waking:
		case <-ctx.Done():
			if last != nil { // another gateway need not wait for the lease to end
				_, _ = b.lead(context.WithoutCancel(ctx), last, "leave")
			}
			return
		}
	}
}

// Tick is one round of [Boxes.Run].
func (b *Boxes) Tick(ctx context.Context) error {
	leading := false
	if s := b.state.Load(); s != nil { // first, so that no other gateway changes what look finds
		leading, _ = b.lead(ctx, s, "take")
	}
	err := b.look(ctx)
	if s := b.state.Load(); err == nil && s != nil && leading {
		if err = b.copyNewest(ctx, s); errors.Is(err, errLost) || errors.Is(err, ErrNotNow) {
			err = nil
		}
	}
	if err != nil {
		b.fail(err)
	}
	return err
}

// fail stops the use of inboxes until the next round.
func (b *Boxes) fail(err error) {
	b.state.Store(nil)
	b.metrics.failures.Inc()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		b.Clock.Forget()
	}
}

// look finds out the state.
func (b *Boxes) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, working)
	defer cancel()
	now, name, err := b.name(ctx)
	if err != nil {
		return err
	}
	late := b.late.Swap(false)
	s, err := b.ask(ctx, name, late)
	if err != nil {
		b.late.Store(late || b.late.Load())
		return err
	}
	s.name, s.epoch = name, now
	if last := b.state.Load(); last != nil && last.number == s.number && last.version == s.version {
		s.turns = last.turns
	} else if s.turns, err = b.readTurns(ctx); err != nil {
		return err
	}
	if !b.late.Load() {
		b.state.Store(s)
	}
	return nil
}

// name changes as soon as Redis may have lost something.
func (b *Boxes) name(ctx context.Context) (*epoch.Epoch, string, error) {
	now, err := b.Clock.Now(ctx)
	if err != nil {
		return nil, "", err
	}
	lost, err := b.lost(ctx)
	return now, "3 " + lost + now.Name, err // gateways of another form of what is kept end these inboxes, and we theirs
}

// ask asks for the state. It ends all inboxes first if the epoch has changed, or if end is true.
func (b *Boxes) ask(ctx context.Context, name string, end bool) (*State, error) {
	got, err := look.EvalSha(ctx, b.Clock.Redis, []string{b.stateKey(), b.hotKey()}, name, int64(storage.MicrosOf(time.Now())), end).StringSlice()
	if err != nil {
		return nil, err
	}
	if len(got) != 4 {
		return nil, errors.New("the state of inboxes is incomplete")
	}
	s := &State{number: got[0], version: got[3]}
	for i, to := range []*storage.Micros{&s.Done, &s.Doing} {
		n, err := strconv.ParseInt(got[1+i], 10, 64)
		if err != nil {
			return nil, err
		}
		*to = storage.Micros(n)
	}
	return s, nil
}

func (b *Boxes) readTurns(ctx context.Context) (map[storage.UserID]uint64, error) {
	held, err := b.Clock.Redis.HGetAll(ctx, b.hotKey()).Result()
	turns := make(map[storage.UserID]uint64, len(held))
	for author, number := range held {
		id, errID := strconv.ParseInt(author, 10, 64)
		n, errNumber := strconv.ParseUint(number, 10, 64)
		if err := errors.Join(errID, errNumber); err != nil {
			return nil, err
		}
		turns[storage.UserID(id)] = n
	}
	return turns, err
}

// lost says how many keys Redis has evicted, if it may choose among all keys: then fans may be among them. Otherwise
// Redis evicts keys with a time to live: whole inboxes, whose absence is noticed.
func (b *Boxes) lost(ctx context.Context) (string, error) {
	var keys atomic.Int64
	err := epoch.EachMaster(ctx, b.Clock.Redis, func(ctx context.Context, one *redis.Client) error {
		info, err := one.Info(ctx).Result()
		if strings.HasPrefix(epoch.Field(info, "maxmemory_policy"), "allkeys") {
			evicted, _ := strconv.ParseInt(epoch.Field(info, "evicted_keys"), 10, 64)
			keys.Add(evicted)
		}
		return err
	})
	return strconv.FormatInt(keys.Load(), 10) + " ", err
}
