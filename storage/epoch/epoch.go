// Package epoch tells whether what was kept in a Redis can still be trusted. All gateways agree on an epoch, whose name is stored in Redis
// under one key: the runs of the masters, a dot, and something random. A new one begins when a master is another process, which may have
// old data from its disk, when Redis has lost its memory, when somebody deletes that key, and when it is demanded.
package epoch

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed lua
	lua     embed.FS
	scripts []string // the texts of all
	agree   = Script(lua, "epoch")
)

// Script is a script of a folder lua, which Redis runs atomically. It is called by its digest: each server gets all scripts when an
// epoch is learned.
func Script(files fs.ReadFileFS, name string) *redis.Script {
	text, err := files.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the name is wrong
	}
	scripts = append(scripts, string(text))
	return redis.NewScript(string(text))
}

// Clock tells the epoch to those who share a prefix of keys, without braces, in a Redis.
type Clock struct {
	Redis  redis.UniversalClient // a *redis.Client or a *redis.ClusterClient, with [Runs.OnConnect] and ContextTimeoutEnabled
	Prefix string

	runs     *Runs
	held     atomic.Pointer[Epoch] // nil: not known
	learning chan struct{}         // has room for one who learns it
}

// NewClock makes a clock. It does not contact Redis yet.
func NewClock(client redis.UniversalClient, runs *Runs, prefix string) *Clock {
	return &Clock{Redis: client, Prefix: prefix, runs: runs, learning: make(chan struct{}, 1)}
}

// Epoch is one of them.
type Epoch struct {
	clock *Clock
	turn  int64 // of [Runs]: while it stays the same, so do the masters

	Name string // as stored in Redis
	Keys string // begins the keys that end with the epoch
}

// Holds reports whether the epoch is not over as far as this gateway knows. Called after an answer of Redis, it reports whether that
// answer can be trusted: a connection to a new process is noticed before it carries any answer.
func (e *Epoch) Holds() bool { return e.clock.held.Load() == e && e.clock.runs.turn.Load() == e.turn }

// Ask adds the question for the epoch to a pipeline; [Epoch.Confirmed] reads the answer.
func (c *Clock) Ask(ctx context.Context, pipe redis.Cmdable) *redis.StringCmd {
	return pipe.Get(ctx, c.Prefix+":epoch")
}

// Confirmed reports whether this is the epoch, by the answer of Redis.
func (e *Epoch) Confirmed(answer *redis.StringCmd) bool {
	name, err := answer.Result()
	if err == nil && name != e.Name || errors.Is(err, redis.Nil) {
		e.clock.held.CompareAndSwap(e, nil)
	}
	return err == nil && e.Holds()
}

// Forget makes the next who asks learn the epoch, and with it load the scripts: these have gone.
func (c *Clock) Forget() { c.held.Store(nil) }

// Now asks Redis for the epoch.
func (c *Clock) Now(ctx context.Context) (*Epoch, error) {
	e, err := c.Known(ctx)
	if err != nil {
		return nil, err
	}
	answer := c.Ask(ctx, c.Redis)
	if err := answer.Err(); !e.Confirmed(answer) && err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	return c.Known(ctx) // this one, or the one that has begun
}

// Known is the epoch as this gateway knows it, or asks for if it does not.
func (c *Clock) Known(ctx context.Context) (*Epoch, error) {
	if e := c.held.Load(); e != nil && e.Holds() {
		return e, nil
	}
	return c.learn(ctx, false)
}

// Begin begins a new epoch. A full Redis takes no name: then the one before ends, and there is none until there is room.
func (c *Clock) Begin(ctx context.Context) error {
	_, err := c.learn(ctx, true)
	if redis.IsOOMError(err) {
		c.Forget()
		err = c.Redis.Del(ctx, c.Prefix+":epoch").Err()
	}
	return err
}

// learn asks all masters who they are, gives them the scripts, and agrees with the other gateways, on a fresh epoch if that is demanded.
func (c *Clock) learn(ctx context.Context, fresh bool) (*Epoch, error) {
	select {
	case c.learning <- struct{}{}:
		defer func() { <-c.learning }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if e := c.held.Load(); !fresh && e != nil && e.Holds() { // learned meanwhile
		return e, nil
	}
	for range 3 { // a new process may be noticed only while the masters are asked
		turn := c.runs.turn.Load()
		runs, err := c.masters(ctx)
		if err != nil {
			return nil, fmt.Errorf("learn the epoch of Redis: %w", err)
		}
		c.runs.known.Store(&runs)
		random := strconv.FormatUint(rand.Uint64()>>24, 36)
		name, err := agree.EvalSha(ctx, c.Redis, []string{c.Prefix + ":epoch"}, strings.Join(runs, ","), random, fresh).Text()
		if err != nil {
			return nil, fmt.Errorf("learn the epoch of Redis: %w", err)
		}
		if c.runs.turn.Load() == turn {
			_, random, _ = strings.Cut(name, ".")
			e := &Epoch{clock: c, turn: turn, Name: name, Keys: c.Prefix + ":" + random + ":"}
			c.held.Store(e)
			return e, nil
		}
	}
	return nil, errors.New("learn the epoch of Redis: its masters keep changing")
}

// masters gives all masters the scripts and returns their run ids, in order.
func (c *Clock) masters(ctx context.Context) (runs []string, err error) {
	var mu sync.Mutex
	err = EachMaster(ctx, c.Redis, func(ctx context.Context, one *redis.Client) error {
		pipe := one.Pipeline()
		info := pipe.Info(ctx, "server")
		for _, text := range scripts {
			pipe.ScriptLoad(ctx, text)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		run := Field(info.Val(), "run_id")
		if run == "" {
			return errors.New("it does not report its run_id")
		}
		mu.Lock()
		defer mu.Unlock()
		runs = append(runs, run)
		return nil
	})
	slices.Sort(runs)
	return runs, err
}

// EachMaster calls a function for each master of a cluster, at the same time, or for the only server.
func EachMaster(ctx context.Context, client redis.UniversalClient, f func(context.Context, *redis.Client) error) error {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, f)
	}
	return f(ctx, client.(*redis.Client))
}

// Runs notices that a Redis is no longer the same process. It looks at every connection before that is used: put its OnConnect into the
// options of the client, which may serve other purposes besides. If Redis does not say who it is, Runs does not fail, but no epoch is
// found.
type Runs struct {
	turn  atomic.Int64             // rises with each connection to an unknown process
	known atomic.Pointer[[]string] // the masters
}

// OnConnect is for [redis.UniversalOptions.OnConnect].
func (r *Runs) OnConnect(ctx context.Context, conn *redis.Conn) error {
	info, err := conn.Info(ctx).Result()
	if err != nil && !errors.As(err, new(redis.Error)) {
		return err
	}
	if Field(info, "cluster_enabled") == "1" && Field(info, "role") == "slave" { // it may become a master: then this must not read from it
		return errors.New("a replica, which is not read")
	}
	if known := r.known.Load(); known == nil || !slices.Contains(*known, Field(info, "run_id")) {
		r.turn.Add(1)
	}
	return nil
}

// Field returns the value of a line in Redis's INFO.
func Field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
