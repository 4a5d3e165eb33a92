package binlog

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"kith/graph/defaults"
	"kith/replication"
	"kith/storage"
)

// Config says what to replicate and how.
type Config struct {
	// DSNs are the shards of the store in order, in go-sql-driver's form.
	DSNs []string

	// Applier writes the inverse rows. The caller runs it.
	Applier *replication.Applier

	// Store is what others read from: nothing is applied or reported before it can be read there.
	Store storage.Answerer

	// Checkpoints stores the positions.
	Checkpoints storage.Checkpoints

	// Changed reports what each transaction has changed, and gaps. Defaults to nobody.
	Changed func(context.Context, storage.Change)

	// Skip names transactions by GTID. Events in them that cannot be followed are skipped, so that
	// replication can continue after a [StopError].
	Skip []string

	// Resync discards the checkpoints first, so that both forward tables are copied again.
	Resync bool

	// Watch means that nothing is replicated here: Run only observes whether other replicators work on the servers, and the
	// lag grows while none does.
	Watch bool

	// Logger logs what happens. Defaults to slog.Default().
	Logger *slog.Logger
}

// State is what a server's replication is doing.
type State string

const (
	Connecting   State = "connecting"    // the server has not been reached, or is being reached for the first time
	Waiting      State = "waiting"       // another replicator has the lock
	Copying      State = "copying"       // the forward tables are being copied
	Tailing      State = "tailing"       // the binlog is being followed
	Stopped      State = "stopped"       // for good: see Err
	NoReplicator State = "no-replicator" // with Watch: no replicator works on the server
)

// Status is the state of the replication of one server.
type Status struct {
	Server string `json:"server"` // host:port
	State  State  `json:"state"`
	Err    error  `json:"-"` // why it is stopped, or the last error, after which it retries
}

// A Replicator follows the servers of one store.
type Replicator struct {
	cfg Config

	mu      sync.Mutex
	servers []*server
}

// New makes a replicator. It does nothing before [Replicator.Run].
func New(cfg Config) *Replicator {
	return &Replicator{cfg: defaults.For(cfg, Config{Changed: func(context.Context, storage.Change) {}, Logger: slog.Default()})}
}

// Run replicates until the context ends, and then returns nil. If a server cannot be followed, the
// others go on; once none is left, Run returns why. If a server is away, it waits for it, and the others go on.
func (r *Replicator) Run(ctx context.Context) error {
	asked, err := r.asked()
	if err != nil {
		return err
	}
	defer func() { _ = asked.close() }() // what was read is read
	var running sync.WaitGroup
	var mu sync.Mutex
	stopped := map[*server]error{}
	lost := asked.identify(ctx, func(s *server, more []string) {
		if s.stop != nil {
			s.stop()
			s.databases = slices.Concat(s.databases, more)
		}
		own, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		s.stop = func() { cancel(); <-ended }
		running.Go(func() {
			defer close(ended)
			defer cancel()
			err := s.run(own)
			mu.Lock()
			defer mu.Unlock()
			stopped[s] = err
		})
	})
	running.Wait()
	if ctx.Err() != nil {
		return nil // what has stopped is in the log
	}
	return errors.Join(append(slices.Collect(maps.Values(stopped)), lost)...)
}

func (r *Replicator) show(servers []*server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers = servers
}

// Status returns the state of each server. It is empty before they have been asked.
func (r *Replicator) Status() []Status {
	r.mu.Lock()
	servers := slices.Clone(r.servers)
	r.mu.Unlock()
	list := storage.Each(servers, func(s *server) Status { return s.status() })
	slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Server, b.Server) })
	return list
}
