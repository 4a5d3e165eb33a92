// Package properties checks properties by package rapid, so many times as each test can afford.
package properties

import (
	"flag"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// short is the part of the cases that make test tries: each run draws other cases, so that one run
// may find what another has missed.
const short = 3

// Check is [rapid.Check] with at most so many cases if the long tests run (KITH_TEST_LONG=1), and with a
// third of them otherwise. If -rapid.checks is given on the command line, that is the number of cases.
func Check(t *testing.T, cases int, property func(*rapid.T)) {
	t.Helper()
	if isGiven("rapid.checks") {
		rapid.Check(t, property)
		return
	}
	if os.Getenv("KITH_TEST_LONG") != "1" {
		cases = (cases + short - 1) / short
	}
	rapid.Check(t, atMost(cases, property))
}

// atMost stops checking once a property has held in so many cases. A case that failed is tried
// again for as long as rapid makes it smaller.
func atMost(cases int, property func(*rapid.T)) func(*rapid.T) {
	held, failed := 0, false
	return func(t *rapid.T) {
		if held >= cases && !failed {
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
