package binlog

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"kith/replication"
	"kith/storage"
	"kith/storage/events"
)

// Events are told of what concerns caches besides edges, which the applier's
// publisher is told of. [events.Bus] is one.
type Events interface {
	Send(ctx context.Context, list ...events.Event)
}

// Config says what to replicate and how.
type Config struct {
	// DSNs are the shards of the store in order, in go-sql-driver's form.
	DSNs []string

	// Applier writes the inverse rows. The caller runs it.
	Applier *replication.Applier

	// Checkpoints keep the positions.
	Checkpoints storage.Checkpoints

	// Events are told of users, counts and states that have changed, and of gaps. Defaults to
	// nobody.
	Events Events

	// Changed is told what each transaction has made of users, before Events are told of it; nil:
	// nobody is.
	Changed func(ctx context.Context, list []storage.UserChange)

	// Skip names transactions, by GTID, that are passed over as far as they cannot be
	// followed: the way on after a [StopError].
	Skip []string

	// Resync forgets the checkpoints first, so that both forward tables are copied anew.
	Resync bool

	// FailFast ends Run as soon as one server is stopped. Otherwise the others go on.
	FailFast bool

	// Logger is told of what happens. Defaults to slog.Default().
	Logger *slog.Logger
}

// State is what a server's replication is doing.
type State string

const (
	Connecting State = "connecting" // the server is not reached, or for the first time
	Waiting    State = "waiting"    // another replicator has the lock
	Copying    State = "copying"    // the forward tables are being copied
	Tailing    State = "tailing"    // the binlog is being followed
	Stopped    State = "stopped"    // for good: see Err
)

// Status is how the replication of one server stands.
type Status struct {
	Server   string // host:port
	State    State
	Position string // GTID position up to which all is applied, in the server's form; empty unless this replicator works
	Err      error  // why it is stopped, or what went wrong last and is tried again
}

// A Replicator follows the servers of one store.
type Replicator struct {
	cfg Config

	mu      sync.Mutex
	servers []*server
}

// New makes a replicator. It does nothing before [Replicator.Run].
func New(cfg Config) *Replicator {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Events == nil {
		cfg.Events = nobody{}
	}
	return &Replicator{cfg: cfg}
}

type nobody struct{}

func (nobody) Send(context.Context, ...events.Event) {}

// Run replicates until the context ends, and returns nil then. It returns an error
// when servers cannot be followed: at once with [Config.FailFast], otherwise when
// all are stopped or the context ends. A server that is away is waited for.
func (r *Replicator) Run(ctx context.Context) error {
	servers, err := r.identify(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	r.mu.Lock()
	r.servers = servers
	r.mu.Unlock()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			if errs[i] = s.run(ctx); errs[i] != nil && r.cfg.FailFast {
				cancel()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Status tells how each server stands. It is empty until the servers are known.
func (r *Replicator) Status() []Status {
	r.mu.Lock()
	servers := slices.Clone(r.servers)
	r.mu.Unlock()
	list := make([]Status, len(servers))
	for i, s := range servers {
		list[i] = s.status()
	}
	slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Server, b.Server) })
	return list
}
