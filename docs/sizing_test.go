package docs_test

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dustin/go-humanize"

	"kith/internal/must"
)

// The examples of docs/how-to/plan-capacity.md are computed from the figures of its steps.
func TestSizingIsComputed(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| ([\d.]+ [kM]) \| (\d+) \| (.*) \|$`).FindAllStringSubmatch(read(t, "how-to/plan-capacity.md"), -1)
	must.Equal(t, "examples", len(rows), 3)
	for i, users := range []float64{100e3, 1e6, 10e6} {
		each, err := strconv.ParseFloat(rows[i][2], 64)
		must.OK(t, err)
		const daily, coresHalfUsed, packed = 0.3, 0.5 * 1000, 0.1 * 7 // ms of CPU time a second; a tenth of the follows in 7 bytes
		follows, perSecond := users*each, users*daily*3/86_400
		following, follower, other := follows*120, follows*150, users*430+follows*packed
		requests, changes := 30*perSecond, 3*perSecond
		gateways := math.Ceil(requests * 0.26 / (4 * coresHalfUsed))
		servers := math.Ceil(slices.Max([]float64{
			(following + follower + other) / (0.6 * 2e12), users * daily * 65_536 / 128e9, (requests*0.23 + changes*(0.62+0.1)) / (16 * coresHalfUsed), changes / 10_000,
		}))
		want := []string{short(following) + "B", short(follower) + "B", short(other) + "B"}
		for _, n := range []float64{requests, changes, gateways, servers, 4 * servers} {
			want = append(want, humanize.Comma(int64(math.Round(n))))
		}
		if got := rows[i][3]; got != strings.Join(want, " | ") || short(users) != rows[i][1] {
			t.Errorf("%s users: %s, computed %s %v", rows[i][1], got, short(users), want)
		}
	}
}

// short spells a number with three digits: 12.3 M.
func short(n float64) string {
	value, prefix := humanize.ComputeSI(n)
	digits := max(0, 2-int(math.Floor(math.Log10(value))))
	return strconv.FormatFloat(value, 'f', digits, 64) + " " + prefix
}
