package inbox

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"
)

// What Redis does atomically.
var (
	//go:embed lua/look.lua
	lookText string
	//go:embed lua/lead.lua
	leadText string
	//go:embed lua/begin.lua
	beginText string
	//go:embed lua/register.lua
	registerText string
	//go:embed lua/leave.lua
	leaveText string
	//go:embed lua/fill.lua
	fillText string
	//go:embed lua/deliver.lua
	deliverText string
	//go:embed lua/read.lua
	readText string

	look     = redis.NewScript(lookText)
	lead     = redis.NewScript(leadText)
	begin    = redis.NewScript(beginText)
	register = redis.NewScript(registerText)
	leave    = redis.NewScript(leaveText)
	fill     = redis.NewScript(fillText)
	deliver  = redis.NewScript(deliverText)
	read     = redis.NewScript(readText)
)

// loadAll gives a server the scripts, which are then called by their digests.
func loadAll(ctx context.Context, one *redis.Client) error {
	for _, s := range []*redis.Script{look, lead, begin, register, leave, fill, deliver, read} {
		if err := s.Load(ctx, one).Err(); err != nil { // in a pipeline, it would forget the digest
			return err
		}
	}
	return nil
}
