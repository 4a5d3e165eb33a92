package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"kith/storage"
	"kith/storage/sleep"
)

// Checkpoints that all processes on a store share.
const (
	SettingsCheckpoint = "settings of the store" // see [LoadSettings]
	RedisCheckpoint    = "redis"                 // which Redis the processes have: the text of [Redis.Name]
)

// WatchEvery is how often running processes look at what they share.
const WatchEvery = presenceRenew

// ErrOtherRedis is the error of a process whose Redis is not that of the processes on the store.
var ErrOtherRedis = errors.New("everything that runs on a store has to have the same: change it here, or stop everything else")

// LoadSettings returns the settings of a store that have been set, by name; the others have their defaults. They lie in
// the store, so that all processes on it have the same: one with others would cache what nobody corrects, or refuse what others allow.
func LoadSettings(ctx context.Context, store storage.Checkpoints) (map[string]string, error) {
	set := map[string]string{}
	value, found, err := store.LoadCheckpoint(ctx, SettingsCheckpoint)
	if err != nil || !found {
		return set, err
	}
	if err := json.Unmarshal(value, &set); err != nil {
		return nil, fmt.Errorf("the settings in the store: %w", err)
	}
	return set, nil
}

// SaveSettings replaces all settings of a store at once. Of two that are called at once, the later one counts.
func SaveSettings(ctx context.Context, store storage.Checkpoints, set map[string]string) error {
	value, err := json.Marshal(set)
	if err != nil {
		return err
	}
	return store.SaveCheckpoint(ctx, SettingsCheckpoint, value)
}

// OthersRun reports whether leases of gateways and replicators are renewed, whatever their clocks say. Those of dead processes
// stay as they are.
func OthersRun(ctx context.Context, leaser storage.Leaser) bool {
	before, err := leaser.Holders(ctx, presenceKind)
	if err != nil || len(before) > 0 && sleep.For(ctx, presenceRenew+2*presenceEvery) != nil {
		return true
	}
	after, err := leaser.Holders(ctx, presenceKind)
	for owner, until := range after {
		if before[owner] != until {
			return true
		}
	}
	return err != nil
}

// Name says which Redis a process has: none, or one with an id. It is empty if the Redis does not answer.
func (r *Redis) Name(ctx context.Context) string {
	if r.Client() == nil {
		return "none"
	}
	id, err := r.id(ctx)
	if err != nil {
		return ""
	}
	return "one whose " + redisID + " is " + id
}

// Agree returns an error if the processes on the store have another Redis, if any run. If there is none, the own one is
// recorded, unless the caller only asks.
func (r *Redis) Agree(ctx context.Context, store Store, onlyAsk bool) error {
	own, err := r.Name(ctx), r.Agrees(ctx, store)
	if errors.Is(err, ErrOtherRedis) {
		if err = nil; OthersRun(ctx, store) {
			err = r.Agrees(ctx, store) // if their Redis has lost its data, they have recorded it meanwhile
		}
	}
	if err != nil || onlyAsk || own == "" {
		return err
	}
	return store.SaveCheckpoint(ctx, RedisCheckpoint, []byte(own))
}

// Agrees returns [ErrOtherRedis] if another Redis is recorded in the store.
func (r *Redis) Agrees(ctx context.Context, store storage.Checkpoints) error {
	recorded, _, err := store.LoadCheckpoint(ctx, RedisCheckpoint)
	if err != nil {
		return err
	}
	return OtherRedis(r.Name(ctx), string(recorded))
}

// OtherRedis is the error of a process with one Redis on a store whose processes have another; nil if one is not known.
func OtherRedis(own, recorded string) error {
	if own == "" || recorded == "" || own == recorded {
		return nil
	}
	return fmt.Errorf("--redis (KITH_REDIS): it is %s here, and %s for what runs on the store: %w", own, recorded, ErrOtherRedis)
}

// Watch returns what a process does every [WatchEvery]: [Redis.Agrees]. If a Redis has another id than the recorded one, it
// answers for the first time, or has lost its data, or it is not the one of the other processes. So its id is recorded once when
// it changes, and once more by those who had the recorded one: if nobody else has another Redis, it stays.
func (r *Redis) Watch(store storage.Checkpoints) func(context.Context) error {
	last, agreed := "", false
	return func(ctx context.Context) error {
		recorded, _, err := store.LoadCheckpoint(ctx, RedisCheckpoint)
		own := r.Name(ctx)
		if err != nil || own == "" {
			return err
		}
		differs := own != string(recorded)
		if differs && (agreed || own != last) {
			err = store.SaveCheckpoint(ctx, RedisCheckpoint, []byte(own))
			recorded = []byte(own)
		}
		last, agreed = own, !differs
		if err != nil {
			return err
		}
		return OtherRedis(own, string(recorded))
	}
}
