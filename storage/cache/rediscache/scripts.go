package rediscache

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"

	"github.com/redis/go-redis/v9"
)

// script is a piece of Lua, which Redis runs atomically. The scripts are loaded when an epoch
// begins, and called by their digest.
type script struct{ text, digest string }

var (
	//go:embed lua/userget.lua
	userGetText string
	//go:embed lua/userfill.lua
	userFillText string
	//go:embed lua/userrelease.lua
	userReleaseText string
	//go:embed lua/listget.lua
	listGetText string
	//go:embed lua/listfill.lua
	listFillText string
	//go:embed lua/listrelease.lua
	listReleaseText string
	//go:embed lua/postget.lua
	postGetText string
	//go:embed lua/postfill.lua
	postFillText string
	//go:embed lua/postrelease.lua
	postReleaseText string
	//go:embed lua/postchanged.lua
	postChangedText string
	//go:embed lua/changed.lua
	changedText string
	//go:embed lua/epoch.lua
	epochText string

	userGet     = scriptOf(userGetText)
	userFill    = scriptOf(userFillText)
	userRelease = scriptOf(userReleaseText)
	listGet     = scriptOf(listGetText)
	listFill    = scriptOf(listFillText)
	listRelease = scriptOf(listReleaseText)
	postGet     = scriptOf(postGetText)
	postFill    = scriptOf(postFillText)
	postRelease = scriptOf(postReleaseText)
	postChanged = scriptOf(postChangedText)
	changed     = scriptOf(changedText)
	epochScript = scriptOf(epochText)

	scripts = []script{userGet, userFill, userRelease, listGet, listFill, listRelease, postGet, postFill, postRelease, postChanged, changed, epochScript}
)

func scriptOf(text string) script {
	digest := sha1.Sum([]byte(text)) // as Redis names scripts
	return script{text, hex.EncodeToString(digest[:])}
}

// call adds a call to a pipeline. All keys must be in one slot.
func (s script) call(ctx context.Context, to redis.Cmdable, keys []string, args ...any) *redis.Cmd {
	return to.EvalSha(ctx, s.digest, keys, args...)
}
