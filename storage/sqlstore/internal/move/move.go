// Package move moves buckets from one shard to another while the store is in use: it copies the rows
// in the order of their keys, copies again what is written meanwhile, compares both sides, and then
// lets the other shard have the buckets, for which writes to them wait a moment.
package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/sleep"
	"kith/storage/sqlstore/internal/db"
)

// A Plan is buckets that go from one shard to another.
type Plan struct {
	Buckets storage.BucketRange `json:"buckets"`
	From    int                 `json:"from"`
	To      int                 `json:"to"`
}

// String names the buckets and both shards.
func (p Plan) String() string {
	return fmt.Sprintf("buckets %d–%d from shard %d to shard %d", p.Buckets.First, p.Buckets.Last, p.From, p.To)
}

// Phase is what a move is doing.
type Phase string

const (
	Copying   Phase = "copying"
	Comparing Phase = "comparing"
	Switching Phase = "switching"
	Removing  Phase = "removing"
	Done      Phase = "done"
)

// Progress is how far a move is.
type Progress struct {
	Phase Phase
	Table string
	Rows  int64 // that have been copied, compared or removed in this phase
	Again int64 // that have been copied again because they had been written
}

// Report describes a move that has ended.
type Report struct {
	Plan
	Rows     int64         `json:"rows"`     // copied at first
	Again    int64         `json:"again"`    // copied again because they had been written meanwhile
	Compared int64         `json:"compared"` // found equal on both sides
	Repaired int64         `json:"repaired"` // had not been copied as they are, and had not been noted
	Removed  int64         `json:"removed"`
	Waited   time.Duration `json:"waitedNanoseconds"` // how long writes to the buckets had to wait
	Took     time.Duration `json:"tookNanoseconds"`
}

// Config says how to move.
type Config struct {
	Token      string         // names this process
	Load       sleep.Throttle // how much of the time statements may run
	Page       int            // how many rows are read at a time; defaults to 500
	Keep       time.Duration  // how long the rows stay where they were, for gateways that do not know of the move yet
	Patience   time.Duration  // how long the rest may become no smaller; defaults to 5 minutes
	OnProgress func(Progress)
	Step       func(string) // is called before every step; for tests
}

func (c Config) withDefaults() Config {
	c.Page, c.Patience = cmp.Or(c.Page, 500), cmp.Or(c.Patience, 5*time.Minute)
	if c.OnProgress == nil {
		c.OnProgress = func(Progress) {}
	}
	if c.Step == nil {
		c.Step = func(string) {}
	}
	return c
}

const (
	// atOnce is how many rows one statement takes.
	atOnce = 200

	// pagesOfSpan is how many pages a server reads at a time, of which it sends the rows of a few buckets.
	pagesOfSpan = 20

	// A row that is written often is noted often, and copied once for all notes that are read together.
	notesAtOnce = 10_000
)

const (
	// A gateway that has not heard of a move looks once in this time who owns what, and more often
	// while one is under way.
	LookEvery       = time.Second
	LookEveryMoving = 100 * time.Millisecond

	// switches is how often a move tries to close the buckets.
	switches = 20

	// closedFor is how long writes may wait for the last rows; then they go on, and the rest is
	// copied before the next try.
	closedFor = 700 * time.Millisecond
)

// A Mover moves from one shard, to one of the same store or to another store.
type Mover struct {
	db     *db.DB
	to     *db.DB               // where the rows go; db, unless they go to another store
	target func(int) int        // the shard there that gets a bucket
	wanted func(int) bool       // the buckets that go
	of     *storage.BucketRange // these: the server leaves out the rows of others; nil: all
	guard  func(*db.Tx) error   // returns an error if the rows must not be written
	cfg    Config
	plan   Plan
	report Report
	phase  Progress
	left   int64         // how many notes there are behind the last that was read
	steps  map[int]int64 // of the shards that get rows, after this mover's last one there
}

// Run moves, or continues the same move if it has begun. When it ends without an error, the plan has
// been carried out. If ctx ends or a shard fails, the next Run continues from there.
func Run(ctx context.Context, d *db.DB, plan Plan, cfg Config) (Report, error) {
	m := newMover(d, plan, cfg)
	began := time.Now()
	err := m.run(ctx)
	m.report.Took = time.Since(began)
	return m.report, err
}

func newMover(d *db.DB, plan Plan, cfg Config) *Mover {
	m := &Mover{db: d, to: d, cfg: cfg.withDefaults(), plan: plan, report: Report{Plan: plan}, wanted: plan.Buckets.Contains, of: &plan.Buckets, steps: map[int]int64{}}
	m.target = func(int) int { return plan.To }
	m.guard = func(tx *db.Tx) error { return m.holds(tx, db.Arriving) }
	return m
}

func (m *Mover) run(ctx context.Context) error {
	const tries = 100
	for range tries {
		refreshed := m.db.Refresh(ctx) // an error may be of a shard that has no part
		if shards := len(m.db.Claims()); max(m.plan.From, m.plan.To) >= shards {
			return fmt.Errorf("%w: there is no shard %d", storage.ErrLayout, max(m.plan.From, m.plan.To))
		}
		for _, shard := range [...]int{m.plan.From, m.plan.To} {
			if _, err := m.db.Served(ctx, shard); err != nil {
				return err
			}
		}
		claims := m.db.Claims()
		from, hasFrom := find(claims[m.plan.From], m.plan.Buckets)
		to, hasTo := find(claims[m.plan.To], m.plan.Buckets)
		arriving := hasTo && to.State == db.Arriving && to.Other == m.plan.From
		var err error
		switch {
		case hasFrom && from.State == db.Left && from.Other == m.plan.To && !slices.ContainsFunc(claims, m.isServed):
			if err = refreshed; err == nil { // otherwise another shard may have them
				err = m.openDecided(ctx, from, arriving)
			}
		case hasFrom && from.State == db.Left && from.Other == m.plan.To:
			if err = m.remove(ctx, from); err == nil {
				return nil
			}
		case m.report.Waited > 0:
			return fmt.Errorf("%w: another process has ended the move, and moved the buckets again", storage.ErrUnavailable)
		case hasFrom && leaves(from, m.plan.To) && arriving:
			err = m.moveOver(ctx, from, to)
		case arriving || m.owns(claims[m.plan.From]) || hasFrom && leaves(from, m.plan.To):
			m.cfg.Step("begin")
			err = m.begin(ctx, db.Owned, db.Leaving, db.Closed)
		default:
			return fmt.Errorf("shard %d does not have buckets %d–%d", m.plan.From, m.plan.Buckets.First, m.plan.Buckets.Last)
		}
		switch {
		case err == nil:
		case !errors.Is(err, errStep):
			return err
		case sleep.For(ctx, LookEveryMoving) != nil: // another process has continued: see how far it is
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("%w: %s is not to be had in %d tries", storage.ErrUnavailable, m.plan, tries)
}

// openDecided opens buckets that have gone to a shard which does not serve them yet, or begins again if it lacks rows of them.
func (m *Mover) openDecided(ctx context.Context, from db.Claim, arriving bool) error {
	m.cfg.Step("open")
	err := errOlder
	if arriving {
		err = open(ctx, m.db, m.plan)
	}
	switch {
	case !errors.Is(err, errOlder):
		return err
	case from.Since == removing:
		return fmt.Errorf("%w, and they are being removed from shard %d: restore it to a later moment", err, m.plan.From)
	}
	return m.begin(ctx, db.Left) // nobody has written to the new shard, as it is now
}

// AfterRestore has buckets that had gone to a shard which has been restored be served by one that has all their rows.
func AfterRestore(ctx context.Context, d *db.DB, ordinal int) error {
	claims := d.Claims()
	var errs []error
	for _, p := range Moves(claims) {
		m := newMover(d, p, Config{Token: "readmitted"})
		from, _ := find(claims[p.From], p.Buckets)
		to, _ := find(claims[p.To], p.Buckets)
		if p.To == ordinal && from.State == db.Left && !slices.ContainsFunc(claims, m.isServed) {
			if err := m.openDecided(ctx, from, to.State == db.Arriving); !errors.Is(err, errStep) { // another may have done it
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// owns reports whether one claim has all buckets of the plan.
func (m *Mover) owns(claims []db.Claim) bool {
	return slices.ContainsFunc(claims, func(c db.Claim) bool {
		return c.State == db.Owned && c.Contains(m.plan.Buckets.First) && c.Contains(m.plan.Buckets.Last)
	})
}

// isServed reports whether a shard with these claims has the buckets.
func (m *Mover) isServed(claims []db.Claim) bool {
	return slices.ContainsFunc(claims, func(c db.Claim) bool { return c.State <= db.Closed && c.Contains(m.plan.Buckets.First) })
}

// begin lets rows be written to the shard that gets them, and has rows noted that are written to
// the other, where the buckets must be in one of some states.
func (m *Mover) begin(ctx context.Context, from ...db.ClaimState) error {
	if err := m.await(ctx); err != nil {
		return err
	}
	m.cfg.Step("leave")
	return m.turn(ctx, db.Leaving, from...)
}

// await has the shard that gets the buckets await them from this mover, from the beginning.
func (m *Mover) await(ctx context.Context) error {
	if shards := len(m.db.Claims()); max(m.plan.From, m.plan.To) >= shards {
		return fmt.Errorf("%w: there is no shard %d", storage.ErrLayout, max(m.plan.From, m.plan.To))
	}
	return step(ctx, m.db, m.plan.To, func(old []db.Claim) ([]db.Claim, error) {
		list, awaited := make([]db.Claim, 0, len(old)+1), m.claim(db.Arriving, m.plan.From)
		for _, c := range old {
			switch {
			case c.Last < m.plan.Buckets.First || c.First > m.plan.Buckets.Last:
				list = append(list, c)
			case c.BucketRange != m.plan.Buckets || c.State != db.Arriving:
				return nil, fmt.Errorf("shard %d has buckets %d–%d, or still has rows of them: end that move first", m.plan.To, c.First, c.Last)
			default:
				awaited.Since = c.Since // it may be decided
			}
		}
		return append(list, awaited), nil
	}, forgetCopied(m.plan.Buckets.First))
}

// stepFrom is [step] for the shard that has the buckets, while the other one awaits them from this mover: one that has been
// stopped changes nothing after another has gone on with the move, or has taken it back.
func (m *Mover) stepFrom(ctx context.Context, change func([]db.Claim) ([]db.Claim, error)) error {
	ctx, cancel := context.WithTimeout(ctx, stepFor)
	defer cancel()
	return m.db.Exclusive(ctx, "buckets", m.plan.To, func(tx *db.Tx) error {
		if err := m.holds(tx, db.Arriving); err != nil {
			return err
		}
		return step(ctx, m.db, m.plan.From, change)
	})
}

// turn gives the buckets, which must be in one of some states on the shard that has them, another state there.
func (m *Mover) turn(ctx context.Context, to db.ClaimState, from ...db.ClaimState) error {
	return m.stepFrom(ctx, func(old []db.Claim) ([]db.Claim, error) {
		return cut(old, m.plan.Buckets, m.claim(to, m.plan.To), from...)
	})
}

func (m *Mover) claim(state db.ClaimState, other int) db.Claim {
	return db.Claim{BucketRange: m.plan.Buckets, State: state, Other: other, Token: m.cfg.Token, Since: now()}
}

// take takes over a move that another process has begun, so that the other's writes fail.
func (m *Mover) take(ctx context.Context, from, to db.Claim) error {
	if from.Token == m.cfg.Token && to.Token == m.cfg.Token && from.State == db.Leaving {
		return nil
	}
	err := step(ctx, m.db, m.plan.To, func(old []db.Claim) ([]db.Claim, error) {
		return cut(old, m.plan.Buckets, m.claim(db.Arriving, m.plan.From), db.Arriving)
	})
	if err != nil {
		return err
	}
	return m.turn(ctx, db.Leaving, db.Leaving, db.Closed)
}

// moveOver copies, compares and switches.
func (m *Mover) moveOver(ctx context.Context, from, to db.Claim) error {
	if err := m.take(ctx, from, to); err != nil {
		return err
	}
	noting := time.Now()
	m.enter(Copying)
	if err := m.copy(ctx); err != nil {
		return err
	}
	m.enter(Comparing)
	m.cfg.Step("compare")
	if err := m.compare(ctx); err != nil {
		return err
	}
	m.enter(Switching)
	// By then every gateway looks so often that it hears of the switch while writes wait.
	if err := sleep.For(ctx, LookEvery+LookEveryMoving-time.Since(noting)); err != nil {
		return err
	}
	for range switches {
		if err := m.catchUp(ctx); err != nil {
			return err
		}
		switched, err := m.trySwitch(ctx)
		if err != nil || switched {
			return err
		}
	}
	return fmt.Errorf("%w: the last rows took longer than writes may wait, %d times", errBehind, switches)
}

// errBehind means that a move cannot end beside those who write.
var errBehind = errors.New("rows are written as fast as they are copied: go on with a larger --max-load, or when less is written")

// catchUp copies what is noted until little is left.
func (m *Mover) catchUp(ctx context.Context) error {
	least, since := int64(math.MaxInt64), time.Now()
	for {
		all, err := m.copyNoted(ctx, false)
		if err != nil || all {
			return err
		}
		switch {
		case m.left < least:
			least, since = m.left, time.Now()
		case time.Since(since) > m.cfg.Patience:
			return fmt.Errorf("%w: %d rows are left, and never were less than %d for %s", errBehind, m.left, least, m.cfg.Patience)
		}
	}
}

func (m *Mover) enter(p Phase) {
	m.phase = Progress{Phase: p, Again: m.report.Again}
	m.cfg.OnProgress(m.phase)
}

// trySwitch closes the buckets, copies what is noted, and decides. If that takes too long, it opens
// them again and returns false.
func (m *Mover) trySwitch(ctx context.Context) (bool, error) {
	m.cfg.Step("close")
	if err := m.turn(ctx, db.Closed, db.Leaving); err != nil {
		return false, err
	}
	closed := time.Now()
	m.cfg.Step("last rows")
	late := errors.New("it takes too long")
	limited, cancel := context.WithTimeoutCause(ctx, closedFor, late)
	left := m.claim(db.Left, m.plan.To)
	_, err := m.copyNoted(limited, true)
	if err == nil {
		err = m.inPart(limited, m.plan.To, func(tx *db.Tx) error {
			_, err := tx.Exec(1, sqlAllArrived, int64(left.Since), m.plan.Buckets.First)
			return err
		})
	}
	cancel()
	if err != nil {
		if ctx.Err() != nil {
			return false, err
		}
		back := m.turn(ctx, db.Leaving, db.Closed)
		if errors.Is(context.Cause(limited), late) {
			err = nil
		}
		return false, errors.Join(err, back)
	}
	m.cfg.Step("decide")
	err = m.stepFrom(ctx, func(old []db.Claim) ([]db.Claim, error) {
		if c, ok := find(old, m.plan.Buckets); !ok || c.Token != m.cfg.Token {
			return nil, errStep
		}
		return cut(old, m.plan.Buckets, left, db.Closed)
	})
	if err != nil {
		return false, err
	}
	m.cfg.Step("wait")
	// By then every healthy gateway knows where to read.
	if err := sleep.For(ctx, db.MoverWaits); err != nil {
		return true, err
	}
	m.cfg.Step("open")
	err = open(ctx, m.db, m.plan)
	m.report.Waited = time.Since(closed)
	return true, err
}

// errOlder means that the shard that gets buckets does not know of the decision about them.
var errOlder = fmt.Errorf("%w: the shard that gets the buckets has been restored to before it had all rows", storage.ErrLayout)

// open gives the buckets to the shard to which they have gone, and ends the wait of writes. It reads that they have gone
// while the shard's claims are locked: the caller may know this of an earlier move. [errOlder], if the shard does not have all rows.
func open(ctx context.Context, d *db.DB, p Plan) error {
	return step(ctx, d, p.To, func(old []db.Claim) ([]db.Claim, error) {
		var claims []db.Claim
		err := side{d, p.From}.read(ctx, sqlClaims, nil, eachClaim(&claims))
		from, ok := find(claims, p.Buckets)
		to, _ := find(old, p.Buckets)
		switch {
		case err != nil || !ok || from.State != db.Left || from.Other != p.To:
			return nil, cmp.Or(err, errStep)
		case to.State == db.Arriving && to.Since != from.Since:
			return nil, errOlder
		}
		return cut(old, p.Buckets, owned(p.Buckets), db.Arriving)
	}, forgetCopied(p.Buckets.First))
}

// Abort undoes a move that has not been decided. The rows that have been copied are removed.
func Abort(ctx context.Context, d *db.DB, p Plan, cfg Config) error {
	m := newMover(d, p, cfg)
	// From here on, a mover that thinks it has the move writes nothing more.
	if err := m.await(ctx); err != nil {
		return err
	}
	m.cfg.Step("give back")
	err := m.stepFrom(ctx, func(old []db.Claim) ([]db.Claim, error) {
		if _, ok := find(old, p.Buckets); !ok {
			return old, nil // it had not begun here
		}
		return cut(old, p.Buckets, owned(p.Buckets), db.Leaving, db.Closed, db.Owned)
	})
	if err != nil {
		return err
	}
	m.plan.From, m.plan.To = p.To, p.From
	m.enter(Removing)
	return m.removeRows(ctx, db.Arriving)
}

// Moves are the moves that have begun and not ended.
func Moves(claims [][]db.Claim) (plans []Plan) {
	for i, list := range claims {
		for _, c := range list {
			switch {
			case c.State == db.Arriving:
				plans = append(plans, Plan{c.BucketRange, c.Other, i})
			case c.State == db.Owned, c.Other < 0, c.Other >= len(claims): // the store is copied, or the other shard is not known yet
			default:
				// Its rows are to be removed, or it leaves for a shard that does not await it.
				if to, ok := find(claims[c.Other], c.BucketRange); !ok || to.State != db.Arriving {
					plans = append(plans, Plan{c.BucketRange, i, c.Other})
				}
			}
		}
	}
	return plans
}

// holds returns an error unless a shard records that the buckets are in one of some states, and in this mover's hands.
func (m *Mover) holds(tx *db.Tx, states ...db.ClaimState) error {
	held := false
	err := tx.Read(1, sqlClaimHeld, []any{m.plan.Buckets.First}, db.EachEntry(db.TwoColumns, func(state db.ClaimState, token string) {
		held = slices.Contains(states, state) && token == m.cfg.Token
	}))
	if err == nil && !held {
		err = fmt.Errorf("%w: another process has taken the move", storage.ErrUnavailable)
	}
	return err
}
