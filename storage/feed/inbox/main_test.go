package inbox

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"kith/internal/testenv"
)

func TestMain(m *testing.M) {
	redis.SetLogger(unheard{})
	testenv.Main(m)
}

type unheard struct{}

func (unheard) Printf(context.Context, string, ...any) {}
