package cluster

import (
	"path/filepath"
	"testing"
	"time"

	"kith/accounts/identity"
	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage/sqlstore"
)

// Gateways count what a user writes together although their clocks differ, and all say when the user may go on: a minute after it began.
func TestGatewaysCountTogetherWhateverTheirClocksSay(t *testing.T) {
	t.Parallel()
	store := opened.Store(t, sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db")})
	shared, err := Config{Redis: testenv.Redis(t).URL()}.OpenRedis(t.Context())
	must.OK(t, err)
	defer shared.Close()
	var gateways []*identity.Limits
	for _, ahead := range []time.Duration{-time.Minute, 0, time.Minute} {
		l := identity.NewLimits(identity.LimitsConfig{PerUser: 4, Now: func() time.Time { return time.Now().Add(ahead) }})
		l.CountAll = shared.CountAll(store)
		gateways = append(gateways, l)
	}
	began, accepted := time.Now(), 0
	for range 4 {
		for _, l := range gateways {
			err := l.Write(t.Context(), 1, "follow", 1)
			if err == nil {
				accepted++
				continue
			}
			refused, ok := apierr.Of(err)
			must.That(t, ok, "%v", err)
			wait := refused.Extensions()["retryAfter"].(int)
			check.Most(t, "the seconds to wait", wait, 60)
			check.Least(t, "the seconds to wait", wait, int((time.Minute-time.Since(began))/time.Second))
		}
	}
	check.Equal(t, "writes of a minute", accepted, 4)
	key, count := "kith:"+store.UUID()+":a", shared.CountAll(store)
	must.OK(t, shared.Client().Set(t.Context(), key, 1, time.Hour).Err()) // as after the clock of Redis was set back
	n, left, err := count(t.Context(), "a", 1)
	check.That(t, n == 2 && left <= time.Minute && err == nil, "%d are counted, for %s: %v", n, left, err)
	check.Is(t, "another user's", gateways[0].Write(t.Context(), 2, "follow", 1), nil)
}
