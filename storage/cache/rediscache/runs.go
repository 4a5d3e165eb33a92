package rediscache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Runs notices that a Redis is no longer the same process. The data of a new process may be an old
// copy from its disk, which lacks changes.
//
// It looks at every connection before that is used: put its OnConnect into the options of the
// client, which may serve other purposes besides. Each client with its [Cache] has its own Runs. If
// Redis does not say who it is, Runs does not fail; the cache then stays off.
type Runs struct {
	turn atomic.Int64 // rises with each unknown process

	mu      sync.Mutex
	known   map[string]bool // run ids of the masters
	unknown map[string]bool // others, since all masters were last asked
}

// NewRuns makes a Runs for one client.
func NewRuns() *Runs { return &Runs{} }

// errReplica refuses connections to replicas in a cluster: if a replica becomes a master, a
// connection made before must not be used to read from it.
var errReplica = errors.New("a replica, which is not read")

// OnConnect is for [redis.UniversalOptions.OnConnect].
func (r *Runs) OnConnect(ctx context.Context, conn *redis.Conn) error {
	info, err := conn.Info(ctx).Result()
	var refused redis.Error
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	if infoField(info, "cluster_enabled") == "1" && infoField(info, "role") == "slave" {
		return errReplica
	}
	r.met(infoField(info, "run_id"))
	return nil
}

// met records the process at the other end of a new connection.
func (r *Runs) met(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[run] {
		return
	}
	if r.unknown == nil {
		r.unknown = map[string]bool{}
	}
	r.unknown[run] = true
	r.turn.Add(1)
}

// asking begins to ask all masters who they are.
func (r *Runs) asking() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unknown = nil
}

// believe accepts what the masters said, and returns the turn for which it holds. It returns false
// if another process has been met in the meantime.
func (r *Runs) believe(runs []string) (turn int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for run := range r.unknown {
		if !slices.Contains(runs, run) {
			return 0, false
		}
	}
	r.known, r.unknown = map[string]bool{}, nil
	for _, run := range runs {
		r.known[run] = true
	}
	return r.turn.Load(), true
}

// nameOf returns a short name for a set of runs.
func nameOf(runs []string) string {
	slices.Sort(runs)
	sum := sha256.Sum256([]byte(strings.Join(runs, ",")))
	return hex.EncodeToString(sum[:8])
}

// infoField returns the value of a line in Redis's INFO.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
