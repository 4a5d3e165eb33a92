// Package properties checks properties by package rapid, so many times as each test can afford.
package properties

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// short is the part of the cases that make test tries: each run draws other cases, so that one run
// may find what another has missed.
const short = 6

// budget is how long make test tries further cases of one property, once there were a few.
const (
	budget = time.Second
	few    = 4
)

// Check is [rapid.Check] with at most so many cases if the long tests run (KITH_TEST_LONG=1). Otherwise it is with a
// sixth of them, or fewer if they take longer than a budget of seconds. If -rapid.checks is given on the command line, that is the
// number of cases. The log has the seed, which -rapid.seed repeats.
func Check(t *testing.T, cases int, property func(*rapid.T)) {
	t.Helper()
	t.Logf("-rapid.seed=%s", seed())
	if isGiven("rapid.checks") {
		rapid.Check(t, property)
		return
	}
	end := time.Now().Add(budget)
	if os.Getenv("KITH_TEST_LONG") != "1" {
		cases = (cases + short - 1) / short
	} else {
		end = end.Add(time.Hour)
	}
	rapid.Check(t, atMost(cases, end, property))
}

// seed is that of all properties of a test binary.
var seed = sync.OnceValue(func() string {
	value := flag.Lookup("rapid.seed").Value
	if value.String() == "0" { // rapid would draw one, and print it only if a property fails
		if err := value.Set(strconv.FormatUint(rand.Uint64(), 10)); err != nil {
			panic(err)
		}
	}
	return value.String()
})

// atMost stops checking once a property has held in so many cases, or in a few when the time is up. A case that failed is tried
// again for as long as rapid makes it smaller.
func atMost(cases int, end time.Time, property func(*rapid.T)) func(*rapid.T) {
	held, failed := 0, false
	return func(t *rapid.T) {
		if enough := held >= cases || held >= few && time.Now().After(end); enough && !failed {
			return
		}
		ended := false
		defer func() {
			if t.Failed() {
				failed = true
			} else if ended {
				held++
			}
		}()
		property(t)
		ended = true
	}
}

func isGiven(name string) (given bool) {
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}
