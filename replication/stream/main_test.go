package stream_test

import (
	"os"
	"testing"

	"kith/internal/testenv"
)

// TestMain runs the tests, or, in a process that a test started, a consumer.
func TestMain(m *testing.M) {
	if os.Getenv(envRedis) != "" {
		consumeForEver()
	}
	testenv.Main(m)
}
