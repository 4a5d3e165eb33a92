package inbox

import (
	"context"
	"embed"

	"github.com/redis/go-redis/v9"
)

//go:embed lua
var texts embed.FS

// What Redis does atomically.
var (
	scripts []*redis.Script // all of these

	look     = script("look")
	lead     = script("lead")
	begin    = script("begin")
	register = script("register")
	leave    = script("leave")
	fill     = script("fill")
	deliver  = script("deliver")
	read     = script("read")
)

func script(name string) *redis.Script {
	text, err := texts.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // it is in the binary
	}
	s := redis.NewScript(string(text))
	scripts = append(scripts, s)
	return s
}

// loadAll gives a server the scripts, which are then called by their digests.
func loadAll(ctx context.Context, one *redis.Client) error {
	for _, s := range scripts {
		if err := s.Load(ctx, one).Err(); err != nil { // in a pipeline, it would forget the digest
			return err
		}
	}
	return nil
}
