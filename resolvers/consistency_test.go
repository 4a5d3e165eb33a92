package resolvers_test

import (
	"context"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/reconcile"
	"kith/resolvers"
	"kith/storage"
)

// lookUp holds checkpoints in memory.
type kept map[string][]byte

func (k kept) LoadCheckpoint(_ context.Context, name string) ([]byte, bool, error) {
	value, found := k[name]
	return value, found, nil
}

func (k kept) SaveCheckpoint(_ context.Context, name string, value []byte) error {
	k[name] = value
	return nil
}

func (k kept) DeleteCheckpoint(_ context.Context, name string) error {
	delete(k, name)
	return nil
}

func TestConsistencyIsForOperators(t *testing.T) {
	store := storeOf(t, 1)
	checkpoints := kept{}
	api := apitest.New(t, store, apitest.Options{Statuses: checkpoints})
	const query = `{ consistency { lastFullScanAt modes { mode at oldestUnpairedSeconds kinds { kind found repaired } } } }`

	for who, api := range map[string]*apitest.API{"nobody": api, "user 1": api.As(1)} {
		check.Equal(t, who, api.Ask(query, nil).Refused("BAD_USER_INPUT"), `Cannot query field "consistency" on type "Query".`)
	}
	c, err := new(resolvers.Resolver).Query().Consistency(t.Context())
	check.That(t, c == nil && err != nil, "the field itself does not look who asks: %+v", c)
	api.Admin().Ask(query, nil).Is(`{"consistency": {"lastFullScanAt": null, "modes": []}}`)

	at := storage.MicrosOf(time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC))
	for _, s := range []reconcile.Status{
		{Mode: reconcile.ModeFull, At: at, Found: map[reconcile.Kind]int{reconcile.Missing: 3}, Repaired: map[reconcile.Kind]int{reconcile.Missing: 2}},
		{Mode: reconcile.ModeRealtime, At: at + 1, OldestUnpaired: 1.5},
	} {
		must.OK(t, reconcile.SaveStatus(t.Context(), checkpoints, s))
	}
	rest := `{"kind": "EXTRA", "found": 0, "repaired": 0}, {"kind": "WRONG_TYPE", "found": 0, "repaired": 0},
		{"kind": "WRONG_TIME", "found": 0, "repaired": 0}, {"kind": "WRONG_COUNT", "found": 0, "repaired": 0}, {"kind": "FORBIDDEN", "found": 0, "repaired": 0}`
	api.Admin().Ask(query, nil).Is(`{"consistency": {"lastFullScanAt": "2026-11-20T08:00:00.000000Z", "modes": [
		{"mode": "FULL", "at": "2026-11-20T08:00:00.000000Z", "oldestUnpairedSeconds": 0, "kinds": [{"kind": "MISSING", "found": 3, "repaired": 2}, ` + rest + `]},
		{"mode": "REALTIME", "at": "2026-11-20T08:00:00.000001Z", "oldestUnpairedSeconds": 1.5, "kinds": [{"kind": "MISSING", "found": 0, "repaired": 0}, ` + rest + `]}]}}`)
}
