package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"kith/storage"
	"kith/storage/sleep"
)

// Agreed are the settings in which all processes on a store have to agree, by their flags. They lie in the store while any
// process runs on it: one with others would cache what nobody corrects, or refuse what others allow.
type Agreed map[string]string

const (
	// AgreedCheckpoint is the name under which they lie in the store.
	AgreedCheckpoint = "settings"

	// agreedRedis is which Redis the processes have.
	agreedRedis = "redis"

	// ByStore ends the value of a setting that was left open: two such values never differ.
	ByStore = " (by store)"

	// agreedEvery is how often running processes compare: within the time for which one that starts looks whether they run.
	agreedEvery = presenceRenew
)

// ErrDisagrees is the error of settings that are not those of the processes on the store.
var ErrDisagrees = errors.New("everything that runs on a store has to have the same: change it here, or stop everything else; kith agree records other rules for all before a rolling restart")

// AgreeStore is what agreeing needs of a store.
type AgreeStore interface {
	storage.Checkpoints
	storage.Leaser
}

// Agree returns an error that names a setting which the processes on the store have otherwise, if any run. If there is none,
// settings that are not recorded yet are recorded, unless the caller only asks.
func (a Agreed) Agree(ctx context.Context, store AgreeStore, onlyAsk bool) error {
	all, err := a.compare(ctx, store)
	if errors.Is(err, ErrDisagrees) {
		if othersRun(ctx, store) {
			all, err = a.compare(ctx, store) // if their Redis has lost its data, they have recorded it meanwhile
		} else {
			all, err = Agreed{}, nil
		}
	}
	if err != nil || onlyAsk {
		return err
	}
	for flag, value := range a {
		if all[flag] == "" || strings.HasSuffix(all[flag], ByStore) {
			all[flag] = value
		}
	}
	return all.Record(ctx, store)
}

// WithRedis adds which Redis a process has, if any. One that does not answer is left out.
func (a Agreed) WithRedis(ctx context.Context, redis *Redis) Agreed {
	own := maps.Clone(a)
	if redis.Client() == nil {
		own[agreedRedis] = "none"
	} else if id, err := redis.id(ctx); err == nil {
		own[agreedRedis] = "one whose " + redisID + " is " + id
	}
	return own
}

// othersRun reports whether leases are renewed, whatever their clocks say. Those of dead processes stay as they are.
func othersRun(ctx context.Context, leaser storage.Leaser) bool {
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

// Check returns an error that names a setting which differs from that in the store.
func (a Agreed) Check(ctx context.Context, store storage.Checkpoints) error {
	_, err := a.compare(ctx, store)
	return err
}

func (a Agreed) compare(ctx context.Context, store storage.Checkpoints) (recorded Agreed, err error) {
	value, found, err := store.LoadCheckpoint(ctx, AgreedCheckpoint)
	if err != nil {
		return nil, err
	}
	if !found {
		return Agreed{}, nil
	}
	return a.Differs(value)
}

// Differs is Check with the value of the checkpoint, which it returns as well.
func (a Agreed) Differs(value []byte) (recorded Agreed, err error) {
	if err := json.Unmarshal(value, &recorded); err != nil {
		return nil, fmt.Errorf("the settings in the store: %w", err)
	}
	for _, flag := range slices.Sorted(maps.Keys(a)) {
		own, open := strings.CutSuffix(a[flag], ByStore)
		other, left := strings.CutSuffix(recorded[flag], ByStore)
		if other != "" && own != other && !(open && left) {
			return recorded, fmt.Errorf("--%s (KITH_%s): it is %s here, and %s for what runs on the store: %w",
				flag, strings.ToUpper(strings.ReplaceAll(flag, "-", "_")), a[flag], recorded[flag], ErrDisagrees)
		}
	}
	return recorded, nil
}

// Record records the settings for all processes on a store.
func (a Agreed) Record(ctx context.Context, store storage.Checkpoints) error {
	value, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return store.SaveCheckpoint(ctx, AgreedCheckpoint, value)
}

// Watch compares until the context is done, and logs once what differs. If a Redis has another id than the recorded one, it
// answers for the first time, or has lost its data, or it is not the one of the other processes. So its id is recorded once when
// it changes, and once more by those who had the recorded one: if nobody else has another Redis, it stays.
func (a Agreed) Watch(ctx context.Context, store storage.Checkpoints, redis *Redis, logger *slog.Logger) {
	for said, last, agreed := "", "", false; sleep.For(ctx, agreedEvery) == nil; {
		own := a.WithRedis(ctx, redis)
		recorded, err := own.compare(ctx, store)
		if id := own[agreedRedis]; id != "" && recorded != nil {
			differs := recorded[agreedRedis] != id
			if differs && (agreed || id != last) {
				recorded[agreedRedis] = id
				err = recorded.Record(ctx, store)
			}
			last, agreed = id, !differs
		}
		if errors.Is(err, ErrDisagrees) && err.Error() != said {
			said = err.Error()
			logger.ErrorContext(ctx, "a setting is not that of the store", "error", err)
		}
	}
}
