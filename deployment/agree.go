package deployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"kith/internal/sleep"
	"kith/storage"
)

// Agreed are the settings in which all processes on a store have to agree, by their flags. They lie in the store while any
// process runs on it: one with others would cache what nobody corrects, or refuse what others allow.
type Agreed map[string]string

const (
	// AgreedCheckpoint is the name under which they lie in the store.
	AgreedCheckpoint = "settings"

	// ByStore ends the value of a setting that was left open: two such values never differ.
	ByStore = " (by store)"

	// agreedEvery is how often running processes compare.
	agreedEvery = 10 * time.Second
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
	if errors.Is(err, ErrDisagrees) && !othersRun(ctx, store) {
		all, err = Agreed{}, nil
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
	if err != nil || !found {
		return Agreed{}, err
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
			return nil, fmt.Errorf("--%s (KITH_%s): it is %s here, and %s for what runs on the store: %w",
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

// Watch compares until the context is done, and logs once what differs.
func (a Agreed) Watch(ctx context.Context, store storage.Checkpoints, logger *slog.Logger) {
	for said := ""; sleep.For(ctx, agreedEvery) == nil; {
		if err := a.Check(ctx, store); errors.Is(err, ErrDisagrees) && err.Error() != said {
			said = err.Error()
			logger.ErrorContext(ctx, "a setting is not that of the store", "error", err)
		}
	}
}
