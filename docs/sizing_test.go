package docs_test

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"kith/bench/growth"
)

// The examples of docs/how-to/plan-capacity.md are the present results of `kith bench simulate`.
func TestSizingIsComputed(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| ([\d.]+ [kM]) \| (\d+) \| (.*) \|$`).FindAllStringSubmatch(read(t, "how-to/plan-capacity.md"), -1)
	if len(rows) != 3 {
		t.Fatalf("%d examples", len(rows))
	}
	for i, users := range []float64{100e3, 1e6, 10e6} {
		follows, err := strconv.ParseFloat(rows[i][2], 64)
		if err != nil {
			t.Fatal(err)
		}
		plan := growth.Example()
		plan.Curve.Months, plan.Curve.Users, plan.Curve.FollowsPerUser = 1, [2]float64{users, users}, [2]float64{follows, follows}
		months, err := growth.Simulate(plan)
		if err != nil {
			t.Fatal(err)
		}
		var table bytes.Buffer
		growth.WriteTable(&table, months[:1])
		cells := strings.Split(strings.Split(table.String(), "\n")[2], " | ")
		want := append(append([]string{}, cells[3:9]...), cells[11], cells[13])
		if got := strings.Split(rows[i][3], " | "); strings.Join(got, ",") != strings.Join(want, ",") || cells[1] != rows[i][1] {
			t.Errorf("%s users: %v, computed %s %v", rows[i][1], got, cells[1], want)
		}
	}
}
