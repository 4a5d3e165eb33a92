package resolvers_test

import (
	"testing"

	"kith/internal/testenv"
)

// cases is how often a property is checked. Through HTTP, and often under the race detector, that
// takes some seconds. -rapid.checks sets a higher number.
const cases = 40

func TestMain(m *testing.M) { testenv.Main(m) }
