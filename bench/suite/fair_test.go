package suite_test

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"kith/bench/suite"
	"kith/internal/must"
)

// Both gateways answer the ordinary requests, and the crowd is answered: with as many aliases as need no turn, with as many as the
// limit allows, and with random queries.
func TestFairness(t *testing.T) {
	c := tiny(t)
	c.Users, c.Follows, c.Duration = 1000, 20, 150*time.Millisecond
	all, err := suite.RunFair(t.Context(), c, regexp.MustCompile(`^. user\(by: .id: .o.\) . followers`), 3, 2)
	must.OK(t, err)
	if len(all) < 3 || all[0].Cost > 1000 || all[1].Cost <= 1000 {
		t.Fatalf("%+v", all)
	}
	for _, one := range all {
		if one.Alone <= 0 || one.Beside <= 0 || one.P50 <= 0 || one.P99 < one.P50 || one.SparedP50 <= 0 || one.Slower99 <= 0 || slices.Min(one.Memory[:]) <= 0 {
			t.Errorf("%+v", one)
		}
	}
}
