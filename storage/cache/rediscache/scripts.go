package rediscache

import (
	"embed"

	"github.com/redis/go-redis/v9"

	"kith/storage"
)

// The scripts in Lua, which Redis runs atomically. They are loaded when an epoch begins, and called by their digests. All keys
// of a call are in one slot.
var (
	//go:embed lua
	lua embed.FS

	userGet     = scriptIn("userget")
	userFill    = scriptIn("userfill")
	listGet     = scriptIn("listget")
	listFill    = scriptIn("listfill")
	changed     = scriptIn("changed")
	epochScript = scriptIn("epoch")

	scripts []string // their texts
)

func scriptIn(name string) *redis.Script {
	text, err := lua.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the name is wrong
	}
	scripts = append(scripts, string(text))
	return redis.NewScript(string(text))
}

// All keys of a user are in one slot of a cluster, so that one script can change them. The part in
// braces determines the slot.

func (e *epoch) user(id storage.UserID) string { return e.keys + "{" + id.String() + "}:user" }

func (e *epoch) list(side storage.Side, id storage.UserID) string {
	return e.keys + "{" + id.String() + "}:" + side.String()
}
