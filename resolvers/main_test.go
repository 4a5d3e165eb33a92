package resolvers_test

import (
	"testing"

	"kith/internal/testenv"
)

// cases of a property, through HTTP and often the race detector, are some seconds;
// -rapid.checks asks for more.
const cases = 40

func TestMain(m *testing.M) { testenv.Main(m) }
