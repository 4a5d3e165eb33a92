package loaders_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"kith/internal/apitest"
	"kith/loaders"
	"kith/storage/memory"
)

// No request waits on a loader's timer, which here would last far longer than any
// request may take.
func TestNoQueryWaitsOnATimer(t *testing.T) {
	const long, patience = 20 * time.Second, 5 * time.Second
	before := loaders.SetWait(long)
	t.Cleanup(func() { loaders.SetWait(before) })

	const users = 12
	store := memory.New()
	apitest.Users(t, store, users)
	apitest.Tangle(t, store, users)
	api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits})

	rapid.Check(t, func(t *rapid.T) {
		query, vars := apitest.Query(t, users)
		api.For(t).AskWithin(patience, query, vars).Whole()
	})
}
