package inbox

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"

	"github.com/redis/go-redis/v9"
)

// script is a piece of Lua, which Redis runs atomically, and which is called by its digest.
type script struct{ text, digest string }

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

	look     = scriptOf(lookText)
	lead     = scriptOf(leadText)
	begin    = scriptOf(beginText)
	register = scriptOf(registerText)
	leave    = scriptOf(leaveText)
	fill     = scriptOf(fillText)
	deliver  = scriptOf(deliverText)
	read     = scriptOf(readText)
)

func scriptOf(text string) script {
	digest := sha1.Sum([]byte(text)) // as Redis names scripts
	return script{text, hex.EncodeToString(digest[:])}
}

func loadAll(ctx context.Context, one *redis.Client) error {
	pipe := one.Pipeline()
	for _, s := range []script{look, lead, begin, register, leave, fill, deliver, read} {
		pipe.ScriptLoad(ctx, s.text)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// call adds a call to a pipeline, or makes it.
func (s script) call(ctx context.Context, to redis.Cmdable, keys []string, args ...any) *redis.Cmd {
	return to.EvalSha(ctx, s.digest, keys, args...)
}
