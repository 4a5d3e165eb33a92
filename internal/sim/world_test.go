package sim

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/accounts/identity"
	"kith/cluster"
	"kith/graph/declared"
	"kith/internal/storagetest/oracle"
	"kith/reconcile"
	"kith/storage"
	"kith/storage/events"
)

// world is a deployment in a bubble.
type world struct {
	deployment
	seed    uint64
	began   time.Time
	shards  *oracle.Store
	history *history
	server  *server
	reader  *reader        // nil: the stores have no logs
	numbers atomic.Int64   // of posts and registered users
	running sync.WaitGroup // steps, and what they have left behind

	mu         sync.Mutex
	gateways   []*gateway
	dead       []*gateway
	floors     map[floor]int                // the version of a key that a gateway's answers have at least: its own writes
	acked      []storage.Row                // forward rows of writes that were answered
	away       time.Time                    // until when Redis has hung or been away
	cutOff     [2]time.Time                 // from when until when gateways alone were cut off from Redis
	killed     []time.Time                  // when gateways were
	doubts     map[storage.UserID]time.Time // when a commit about a user last got no answer
	late       map[storage.UserID]time.Time // and was executed later
	troubled   time.Time                    // when Redis last lost a command or a connection
	storeAway  time.Time                    // until when one of the databases is
	dbAway     [maxShards]time.Time         // until when each is
	executing  int                          // commits in doubt that are still to be executed, and those that are in a log first
	shown      time.Time                    // when one of those was last to be read
	logs       [maxShards]shardLog
	closed     *storage.BucketRange // to which nothing is written: they are moving
	opened     time.Time            // when that last ended
	moving     bool
	restored   bool
	lostAt     map[int]time.Time        // when a shard was last restored
	lost       time.Duration            // how long shards were, until their backups were restored
	restoring  [maxShards]bool          // nothing is written there until it is readmitted
	readmitted time.Time                // when one last was
	grown      [maxShards]chan struct{} // closed once there is the shard
	repaired   time.Time                // when gateways have surely forgotten what was before a repair
	writes     map[storage.UserID]counted
	asked      map[storage.UserID]int // how often users have written again and again
	sessions   []session
	lossy      map[storage.Pair]bool // edges whose copies the mode may have lost
	wroteAt    map[storage.Pair]time.Time
	failures   []failure
	trace      []string
	steps      int

	simulated time.Duration
}

// session is what a registration was answered.
type session struct {
	who    storage.Identity
	handle string
	user   storage.UserID
}

type floor struct {
	of *gateway
	key
}

// failure is a property that does not hold.
type failure struct{ property, text string }

// Properties, by what docs/reference/guarantees.md says.
const (
	nothingLost  = "an acknowledged write is never lost"
	ownWrites    = "the writer sees the write at once, on the gateway that answered it, on its own side"
	withToken    = "whoever sends the token sees the write at once, on any gateway and on both sides, or the answer says stale"
	everybody    = "everybody else sees it 100 ms later at most"
	hiddenSoon   = "nobody sees who is hidden after 5 s on any gateway, and everybody sees who is not"
	countsMatch  = "a count matches the rows that it counts"
	copiesAgree  = "the copies agree when all is quiet, but for what the mode may lose, and all of them after reconcile"
	answersAgree = "when all is quiet, all answers are the same"
	boundedWait  = "a request is answered"
	tokensEnd    = "tokens end within 5 s on any gateway"
	inOrder      = "a subscription sends what has been, in its order, each once"
	noneMissing  = "a subscription misses nothing that lasts"
	ratesHold    = "a user writes no more often than allowed, on all gateways together while Redis answers, and may write so often"
	allTold      = "a reader of the change stream gets every change that lasts, in the order of its log, and each once by its id"
	handlesAgree = "a handle leads to the user who has it, and an identity to the user whom it has registered"
)

func (w *world) fail(property, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, failure{property, fmt.Sprintf("%s: ", time.Since(w.began)) + fmt.Sprintf(format, args...)})
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note1(format, args...)
}

// note1 is note while the lock is held.
func (w *world) note1(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%s ", time.Since(w.began))+fmt.Sprintf(format, args...))
}

// run runs steps in a bubble and returns the world afterwards.
func run(t *testing.T, seed uint64, steps []step) (w *world) {
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, seed)
		is := deployments[seed%uint64(len(deployments))]
		shards := newShards(is.one)
		w = &world{
			deployment: is, seed: seed, began: time.Now(), shards: shards, floors: map[floor]int{}, lostAt: map[int]time.Time{},
			history: &history{shards: shards, versions: map[key][]version{}, posts: map[storage.PostID]time.Time{}, logged: map[int]logged{}, stood: map[storage.UserID]time.Time{}},
			writes:  map[storage.UserID]counted{}, asked: map[storage.UserID]int{}, lossy: map[storage.Pair]bool{}, wroteAt: map[storage.Pair]time.Time{},
			doubts: map[storage.UserID]time.Time{}, late: map[storage.UserID]time.Time{},
		}
		w.numbers.Store(1000)
		for i := range w.grown {
			if w.grown[i] = make(chan struct{}); i < shards.Shards() {
				close(w.grown[i])
			}
		}
		w.server = newServer(w)
		shards.OnCommit(w.committed)
		all := make([]storage.User, numberOfUsers)
		for i := range all {
			all[i] = storage.User{ID: storage.UserID(i + 1), Handle: fmt.Sprintf("user_%d", i+1), Name: "A"}
		}
		shards.CreateUsers(context.Background(), all)
		for i := range gateways {
			w.delay(10*time.Millisecond, "start", i) // what they do every second is at other moments
			w.gateways = append(w.gateways, w.start(fmt.Sprint(i), w.clockOf(i)))
		}
		time.Sleep(5 * time.Second)
		for i := range w.gateways {
			w.watch(i)
		}
		w.startReader()
		first := time.Now()
		for _, s := range steps {
			time.Sleep(time.Until(first.Add(s.at)))
			w.checkHidden()
			w.steps++
			w.running.Go(func() { w.do(s) })
		}
		w.running.Wait()
		w.quiet()
		if w.reader != nil {
			w.reader.stop()
		}
		for _, g := range append(w.gateways, w.dead...) {
			for _, c := range g.watchers {
				c.stop()
			}
			g.dead.Store(true)
			w.server.cut(g) // else closing could wait for a lock that is held until time passes, which a bubble does not see
			g.close()
		}
		w.server.redis.Close()
		w.simulated = time.Since(w.began)
		time.Sleep(2 * time.Second) // the library tries once more to connect
	})
	runtime.GC()
	return w
}

// watch subscribes users at a gateway.
func (w *world) watch(place int) {
	for _, what := range slices.Sorted(maps.Keys(watched)) {
		w.gateways[place].watch(storage.UserID(1+place), what)
	}
}

// Next makes the ids of users and the numbers of posts.
func (w *world) Next(context.Context) (storage.UserID, error) {
	return storage.UserID(w.numbers.Add(1)), nil
}

// apart is how much the clocks of two gateways may differ.
func (w *world) apart() time.Duration {
	if w.seed/uint64(len(deployments))%2 == 1 {
		return time.Second
	}
	return 40 * time.Second
}

// clockOf is how far a gateway's clock is ahead.
func (w *world) clockOf(place int) time.Duration {
	return time.Duration((w.chance("clock", place) - 0.5) * float64(w.apart()))
}

// requestTime is how long a request may take.
const requestTime = 10 * time.Second

// do does a step.
func (w *world) do(s step) {
	w.mu.Lock()
	g := w.gateways[s.gateway]
	w.mu.Unlock()
	if side, answers := map[string]storage.Side{accept: storage.Inbox, decline: storage.Inbox, withdraw: storage.Requests}[s.what]; answers {
		q := storage.PageQuery{Owner: s.user, Type: storage.Pending, Limit: 1}
		for _, e := range storage.PageLookups[side].Read(context.Background(), w.shards, q)[0].Value {
			s.other = side.Peer(e.Pair())
		}
	}
	a := &attempt{users: []storage.UserID{s.user, s.other}, refuse: s.refuse, doubt: s.doubt, late: s.late, at: map[key]int{}}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), attemptKey{}, a), requestTime)
	defer cancel()
	began := time.Now()
	defer w.mayLose(g, s)()
	one := []storage.UserID{s.other}
	change := func(changed []storage.Result[storage.Changed], _ bool, err error) {
		if r := changed[0]; r.Err != nil {
			err = r.Err
		}
		w.wrote(ctx, g, s, a, changed[0].Value.Written(), err)
	}
	state := func(_ bool, err error) { w.wrote(ctx, g, s, a, nil, err) }
	switch s.what {
	case follow:
		change(g.relations.Follow(ctx, g.reads(ctx), s.user, one))
	case unfollow:
		change(g.relations.Unfollow(ctx, s.user, one))
	case ask:
		o, err := g.relations.Ask(ctx, g.reads(ctx), s.user, s.other, "")
		state(o.Changed, err)
	case accept:
		o := g.relations.Accept(ctx, storage.Requests, s.user, s.other)[0]
		state(o.Value.Changed, o.Err)
	case decline:
		o, err := g.relations.Decline(ctx, s.user, s.other)
		state(o.Changed, err)
	case withdraw:
		o, err := g.relations.Cancel(ctx, s.user, s.other)
		state(o.Changed, err)
	case mute:
		detail := storage.DetailChange{EndsAt: storage.MicrosOf(time.Now().Add(time.Hour))}
		changed, stale := g.relations.Relate(ctx, g.reads(ctx), s.user, declared.Mutes, one, detail)
		change(changed, stale, nil)
	case unmute:
		changed, stale := g.relations.Unrelate(ctx, s.user, declared.Mutes, one)
		change(changed, stale, nil)
	case rename:
		name := fmt.Sprint("name at ", s.at)
		_, _, err := g.store.UpdateProfile(ctx, s.user, storage.ProfileChange{Name: &name}, storage.MicrosOf(g.now()))
		w.wrote(ctx, g, s, a, nil, err)
	case suspend, ahead:
		if s.what == ahead {
			g.ahead.Add(int64(15 * time.Minute))
			defer g.ahead.Add(-int64(15 * time.Minute))
		}
		_, changed, err := g.states.Moderate(ctx, storage.ModerationEntry{Owner: s.user, User: s.user, Action: storage.Suspended, By: "operator", Reason: "reason", Until: storage.Forever})
		state(changed, err)
	case reinstate:
		_, changed, err := g.states.Moderate(ctx, storage.ModerationEntry{Owner: s.user, User: s.user, Action: storage.Reinstated, By: "operator", Reason: "reason"})
		state(changed, err)
	case deactivate:
		state(g.states.SetOwn(ctx, s.user, storage.Deactivated))
	case reactivate:
		state(g.states.SetOwn(ctx, s.user, storage.Active))
	case publish:
		if g.states.MayAct(ctx, s.user) == nil {
			_, _, err := g.posts.Publish(ctx, s.user, storage.PostRow{Key: fmt.Sprint(s.other), Text: "text"})
			w.wrote(ctx, g, s, a, nil, err)
		}
	case unpublish:
		for _, post := range w.history.known() {
			if post.Author == s.user {
				_, err := g.posts.Delete(ctx, s.user, post)
				w.wrote(ctx, g, s, a, nil, err)
				break
			}
		}
	case register:
		w.register(ctx, g, s)
	case signOut:
		w.note("%s: %v", s, g.accounts.SignOutEverywhere(ctx, s.user))
	case write:
		w.writeOften(ctx, g, s)
	case read:
		w.read(ctx, g, s.key, s.user, nil)
	case cut:
		w.isTroubled()
		w.server.cut(g)
	case away:
		w.isStoreAway(s.only, began.Add(s.lasts))
	case purge:
		w.purge()
	case lost:
		w.restore(s)
		return
	case move:
		w.move(s)
		return
	case repair:
		w.repair()
		return
	case lose:
		w.isAway(began)
		w.mu.Lock()
		for pair, at := range w.wroteAt { // they may be in the stream
			w.lossy[pair] = w.lossy[pair] || w.Redundancy == cluster.Stream && began.Sub(at) < requestTime
		}
		w.mu.Unlock()
		w.server.lose()
	case down:
		w.isAway(began.Add(s.lasts))
		w.server.mu.Lock()
		w.server.down = true
		w.server.mu.Unlock()
		w.server.cut(nil)
		time.Sleep(s.lasts)
		w.server.mu.Lock()
		w.server.down = false
		w.server.mu.Unlock()
		return
	case hang, stall:
		w.isAway(began.Add(s.lasts))
		if s.what == hang {
			g = nil
		} else {
			w.isCutOff(began, s.lasts)
		}
		w.server.hang(g, s.lasts)
		return
	case kill: // with a commit of which nobody hears
		a.kills = true
		if name := fmt.Sprint("last name at ", s.at); s.user%2 == 0 {
			_, _, _ = g.store.UpdateProfile(ctx, s.user, storage.ProfileChange{Name: &name}, storage.MicrosOf(g.now()))
		} else {
			_, _, _ = g.relations.Follow(ctx, g.reads(ctx), s.user, one)
		}
		if !g.dead.Swap(true) { // it was not even written
			w.mu.Lock()
			w.killed = append(w.killed, time.Now())
			w.mu.Unlock()
		}
		w.kill(g, s.gateway)
		return
	}
	if took := time.Since(began); took > requestTime+time.Second && !g.dead.Load() {
		w.fail(boundedWait, "%s took %s", s, took)
	}
}

// isStoreAway has a shard away until a time, or all of them.
func (w *world) isStoreAway(shard int, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.storeAway = later(w.storeAway, until)
	for i := range w.dbAway {
		if i == shard%w.shards.Shards() || shard == allShards || w.one {
			w.dbAway[i] = later(w.dbAway[i], until)
		}
	}
}

// isAway notes until when Redis hangs or is away.
func (w *world) isAway(until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = later(w.away, until)
	w.troubled = later(w.troubled, until)
}

// isCutOff notes that a gateway alone is cut off.
func (w *world) isCutOff(began time.Time, lasts time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if began.After(later(w.cutOff[1], w.storeAway).Add(cutOffBound)) {
		w.cutOff[0] = began
	}
	w.cutOff[1] = later(w.cutOff[1], began.Add(lasts))
}

func (w *world) isTroubled() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.troubled = later(w.troubled, time.Now())
}

// repair runs `kith reconcile full --repair` as a process that is killed at its end: then the gateways forget everything.
func (w *world) repair() {
	w.mu.Lock()
	again := time.Now().Before(w.repaired)
	if !again {
		w.repaired = time.Now().Add(time.Hour)
	}
	w.mu.Unlock()
	if again {
		return
	}
	p := &gateway{world: w, name: "reconcile"}
	p.store, p.redis = &handle{Store: w.shards, of: p}, w.server.client(p)
	bus := cluster.EventsOf(p.store, p.redis, events.NewHub(nil), nil)
	p.caches = w.OpenCaches(cluster.CacheConfig{Store: p.store, Bus: bus, Redis: p.redis, Silent: true, Registerer: prometheus.NewRegistry()})
	stop := p.caches.Attend(context.Background(), true)
	report, err := reconcile.Full(context.Background(), reconcile.FullConfig{Store: p.store, Repair: true, Restart: true, MaxLoad: 1, Logger: slog.New(slog.DiscardHandler)})
	w.note("reconcile has repaired %d of %d: %v", report.Total()-report.Left(), report.Total(), err)
	p.dead.Store(true)
	w.server.cut(p)
	stop()
	p.caches.Close()
	_ = p.redis.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.repaired = time.Now().Add(forgets)
	w.killed = append(w.killed, time.Now())
}

// register has somebody whom a provider has signed in register: several with one identity, and several with one handle.
func (w *world) register(ctx context.Context, g *gateway, s step) {
	who := storage.Identity{Issuer: "https://provider", Subject: fmt.Sprint("subject ", s.user)}
	handle := fmt.Sprint("handle_", s.other/2)
	made, err := g.accounts.Register(identity.With(ctx, identity.Viewer{Identity: who}), handle, "Name", "")
	w.note("%s: %v", s, err)
	if err == nil && !g.dead.Load() {
		w.mu.Lock()
		w.sessions = append(w.sessions, session{who, handle, made.User})
		w.mu.Unlock()
	}
}

// writeOften writes more often than a user may.
func (w *world) writeOften(ctx context.Context, g *gateway, s step) {
	began, accepted := time.Now(), 0
	for range writesAMinute {
		w.mu.Lock()
		w.asked[s.user]++
		w.mu.Unlock()
		err := g.accounts.Limits.Write(ctx, s.user, "mutation", 1)
		w.mu.Lock()
		mayAsk := w.asked[s.user] <= writesAMinute && w.troubled.Before(began.Add(-time.Minute)) // a count may be sent twice
		w.mu.Unlock()
		switch {
		case err == nil:
			accepted++
		case mayAsk:
			w.fail(ratesHold, "gateway %s refuses user %d: %v", g.name, s.user, err)
		}
	}
	w.note("%s: %d accepted", s, accepted)
	if n := w.count(s.user, began, accepted, g.dead.Load()); n > writesAMinute {
		w.fail(ratesHold, "user %d wrote %d times in a minute", s.user, n)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// kill takes a gateway's connections and puts another one in its place.
func (w *world) kill(g *gateway, place int) {
	w.mu.Lock()
	again := slices.Contains(w.dead, g)
	if !again {
		w.dead = append(w.dead, g)
	}
	w.mu.Unlock()
	if again {
		return
	}
	w.server.cut(g)
	w.mu.Lock()
	for pair, n := range g.writing {
		w.lossy[pair] = w.lossy[pair] || n > 0
	}
	w.mu.Unlock()
	for _, c := range g.watchers {
		c.stop()
	}
	next := w.start(g.name+"'", w.clockOf(place))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gateways[place] = next
	w.watch(place)
}
