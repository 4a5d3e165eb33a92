package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"
	"github.com/google/uuid"

	"kith/storage"
	"kith/storage/sleep"
	"kith/storage/sqlstore"
)

// ShardsCmd is `kith shards`.
type ShardsCmd struct {
	Status  ShardsStatusCmd  `cmd:"" default:"withargs" help:"Show the shards, their buckets, and moves in progress. Ends with 1 if a shard does not answer or takes no writes."`
	Add     ShardsAddCmd     `cmd:"" help:"Add an empty database as the next shard. It has no buckets until some are moved there."`
	Move    ShardsMoveCmd    `cmd:"" help:"Move buckets to another shard while the store is in use."`
	Split   ShardsSplitCmd   `cmd:"" help:"Move the upper half of a shard's buckets to another shard."`
	Resume  ShardsResumeCmd  `cmd:"" help:"Continue interrupted moves."`
	Readmit ShardsReadmitCmd `cmd:"" help:"Allow writes to a restored shard again, after its dump and binlogs are loaded."`
	Abort   ShardsAbortCmd   `cmd:"" help:"Undo interrupted moves that have not been decided."`
}

// ShardsStatusCmd is `kith shards status`.
type ShardsStatusCmd struct{ Output }

// shardsReport is the answer of `kith shards status --output json`.
type shardsReport struct {
	Shards []shardReport   `json:"shards"`
	Moves  []sqlstore.Move `json:"moves"`
}

type shardReport struct {
	Shard   int                   `json:"shard"`
	Name    string                `json:"name"`
	Buckets int                   `json:"buckets"`
	Ranges  []storage.BucketRange `json:"ranges"`
	Error   string                `json:"error,omitempty"` // why it does not answer, or nothing is written to it
}

// Run prints the status, also of those shards that answer while others do not.
func (c *ShardsStatusCmd) Run(ctx context.Context, settings *Settings, k *kong.Context) error {
	status, err := sqlstore.AskShards(ctx, sqlstore.Config{Location: settings.Store, StatementTimeout: settings.StatementTimeout})
	if err != nil {
		return Misset("store", err)
	}
	report := shardsReport{[]shardReport{}, append([]sqlstore.Move{}, status.Moves...)}
	var failing []string
	for _, s := range status.Shards {
		r := shardReport{Shard: s.Ordinal, Name: s.Name, Ranges: append([]storage.BucketRange{}, s.Buckets...)}
		for _, b := range s.Buckets {
			r.Buckets += b.Len()
		}
		if s.Err != nil {
			r.Error = s.Err.Error()
			failing = append(failing, strconv.Itoa(s.Ordinal))
		}
		report.Shards = append(report.Shards, r)
	}
	if len(failing) > 0 {
		err = fmt.Errorf("something is wrong with shard %s: kith doctor says what to do", strings.Join(failing, ", "))
	}
	if c.JSON() {
		return errors.Join(WriteJSON(k.Stdout, report), err)
	}
	for _, s := range report.Shards {
		buckets := fmt.Sprintf("%d buckets: %s", s.Buckets, rangesText(s.Ranges))
		if s.Error != "" && s.Buckets == 0 {
			buckets = "buckets not known"
		}
		fmt.Fprintf(k.Stdout, "shard %d  %s  %s\n", s.Shard, printable(s.Name), buckets)
		if s.Error != "" {
			fmt.Fprintf(k.Stdout, "         %s\n", printable(s.Error))
		}
	}
	if status.Copied {
		fmt.Fprintln(k.Stdout, "being copied to another store, or copied (kith copy goes on, kith shards abort gives it up)")
	}
	for _, m := range report.Moves {
		fmt.Fprintf(k.Stdout, "begun: %s (kith shards resume goes on, kith shards abort takes it back)\n", m)
	}
	return err
}

func rangesText(ranges []storage.BucketRange) string {
	if len(ranges) == 0 {
		return "none"
	}
	return strings.Join(storage.Each(ranges, func(r storage.BucketRange) string { return fmt.Sprintf("%d–%d", r.First, r.Last) }), ", ")
}

// ShardsAddCmd is `kith shards add ADDRESS`.
type ShardsAddCmd struct {
	Address string `arg:"" help:"Empty database: a file path, or a DSN without a user (tcp(host:port)/database); user and password are those of the store's first one."`
}

// Prepare refuses what would name a file in the present folder, which then is a shard for good: no address, one that is written as in
// KITH_STORE, and that of a server if the store is on SQLite.
func (c *ShardsAddCmd) Prepare(s *Settings, _ *kong.Context) error {
	scheme, _, _ := strings.Cut(c.Address, ":")
	switch {
	case strings.TrimSpace(c.Address) == "":
		return errors.New("the address of the shard is empty")
	case scheme == "sqlite" || scheme == "mysql":
		return fmt.Errorf("write the address without %q", scheme+":")
	case strings.HasPrefix(s.Store, "sqlite:") && (strings.Contains(c.Address, "tcp(") || strings.Contains(c.Address, "unix(")):
		return errors.New("this store is on SQLite, and its shards are files: kith copy takes it to servers")
	}
	return nil
}

// Run adds the shard.
func (c *ShardsAddCmd) Run(ctx context.Context, store *sqlstore.Store, k *kong.Context) error {
	ordinal, err := store.AddShard(ctx, c.Address)
	if errors.Is(err, storage.ErrUnavailable) {
		err = fmt.Errorf("%w; run the same command again: the shard may have been added already", err)
	}
	if err != nil {
		return err
	}
	added := store.ShardsStatus()[ordinal]
	if len(added.Buckets) > 0 {
		fmt.Fprintf(k.Stdout, "%s has been shard %d before, with buckets %s\n", printable(added.Name), ordinal, rangesText(added.Buckets))
		return nil
	}
	fmt.Fprintf(k.Stdout, "%s is shard %d. It has no buckets yet: kith shards split --from N --to %d\n", printable(added.Name), ordinal, ordinal)
	return nil
}

// movingFlags are the flags of commands that move.
type movingFlags struct {
	MaxLoad float64       `bound:"share" default:"0.5" placeholder:"SHARE" help:"Share of time spent copying, comparing and removing rows, above 0; 1: no pauses. Default: ${default}."`
	Keep    time.Duration `bound:"keep" default:"60s" help:"How long moved rows stay on the old shard, for programs that have not noticed the move. Default: ${default}."`
	Output
}

// ShardsMoveCmd is `kith shards move`.
type ShardsMoveCmd struct {
	fromTo
	Buckets bucketRange `required:"" placeholder:"FIRST-LAST" help:"Buckets to move, from 0 to 1023."`
	movingFlags
}

// fromTo are the flags that name the two shards, and the one that only asks.
type fromTo struct {
	From   int  `required:"" bound:"natural" placeholder:"N" help:"Shard that has the buckets."`
	To     int  `required:"" bound:"natural" placeholder:"N" help:"Shard that gets them."`
	DryRun bool `help:"Only estimate how much would be copied, and how long it takes."`
}

// Run moves the buckets.
func (c *ShardsMoveCmd) Run(ctx context.Context, store *sqlstore.Store, k *kong.Context) error {
	return c.move(ctx, store, k, sqlstore.Move{Buckets: storage.BucketRange(c.Buckets), From: c.From, To: c.To}, c.DryRun)
}

// bucketRange is FIRST-LAST, or one bucket.
type bucketRange storage.BucketRange

// UnmarshalText implements [encoding.TextUnmarshaler].
func (r *bucketRange) UnmarshalText(text []byte) (err error) {
	first, last, several := strings.Cut(string(text), "-")
	if !several {
		last = first
	}
	if r.First, err = strconv.Atoi(strings.TrimSpace(first)); err == nil {
		r.Last, err = strconv.Atoi(strings.TrimSpace(last))
	}
	if err != nil || r.First < 0 || r.Last < r.First || r.Last >= storage.Buckets {
		return fmt.Errorf("%q is not FIRST-LAST with 0 ≤ FIRST ≤ LAST ≤ %d", text, storage.Buckets-1)
	}
	return nil
}

// ShardsSplitCmd is `kith shards split`.
type ShardsSplitCmd struct {
	fromTo
	movingFlags
}

// Run moves the half.
func (c *ShardsSplitCmd) Run(ctx context.Context, store *sqlstore.Store, k *kong.Context) error {
	status, from := store.ShardsStatus(), c.From
	if from >= len(status) {
		return noShard(store, from)
	}
	largest := storage.BucketRange{First: 0, Last: -1}
	for _, r := range status[from].Buckets {
		if r.Len() > largest.Len() {
			largest = r
		}
	}
	if largest.Len() < 2 {
		return fmt.Errorf("shard %d has no two buckets side by side", from)
	}
	upper := storage.BucketRange{First: largest.First + (largest.Len()+1)/2, Last: largest.Last}
	return c.move(ctx, store, k, sqlstore.Move{Buckets: upper, From: from, To: c.To}, c.DryRun)
}

func noShard(store *sqlstore.Store, ordinal int) error {
	return unusable{fmt.Errorf("there is no shard %d: the store has %d (kith shards status)", ordinal, store.Shards())}
}

// rowsPerSecond is how many rows a move without pauses copies, compares and removes: 420,000 took 105 s with half of the time in
// pauses. docs/how-to/grow.md has rates that are higher.
const rowsPerSecond = 8_000

// move carries a plan out.
func (f *movingFlags) move(ctx context.Context, store *sqlstore.Store, k *kong.Context, plan sqlstore.Move, dry bool) error {
	for _, ordinal := range []int{plan.From, plan.To} {
		if ordinal >= store.Shards() {
			return noShard(store, ordinal)
		}
	}
	if plan.From == plan.To {
		return unusable{errors.New("--to: it is the shard that has the buckets")}
	}
	expected, err := store.ExpectMove(ctx, plan)
	if err != nil {
		return err
	}
	took := f.Keep + time.Duration(float64(expected.Rows)/rowsPerSecond/f.MaxLoad*float64(time.Second))
	if dry {
		if f.JSON() {
			return WriteJSON(k.Stdout, map[string]any{"move": plan, "rows": expected.Rows, "bytes": expected.Bytes, "seconds": took.Seconds()})
		}
		fmt.Fprintf(k.Stdout, "%s: about %s rows, %s, about %s in all, %s of them to keep the rows where they were\n", plan, humanize.Comma(expected.Rows), humanize.Bytes(uint64(expected.Bytes)), took.Round(time.Second), f.Keep)
		return nil
	}
	var report sqlstore.MoveReport
	err = alone(ctx, store, k, "shards", expected.Rows, f.MaxLoad, func(ctx context.Context, cfg sqlstore.MoveConfig) (err error) {
		if err := store.Refresh(ctx); err != nil { // another may have begun a move since the store was opened
			return err
		}
		if moves := store.Moves(); len(moves) > 0 && !slices.Contains(moves, plan) {
			return fmt.Errorf("begun before: %s; first end that: kith shards resume, or kith shards abort", moves[0])
		}
		cfg.Keep = f.Keep
		report, err = store.Move(ctx, plan, cfg)
		return err
	})
	if err != nil && !errors.Is(err, storage.ErrLayout) && slices.Contains(store.Moves(), plan) { // what was restored has to be restored to another moment
		return fmt.Errorf("%w; kith shards resume goes on from there", err)
	}
	if err != nil {
		return err
	}
	if f.JSON() {
		return WriteJSON(k.Stdout, report)
	}
	fmt.Fprintf(k.Stdout, "%s: %s rows copied, %s of them again, %s compared, writes waited for %s, %s in all\n", plan,
		humanize.Comma(report.Rows), humanize.Comma(report.Again), humanize.Comma(report.Compared),
		report.Waited.Round(time.Millisecond), report.Took.Round(time.Second))
	if report.Repaired > 0 {
		fmt.Fprintf(k.Stdout, "%s rows differed although nobody had noted them, and were repaired\n", humanize.Comma(report.Repaired))
	}
	return nil
}

// ShardsResumeCmd is `kith shards resume`.
type ShardsResumeCmd struct{ movingFlags }

// Run continues every move.
func (c *ShardsResumeCmd) Run(ctx context.Context, store *sqlstore.Store, k *kong.Context) error {
	moves := store.Moves()
	switch {
	case len(moves) == 0 && c.JSON():
		return WriteJSON(k.Stdout, sqlstore.MoveReport{})
	case len(moves) == 0:
		fmt.Fprintln(k.Stdout, "nothing is being moved")
	}
	for _, plan := range moves {
		if err := c.move(ctx, store, k, plan, false); err != nil {
			return err
		}
	}
	return nil
}

// ShardsReadmitCmd is `kith shards readmit N`.
type ShardsReadmitCmd struct {
	Shard int `arg:"" help:"Number of the shard, as in kith shards status."`
}

// Prepare lets the store be opened although its first shard may not be read for settings yet, or the shard is in another database.
func (c *ShardsReadmitCmd) Prepare(settings *Settings, _ *kong.Context) error {
	settings.readmits = true
	return nil
}

// Run readmits the shard. Caches may have what was read while it was restored.
func (c *ShardsReadmitCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	if c.Shard < 0 || c.Shard >= store.Shards() {
		return noShard(store, c.Shard)
	}
	if err := store.Readmit(ctx, c.Shard); err != nil {
		return err
	}
	if err := settings.join(ctx, store); err != nil {
		return err
	}
	if err := settings.forgetAll(ctx, store); err != nil {
		return err
	}
	fmt.Fprintf(k.Stdout, "shard %d is readmitted; now repair what the restore has lost: kith reconcile full --repair\n", c.Shard)
	return nil
}

// ShardsAbortCmd is `kith shards abort`.
type ShardsAbortCmd struct{}

// Run undoes every move.
func (c *ShardsAbortCmd) Run(ctx context.Context, store *sqlstore.Store, k *kong.Context) error {
	moves := store.Moves()
	switch {
	case store.IsCopied():
		err := alone(ctx, store, k, "shards", 0, 1, func(ctx context.Context, _ sqlstore.MoveConfig) error { return store.AbortCopy(ctx) })
		if err != nil {
			return err
		}
		fmt.Fprintln(k.Stdout, "the copy to another store is given up: this store takes writes")
	case len(moves) == 0:
		fmt.Fprintln(k.Stdout, "nothing is being moved")
	}
	for _, plan := range moves {
		err := alone(ctx, store, k, "shards", 0, 1, func(ctx context.Context, cfg sqlstore.MoveConfig) error {
			return store.AbortMove(ctx, plan, cfg)
		})
		if err != nil {
			return fmt.Errorf("%s: %w; if it has been decided, kith shards resume ends it", plan, err)
		}
		fmt.Fprintf(k.Stdout, "taken back: %s\n", plan)
	}
	return nil
}

const (
	// movingKind is the lease of the one process that moves.
	movingKind  = "shards"
	movingLease = 6 * time.Second
)

// alone runs f while no other process moves, and ends its context if the lease is lost. It shows how much of the expected rows f has moved.
func alone(
	ctx context.Context, leases storage.Leaser, k *kong.Context, command string, expected int64, load float64, f func(context.Context, sqlstore.MoveConfig) error,
) error {
	token := uuid.NewString()
	take := func() error {
		now := time.Now()
		_, err := leases.Lease(ctx, movingKind, token, 1, storage.MicrosOf(now), storage.MicrosOf(now.Add(movingLease)))
		return err
	}
	if err := take(); err != nil {
		if errors.Is(err, storage.ErrNoLease) {
			return fmt.Errorf("another kith shards is at work on this store, or has died less than %s ago", movingLease)
		}
		return err
	}
	ctx, lost := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	defer func() {
		lost(nil)
		renewing.Wait()                                                      // otherwise it is taken again
		_ = leases.Release(context.WithoutCancel(ctx), movingKind, token, 0) // otherwise it expires
	}()
	renewing.Go(func() {
		for last := time.Now(); sleep.For(ctx, movingLease/5) == nil; {
			asked := time.Now()
			err := take()
			if errors.Is(err, storage.ErrNoLease) || time.Since(last) > movingLease { // it may have been another's meanwhile
				lost(errors.New("this process stood still for too long, or another one has taken its lease"))
			} else if err == nil {
				last = asked
			}
		}
	})
	progress := newProgress(command, k.Stderr)
	defer progress.done()
	err := f(ctx, sqlstore.MoveConfig{
		Token: token, Load: sleep.Throttle{Load: load}, OnProgress: func(p sqlstore.MoveProgress) { progress.moving(p, expected) },
	})
	if errors.Is(err, context.Canceled) {
		err = context.Cause(ctx)
	}
	return err
}
