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

// Runs notices that a Redis is not the process it was. What a new process holds may be
// an old copy from its disk, in which changes are missing.
//
// It looks at every connection before that is used: its OnConnect belongs into the options
// of the client, which may serve other purposes besides. One Runs is for one client and
// one [Cache]. It does not fail where Redis does not tell; then the cache stays off.
type Runs struct {
	turn atomic.Int64 // rises with each process that is not known

	mu      sync.Mutex
	known   map[string]bool // run ids of the masters
	unknown map[string]bool // others, since the last time that all were asked
}

// NewRuns makes it for one client.
func NewRuns() *Runs { return &Runs{} }

// errReplica refuses connections to replicas in a cluster: one that becomes a master must
// not be read on a connection that was made before.
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

// met is told of the process at the other end of a new connection.
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

// believe takes what they said, and tells the turn in which it holds. It is false if
// somebody else has been met meanwhile.
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

// nameOf is a short name for a set of runs.
func nameOf(runs []string) string {
	slices.Sort(runs)
	sum := sha256.Sum256([]byte(strings.Join(runs, ",")))
	return hex.EncodeToString(sum[:8])
}

// infoField finds a line of Redis's INFO.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
