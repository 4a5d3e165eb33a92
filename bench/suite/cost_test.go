package suite_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kith/bench/report"
	"kith/bench/suite"
	"kith/internal/testenv"
)

// mostOff is by how much the work of a unit may exceed that of plain values.
const mostOff = 3

// TestWeightsAreWhatFieldsTake: of 100 objects, no field takes more than three times as much CPU for each unit of its cost as plain values of
// users do in the same run. A field that seems to is measured again: the machine may have other work.
func TestWeightsAreWhatFieldsTake(t *testing.T) {
	c := tiny(t)
	c.States, c.Graphs, c.Duration = []string{report.Warm}, []suite.Graph{{Users: 1000, Edges: 50_000}}, 10*time.Millisecond
	least := map[string]float64{} // µs a unit beyond those of the objects themselves
	var unit float64
	for range 5 {
		all, err := suite.RunCost(t.Context(), c, "×100", 0)
		if err != nil {
			t.Fatal(err)
		}
		objects := map[string]suite.Cost{}
		var plain []float64
		for _, one := range all {
			of, field, _ := strings.Cut(one.Name, ".")
			field, isMany := strings.CutSuffix(field, " ×100")
			switch {
			case one.Refused != "" || !isMany:
				continue
			case field == "__typename":
				objects[of] = one
			case of == "User" && slices.Contains([]string{"handle", "name", "createdAt", "followerCount", "followingCount"}, field):
				plain = append(plain, one.MicrosPerUnit())
			}
			net := (one.CPU - objects[of].CPU) / max(100, one.Cost-objects[of].Cost)
			if before, known := least[one.Name]; !known || net < before {
				least[one.Name] = net
			}
		}
		slices.Sort(plain)
		unit = max(unit, plain[len(plain)/2])
		if len(least) < 50 {
			t.Fatalf("%d fields were measured", len(least))
		}
		if !slices.ContainsFunc(values(least), func(net float64) bool { return net > mostOff*unit }) {
			break
		}
		c.Duration *= 2 // the clock of processes ticks every 10 ms: beside other work a short run says little
	}
	for name, net := range least {
		if net > mostOff*unit {
			t.Errorf("%s takes %.1f µs for each unit of its cost, plain values take %.1f: its weight is too small", name, net, unit)
		}
	}
}

func values(of map[string]float64) (all []float64) {
	for _, v := range of {
		all = append(all, v)
	}
	return all
}

// TestLongRandomQueries: of 20,000 legal queries that are drawn at random, none takes more than twice what the default limit stands for: 100 ms of
// CPU, and 50 MB, whether caches are on or not.
func TestLongRandomQueries(t *testing.T) {
	testenv.Long(t)
	c := tiny(t)
	c.States, c.Graphs = []string{report.Cold, report.Warm}, []suite.Graph{{Users: 10_000, Edges: 500_000}}
	all, err := suite.RunCost(t.Context(), c, "", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	asked, worst := 0, suite.Cost{}
	for _, one := range all {
		if one.Refused != "" {
			continue
		}
		if asked++; one.CPU > worst.CPU {
			worst = one
		}
		if one.CPU > 200_000 || one.Bytes > 100e6 {
			t.Errorf("%s, cost %.0f: %.0f ms, %.0f MB: %s", one.State, one.Cost, one.CPU/1e3, one.Bytes/1e6, one.Query)
		}
	}
	t.Logf("%d of %d queries were asked; the worst cost %.0f and took %.0f ms", asked, len(all), worst.Cost, worst.CPU/1e3)
	if asked < len(all)/2 {
		t.Errorf("%d of %d were refused: the test shows little", len(all)-asked, len(all))
	}
}
