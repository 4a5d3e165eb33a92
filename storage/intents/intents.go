// Package intents records in Redis which users writers are about to change, from before a write
// begins until it has been reported to all caches. If an intent is no longer renewed, its writer has
// died or is stuck, perhaps between its commit and its report. Any process on the same store then
// notifies the caches in its place.
//
// Intents are members of one sorted set: what is about to be changed, scored by the time at which a
// process has to look after it. A writer adds it with the score 0. The first process that sweeps
// and sees it sets the time, by the clock of Redis, so that the gateways' clocks do not matter. The
// writer's process adds it again twice a second while the write is under way.
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

// Config says where intents are kept and what is done about intents that were left behind.
type Config struct {
	Redis redis.UniversalClient
	Key   string

	// Sweep notifies all caches that users may have changed; without users, that all users may have
	// changed. It calls done once all caches have been notified.
	Sweep func(ctx context.Context, users []storage.UserID, done func())

	// Metrics counts. Defaults to none.
	Metrics *Metrics
}

const (
	// sweepEvery is how often a process renews its own intents and looks for others'.
	sweepEvery = 500 * time.Millisecond

	// orphaned is how long an intent may go without renewal after it was first seen, before it is
	// swept, and the time between sweeps after that.
	orphaned = 1500 * time.Millisecond

	// lateCommits is the age up to which an intent is kept without renewal. Its writer may have
	// sent its COMMIT before it died, and the database may still have to execute it. No statement
	// of a write commits by itself.
	lateCommits = 30 * time.Second

	// longestWrite is how long a write's intent is renewed: a write that takes longer has been
	// forgotten.
	longestWrite = 10 * time.Minute

	// maxSwept is how many intents are swept one by one. If more are due, everything is treated as
	// changed. This also bounds the set.
	maxSwept = 2000

	// timeout ends an exchange with Redis; on a busy machine a new connection takes a while. After
	// a failure, writers do without Redis for some time, and the next exchange is a short one.
	timeout      = time.Second
	timeoutAgain = 100 * time.Millisecond
	leftAlone    = 500 * time.Millisecond

	// An intent waits for others for half of the time that writes take until they commit; a commit
	// that comes earlier does not wait.
	shortGather = time.Millisecond
	longGather  = 50 * time.Millisecond

	// maxOpen bounds the intents of writes under way and of those not reported because Redis does not
	// answer. What exceeds it is not noted.
	maxOpen = 10_000

	// maxRemovals bounds what waits to be removed. What exceeds it is swept.
	maxRemovals = 100_000
)

// Log is a process's record of intents in Redis. A nil Log writes nothing.
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
	planned bool          // an exchange is scheduled
	urgent  bool          // a writer waits for the next exchange
	sent    time.Time     // when the last one began
	span    time.Duration // from the beginning of a write to its commit, on average
	failing bool          // the last exchange failed
	until   time.Time     // Redis is not asked until then
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

// Open makes a log, which sweeps in the background until it is closed.
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

// Close ends the sweeping. Intents that are still open are left to other processes.
func (l *Log) Close() {
	if l != nil {
		l.close()
	}
}

// Begin notes which users are about to be changed; no users stand for all. The note is sent while
// the writer goes on, until [Intent.Wait]. Every intent must be ended by Done or Leave.
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

// add queues an intent for the next exchange. The caller holds the lock.
func (l *Log) add(in *Intent) {
	if !in.queued {
		in.queued = true
		l.adding = append(l.adding, in)
	}
}

// plan makes sure that what is queued is sent. The caller holds the lock.
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

// flush sends what is queued, unless another goroutine does.
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

// Wait returns once Redis has the intent, or once it is clear that Redis does not answer: then the
// write goes on without it. It is called before the commit.
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

// Covers reports whether the intent names all these users.
func (in *Intent) Covers(users []storage.UserID) bool {
	for _, id := range users {
		if !slices.Contains(in.users, id) {
			return false
		}
	}
	return len(users) > 0
}

// Done removes the intent: the write has been reported to all caches, or nothing was written.
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

// Leave no longer renews the intent. The first process that sweeps will find it.
func (in *Intent) Leave() {
	if in == nil {
		return
	}
	in.log.mu.Lock()
	defer in.log.mu.Unlock()
	delete(in.log.open, in)
}

// remove queues the removal of a member for the next exchange. The caller holds the lock.
func (l *Log) remove(member string) {
	if len(l.removal) < maxRemovals {
		l.removal = append(l.removal, member)
	}
}

// exchange sends what is queued. If writers have waited for more in the meantime, a goroutine sends
// that, so that no writer waits for it.
func (l *Log) exchange() {
	if l.send() {
		go func() {
			for l.send() {
			}
		}()
	}
}

// send sends what is queued in one exchange, and reports whether a writer waits for the next one.
func (l *Log) send() (more bool) {
	l.mu.Lock()
	patience := timeout
	if l.failing {
		patience = timeoutAgain
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	pipe := l.cfg.Redis.Pipeline()
	sent := l.take(ctx, pipe)
	l.mu.Unlock()
	_, err := pipe.Exec(ctx)
	return sent(err)
}

// AddTo adds what is queued to a pipeline that is about to be sent for other reasons: that costs
// nothing more. The caller calls sent with the result of the pipeline.
func (l *Log) AddTo(ctx context.Context, pipe redis.Pipeliner) (sent func(error)) {
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

// take adds everything queued to a pipeline: it adds intents to the set and removes others. The
// caller calls the function returned with the result of the pipeline; it reports whether a writer
// waits for more. The caller holds the lock and has set sending.
func (l *Log) take(ctx context.Context, pipe redis.Pipeliner) (sent func(error) (more bool)) {
	adding, removal := l.adding, l.removal
	l.adding, l.removal, l.urgent = nil, nil, false
	l.sent = time.Now()
	adding = slices.DeleteFunc(adding, func(in *Intent) bool { return !l.open[in] && in.kept.IsZero() }) // nothing was written
	members := make([]redis.Z, len(adding))
	for i, in := range adding {
		in.queued, in.kept = false, l.sent // it may have arrived even if no answer did
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

// A member of the set: its writer and its number, 8 bytes each, the Unix time of its beginning, 8
// bytes, and the users.
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

// renew gives a member that has become old a new time.
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
