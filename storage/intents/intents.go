// Package intents keeps in Redis which users writers are about to change, from before a
// write begins until all caches have been told of it. What is still there when nobody
// stands by it any more belongs to a writer that has died, or is stuck, perhaps between
// its commit and telling. Any process on the same store then does the telling for it.
//
// Intents lie in one sorted set: what is about to be changed, scored by when somebody has
// to look after it. A writer adds it with the score 0. Whoever sweeps first sees it gives
// it a time by the clock of Redis; so those of the gateways do not matter. The writer's
// process adds it anew twice a second while the write is under way.
package intents

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
)

// Config says where intents are kept and who is told of those that are left behind.
type Config struct {
	Redis redis.UniversalClient
	Key   string

	// Sweep tells all caches that users may have changed; with none, that all may have.
	// done is called once all have been told.
	Sweep func(ctx context.Context, users []storage.UserID, done func())

	// Metrics counts. Defaults to none.
	Metrics *Metrics
}

const (
	// sweepEvery is how often a process stands by its own intents, and looks for others'.
	sweepEvery = 500 * time.Millisecond

	// orphaned is how long after it was first seen an intent is swept that nobody has
	// stood by, and how long after that again.
	orphaned = 1500 * time.Millisecond

	// lateCommits is how old an intent gets when nobody stands by it. A writer that has died
	// may have sent its COMMIT, which the database has still to do. No statement of a write
	// commits by itself.
	lateCommits = 30 * time.Second

	// longestWrite is how long a write is stood by: one that takes longer has been forgotten.
	longestWrite = 10 * time.Minute

	// maxSwept is how many intents are swept one by one. If more are due, everything is
	// taken as changed. With it the set is bounded, too.
	maxSwept = 2000

	// timeout ends an exchange with Redis; on a busy machine a new connection takes a while.
	// After a failure writers do without for some time, and the next exchange is a short one.
	timeout      = time.Second
	timeoutAgain = 100 * time.Millisecond
	leftAlone    = 500 * time.Millisecond

	// An intent waits for others for a half of the time that writes take until they commit;
	// a commit that comes earlier does not wait.
	shortGather = time.Millisecond
	longGather  = 50 * time.Millisecond

	// maxOpen bounds what is under way, or has not been told since Redis does not answer. What
	// does not fit is not noted.
	maxOpen = 10_000

	// maxRemovals bounds what waits to be removed. What does not fit is swept.
	maxRemovals = 100_000
)

// Log is what a process writes down in Redis. A nil Log writes nothing.
type Log struct {
	cfg      Config
	instance uint64
	close    func()

	mu      sync.Mutex
	number  uint64
	open    map[*Intent]bool
	adding  []*Intent     // for the next exchange
	removal []any         // members
	sending bool          // an exchange is under way
	planned bool          // one will be begun
	urgent  bool          // somebody waits for the next one
	sent    time.Time     // when the last one began
	span    time.Duration // from a beginning to the commit, on average
	failing bool          // the last exchange failed
	until   time.Time     // Redis is left alone until then
}

// Intent is the users of one write.
type Intent struct {
	log    *Log
	users  []storage.UserID
	member string
	begun  time.Time
	kept   time.Time // when Redis last had it
	queued bool      // for the next exchange
	noted  chan struct{}
}

// Open makes a log and sweeps in the background until it is closed.
func Open(cfg Config) *Log {
	if cfg.Metrics == nil {
		cfg.Metrics = newMetrics()
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Log{cfg: cfg, instance: rand.Uint64(), open: map[*Intent]bool{}}
	ended := make(chan struct{})
	go func() { defer close(ended); l.run(ctx) }()
	l.close = func() { cancel(); <-ended }
	return l
}

// Close ends the sweeping. Intents that are still open are left to others.
func (l *Log) Close() {
	if l != nil {
		l.close()
	}
}

// Begin has it written down who is about to be changed; nobody stands for everybody. That
// takes place beside what the writer does next, up to [Intent.Wait]. Each intent is to be
// ended by Done or Leave.
func (l *Log) Begin(users []storage.UserID) *Intent {
	if l == nil {
		return nil
	}
	in := &Intent{log: l, users: users, begun: time.Now(), noted: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	in.member = encode(l.instance, l.number, in.begun, users)
	if len(l.open) >= maxOpen {
		l.cfg.Metrics.noted.WithLabelValues("skipped").Inc()
		return nil
	}
	l.open[in] = true
	if in.begun.Before(l.until) {
		close(in.noted)
		l.cfg.Metrics.noted.WithLabelValues("skipped").Inc()
		return in
	}
	l.add(in)
	l.plan(in.begun)
	return in
}

// add has an intent added with the next exchange. The lock is held.
func (l *Log) add(in *Intent) {
	if !in.queued {
		in.queued = true
		l.adding = append(l.adding, in)
	}
}

// plan sees that what waits is sent. The lock is held.
func (l *Log) plan(now time.Time) {
	if l.sending || l.planned {
		return
	}
	l.planned = true
	gather := min(max(l.span/2, shortGather), longGather)
	if pause := gather - now.Sub(l.sent); pause > 0 {
		time.AfterFunc(pause, l.flush)
	} else {
		go l.flush()
	}
}

// flush sends what waits, unless somebody else does.
func (l *Log) flush() {
	l.mu.Lock()
	l.planned = false
	mine := !l.sending && len(l.adding) > 0
	l.sending = l.sending || mine
	l.mu.Unlock()
	if mine {
		l.exchange()
	}
}

// Wait returns when Redis has an intent, or does not answer: then the write goes on without.
// It is called before the commit.
func (in *Intent) Wait() {
	if in == nil {
		return
	}
	l := in.log
	l.mu.Lock()
	l.span += (time.Since(in.begun) - l.span) / 8
	select {
	case <-in.noted:
		l.mu.Unlock()
		return
	default:
	}
	mine, waits := !l.sending, in.queued // otherwise it is under way
	l.urgent = l.urgent || waits
	l.sending = l.sending || waits
	l.mu.Unlock()
	if mine && waits {
		l.exchange()
	}
	<-in.noted
}

// Covers tells whether an intent says of all these users that they are about to be changed.
func (in *Intent) Covers(users []storage.UserID) bool {
	for _, id := range users {
		if !slices.Contains(in.users, id) {
			return false
		}
	}
	return len(users) > 0
}

// Done takes an intent away: all caches have been told of the write, or nothing was written.
func (in *Intent) Done() {
	if in == nil {
		return
	}
	l := in.log
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, in)
	if !in.kept.IsZero() {
		l.remove(in.member)
	}
}

// Leave stands by an intent no longer. It is swept soon, by whoever comes first.
func (in *Intent) Leave() {
	if in == nil {
		return
	}
	in.log.mu.Lock()
	defer in.log.mu.Unlock()
	delete(in.log.open, in)
}

// remove has a member removed with the next exchange. The lock is held.
func (l *Log) remove(member string) {
	if len(l.removal) < maxRemovals {
		l.removal = append(l.removal, member)
	}
}

// exchange sends what waits. What somebody has waited for meanwhile is sent after it, by
// nobody's writer.
func (l *Log) exchange() {
	if l.send() {
		go func() {
			for l.send() {
			}
		}()
	}
}

// send sends what waits in one exchange, and tells whether somebody waits for the next.
func (l *Log) send() (more bool) {
	l.mu.Lock()
	patience := timeout
	if l.failing {
		patience = timeoutAgain
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	pipe := l.cfg.Redis.Pipeline()
	landed := l.take(ctx, pipe)
	l.mu.Unlock()
	_, err := pipe.Exec(ctx)
	return landed(err)
}

// Board adds what waits to a pipeline that is about to be sent, for others than its own
// exchanges cost nothing more. landed is to be called with how that went.
func (l *Log) Board(ctx context.Context, pipe redis.Pipeliner) (landed func(error)) {
	if l == nil {
		return func(error) {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sending || len(l.adding) == 0 {
		return func(error) {}
	}
	l.sending = true
	take := l.take(ctx, pipe)
	return func(err error) {
		if take(err) {
			go l.exchange()
		}
	}
}

// take adds all that waits to a pipeline: intents to the set, and others from it. What it
// returns is to be called with how that went, and tells whether somebody waits for more. The
// lock is held, and sending set.
func (l *Log) take(ctx context.Context, pipe redis.Pipeliner) (landed func(error) (more bool)) {
	adding, removal := l.adding, l.removal
	l.adding, l.removal, l.urgent = nil, nil, false
	l.sent = time.Now()
	adding = slices.DeleteFunc(adding, func(in *Intent) bool { return !l.open[in] && in.kept.IsZero() }) // nothing was written
	members := make([]redis.Z, len(adding))
	for i, in := range adding {
		in.queued, in.kept = false, l.sent // it may have come there also where no answer did
		members[i].Member = in.member
	}
	if len(members) > 0 {
		pipe.ZAdd(ctx, l.cfg.Key, members...)
	}
	if len(removal) > 0 {
		pipe.ZRem(ctx, l.cfg.Key, removal...)
	}
	return func(err error) bool {
		outcome := "noted"
		if err != nil {
			outcome = "failed"
		}
		l.cfg.Metrics.noted.WithLabelValues(outcome).Add(float64(len(adding)))
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.failing = err != nil; l.failing {
			l.until = time.Now().Add(leftAlone)
			for _, member := range removal {
				l.remove(member.(string))
			}
		}
		for _, in := range adding {
			select {
			case <-in.noted: // by an earlier exchange
			default:
				close(in.noted)
			}
		}
		l.sending = l.urgent && len(l.adding) > 0
		if !l.sending && len(l.adding) > 0 {
			l.plan(time.Now())
		}
		return l.sending
	}
}

// A member of the set: who wrote it and its number, 8 bytes each, the Unix time of its
// beginning, 8 bytes, and the users.
const header = 24

func encode(instance, number uint64, at time.Time, users []storage.UserID) string {
	to := make([]byte, 0, header+8*len(users))
	to = binary.BigEndian.AppendUint64(to, instance)
	to = binary.BigEndian.AppendUint64(to, number)
	to = binary.BigEndian.AppendUint64(to, uint64(at.Unix()))
	for _, id := range users {
		to = binary.BigEndian.AppendUint64(to, uint64(id))
	}
	return string(to)
}

// renew gives a member that has become old another time.
func renew(member string, now time.Time) string {
	if at, _, err := decode(member); err != nil || now.Sub(at) < lateCommits/3 {
		return member
	}
	at := binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))
	return member[:16] + string(at) + member[header:]
}

var errMember = errors.New("not an intent")

func decode(member string) (at time.Time, users []storage.UserID, err error) {
	if len(member) < header || len(member)%8 != 0 {
		return at, nil, errMember
	}
	at = time.Unix(int64(binary.BigEndian.Uint64([]byte(member[16:header]))), 0)
	for rest := member[header:]; rest != ""; rest = rest[8:] {
		users = append(users, storage.UserID(binary.BigEndian.Uint64([]byte(rest[:8]))))
	}
	return at, users, nil
}
