package resolvers_test

import (
	"flag"
	"testing"

	"kith/internal/testenv"
)

// Forty cases of each property, through HTTP and often the race detector, are some
// seconds; -rapid.checks asks for more.
func init() {
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
}

func TestMain(m *testing.M) { testenv.Main(m) }
