package idset

import (
	"testing"

	"kith/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
