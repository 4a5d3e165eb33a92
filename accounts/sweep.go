package accounts

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"kith/storage"
	"kith/storage/sleep"
)

// Sweeper completes abandoned deletions: the gateway that began one has died, a shard
// did not answer, or there was more to remove than a client waits for. One gateway of a
// deployment sweeps at a time, by a lease; two would do no harm.
//
// It does what is due on shards, too, every two seconds: relations whose time has come end, imports of accounts go on.
//
// It also checks users again after their deletion has ended: a gateway that had not heard of the
// deletion may have let others follow the user meanwhile, or the user write comments.
type Sweeper struct {
	States *States
	Leaser storage.Leaser
	Shards func() int // of the store
	Logger *slog.Logger

	// Due do what is due on a shard, if there is anything and the caller may.
	Due []func(ctx context.Context, shard int, may func() bool) error

	failing map[due]bool // whose last sweep has failed: an outage is logged once
}

// due is one of [Sweeper.Due] on a shard.
type due struct{ work, shard int }

const (
	sweepKind  = "erase" // of the lease
	sweepEvery = 2 * time.Second
	// sweepLease is how long others wait if the gateway that has the lease dies.
	sweepLease = 15 * time.Second
	// sweepTime bounds the work on one user at a time, well within the lease.
	sweepTime = 5 * time.Second
	// leftFor is how old a deletion is before a sweeper continues it, and how long after its
	// end the user is checked again: longer than a client waits, and longer than gateways take to
	// hear of the deletion.
	leftFor storage.Micros = 5_000_000
)

// Run sweeps until the context is done.
func (s *Sweeper) Run(ctx context.Context) {
	s.failing = map[due]bool{}
	owner := rand.Text()
	defer func() {
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.Leaser.Release(release, sweepKind, owner, 0) // it ends by itself, too
	}()
	var sweeping sync.WaitGroup
	for _, sweep := range []func(context.Context, string){s.sweepUsers, s.sweepDue} { // neither waits for the other, if a shard is silent
		sweeping.Go(func() {
			for sleep.For(ctx, sweepEvery) == nil {
				sweep(ctx, owner)
			}
		})
	}
	sweeping.Wait()
}

// sweepUsers works on all users who were left, on each for a bounded time.
func (s *Sweeper) sweepUsers(ctx context.Context, owner string) {
	before := storage.MicrosOf(s.States.Now()) - leftFor
	for _, user := range s.States.HiddenUsers.unfinished(before) {
		if !s.leased(ctx, owner) {
			return
		}
		err := bounded(ctx, func(ctx context.Context) error { return s.States.finish(ctx, user) })
		if err != nil && !isLate(ctx, err) { // there may be millions of rows left
			s.Logger.WarnContext(ctx, "cannot finish the deletion of an account: will retry", "user", user.String(), "error", err)
		}
	}
	for _, user := range s.States.HiddenUsers.finished(before) {
		if !s.leased(ctx, owner) {
			return
		}
		if err := bounded(ctx, func(ctx context.Context) error { return s.States.finish(ctx, user) }); err == nil {
			s.States.HiddenUsers.swept(user)
		}
	}
}

func (s *Sweeper) sweepDue(ctx context.Context, owner string) {
	for shard := range s.Shards() {
		for i, work := range s.Due {
			s.doDue(ctx, owner, due{i, shard}, work)
		}
	}
}

func (s *Sweeper) doDue(ctx context.Context, owner string, what due, work func(context.Context, int, func() bool) error) {
	err := bounded(ctx, func(ctx context.Context) error {
		return work(ctx, what.shard, func() bool { return s.leased(ctx, owner) })
	})
	if isLate(ctx, err) {
		return
	}
	if err != nil && !s.failing[what] {
		s.Logger.WarnContext(ctx, "cannot end relations or go on with imports that are due: will retry", "shard", what.shard, "error", err)
	}
	s.failing[what] = err != nil
}

// isLate reports whether work ended because its time did. If that was due to a silent shard, requests report it.
func isLate(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded)
}

func bounded(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	return work(ctx)
}

// leased takes or keeps the lease; false while another gateway has it.
func (s *Sweeper) leased(ctx context.Context, owner string) bool {
	now := s.States.Now()
	_, err := s.Leaser.Lease(ctx, sweepKind, owner, 1, storage.MicrosOf(now), storage.MicrosOf(now.Add(sweepLease)))
	if err != nil && !errors.Is(err, storage.ErrNoLease) && ctx.Err() == nil {
		s.Logger.WarnContext(ctx, "cannot get the lease for deletions: will retry", "error", err)
	}
	return err == nil
}
