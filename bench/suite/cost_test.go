package suite_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/bench"
	"kith/bench/report"
	"kith/bench/suite"
	"kith/graph/generated"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

// mostOff is by how much the work of a unit may exceed that of plain values.
const mostOff = 3

// TestWeightsAreWhatFieldsTake: of 100 objects, no field takes more than three times as much CPU for each unit of its cost as plain values of
// users do in the same run. A field that seems to is measured again: the machine may have other work.
func TestWeightsAreWhatFieldsTake(t *testing.T) {
	c := tiny(t)
	c.States, c.Users, c.Follows, c.Duration = []string{report.Warm}, 1000, 50, 10*time.Millisecond
	const yardsticks = `^User\.(handle|name|createdAt|followerCount|followingCount) ×100$|\.__typename ×100$`
	yardstick := regexp.MustCompile(yardsticks)
	least := map[string]float64{} // µs a unit beyond those of the objects themselves
	only := regexp.MustCompile("×100")
	var unit float64
	for range 5 {
		all, err := suite.RunCost(t.Context(), c, only, 0)
		must.OK(t, err)
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
			case yardstick.MatchString(one.Name):
				plain = append(plain, one.MicrosPerUnit())
			}
			net := (one.CPU - objects[of].CPU) / max(100, one.Cost-objects[of].Cost)
			if before, known := least[one.Name]; !known || net < before {
				least[one.Name] = net
			}
		}
		slices.Sort(plain)
		unit = max(unit, plain[len(plain)/2])
		must.Least(t, "fields that were measured", len(least), 50)
		again := yardsticks
		for name, net := range least {
			if net > mostOff*unit {
				again += "|^" + regexp.QuoteMeta(name) + "$"
			}
		}
		if again == yardsticks {
			break
		}
		c.Duration *= 2 // beside other work a short run says little
		only = regexp.MustCompile(again)
	}
	for name, net := range least {
		if net > mostOff*unit {
			t.Errorf("%s takes %.1f µs for each unit of its cost, plain values take %.1f: its weight is too small", name, net, unit)
		}
	}
}

// TestLongRandomQueries: of 20,000 legal queries that are drawn at random, none takes more than twice what the default limit stands for: 100 ms of
// CPU, and 50 MB, whether caches are on or not.
func TestLongRandomQueries(t *testing.T) {
	testenv.Long(t)
	c := tiny(t)
	c.States, c.Users, c.Follows = []string{report.Cold, report.Warm}, 10_000, 50
	all, err := suite.RunCost(t.Context(), c, regexp.MustCompile(""), 10_000)
	must.OK(t, err)
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
	check.Least(t, "queries that were asked", asked, len(all)/2)
}

// muchOff is how many times as much a query of one field may take as the yardstick, whose rows are read once, where lists are short, and where
// they are long: 100 ms stand for 10 to 20 ms of that.
var muchOff = map[bool]float64{false: 5, true: 10}

// plainUsers begins the probe that is the yardstick.
const plainUsers = "{ viewer { user { followings(first: 100) { nodes { id"

// TestDearFields: no field, with arguments that make it dear, takes more under as many aliases as the default limit allows than what that
// stands for: 100 ms of CPU, or on a slow machine a multiple of as many plain values, and 50 MB, for a user who follows thousands. A field that
// seems to is measured again: the machine may have other work.
func TestDearFields(t *testing.T) {
	c := tiny(t)
	c.States, c.Users, c.Follows = []string{report.Cold}, 4000, 5
	only := regexp.MustCompile(regexp.QuoteMeta(plainUsers) + `|viewer { user { (friends|followersYouKnow|followSuggestions)\(first: \$i\)|searchUsers|edgesTo\(kind: ADMIRES, id: \$c`)
	if testenv.AllTests() {
		c.States, c.Users, c.Follows = []string{report.Cold, report.Warm}, 10_000, 60
		only, c.Seed = regexp.MustCompile(""), rand.Uint64()
	}
	t.Logf("seed %d", c.Seed)
	for try := 1; ; try++ {
		all, err := suite.RunDear(t.Context(), c, only)
		must.OK(t, err)
		plain := map[string]float64{}
		for _, one := range all {
			if strings.HasPrefix(one.Name, plainUsers) {
				plain[one.State] = one.CPU
			}
		}
		var dear []string
		for _, one := range all {
			switch {
			case one.Refused != "" && one.Cost <= 100_000:
				t.Errorf("%s was refused: %s", one.Name, one.Refused)
			case one.CPU > max(100_000, muchOff[testenv.AllTests()]*plain[one.State]) || one.Bytes > 50e6:
				dear = append(dear, regexp.QuoteMeta(one.Name))
				t.Logf("%s, cost %.0f: %.0f ms, %.0f MB, plain values %.0f ms: %s", one.State, one.Cost, one.CPU/1e3, one.Bytes/1e6, plain[one.State]/1e3, one.Name)
			}
		}
		if len(dear) == 0 || try == 3 {
			if len(dear) > 0 {
				t.Errorf("%d fields take too much", len(dear))
			}
			return
		}
		only = regexp.MustCompile("^" + regexp.QuoteMeta(plainUsers) + "|" + strings.Join(dear, "|"))
	}
}

// TestAllDearFieldsAreAsked: every field with arguments is among [bench.DearFields].
func TestAllDearFieldsAreAsked(t *testing.T) {
	text := fmt.Sprint(bench.DearFields)
	for of, d := range generated.NewSchema(generated.Config{}).Schema().Types {
		if d.Kind != ast.Object || d.BuiltIn || of == "Mutation" || of == "Subscription" {
			continue
		}
		for _, f := range d.Fields {
			if len(f.Arguments) > 0 && !strings.HasPrefix(f.Name, "__") && !strings.Contains(text, f.Name+"(") {
				t.Errorf("nobody asks for %s.%s", of, f.Name)
			}
		}
	}
}
