package loaders_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"kith/internal/apitest"
	"kith/loaders"
	"kith/storage/memory"
)

// No request waits on a loader's timer: here it would wait for an hour.
func TestNoQueryWaitsOnATimer(t *testing.T) {
	before := loaders.SetWait(time.Hour)
	t.Cleanup(func() { loaders.SetWait(before) })

	const users = 12
	store := memory.New()
	apitest.Users(t, store, users)
	apitest.Tangle(t, store, users)
	api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits})

	rapid.Check(t, func(t *rapid.T) {
		query, vars := apitest.Query(t, users)
		api.For(t).AskWithin(5*time.Second, query, vars).Whole()
	})
}
