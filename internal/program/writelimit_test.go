package program_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// A user who writes too often is refused, with the seconds to wait: by two gateways together while they have a Redis, and by each
// when it has frozen.
func TestGatewaysCountWritesTogether(t *testing.T) {
	t.Parallel()
	redis := testenv.Redis(t)
	options := []kithtest.Option{
		kithtest.Args("--store", location(newSQLite(t, 1)...), "--redis", redis.URL()),
		kithtest.Env("KITH_JWT_SECRET="+secret, "KITH_WRITE_LIMIT=3"),
	}
	here, there := kithtest.Start(t, options...), kithtest.Start(t, options...)
	tokens := make(map[string]string)
	for _, name := range []string{"maya", "zoe", "noor"} {
		tokens[name] = tokenOf(t, here, "", `register(handle: "`+name+`", name: "M", password: "correct horse")`)
	}
	// refused reports whether a write was, or done.
	refused := func(g *kithtest.Gateway, who, mutation string) bool {
		t.Helper()
		g.Until(t, "answer", func() bool {
			status, _ := askAs(t, g, tokens[who], "{ viewer { user { id } } }")
			return status == http.StatusOK
		})
		text := textAs(t, g, tokens[who], "mutation { "+mutation+" }")
		var answer kithtest.Response
		err := json.Unmarshal([]byte(text), &answer)
		must.That(t, err == nil, "%s: %v", text, err)
		if len(answer.Errors) == 0 {
			return false
		}
		about := answer.Errors[0].Extensions
		wait, ok := about["retryAfter"].(float64)
		must.That(t, about["code"] == "RATE_LIMITED" && ok && wait >= 1 && wait <= 60, "%s: %s", mutation, text)
		return true
	}
	const rename, publish = `updateProfile(name: "N") { viewer { user { name } } }`, `a: publishPost(text: "x", clientKey: "a") { changed }`
	written := 0
	for _, g := range []*kithtest.Gateway{here, there, here, there, here, there} {
		if !refused(g, "maya", rename) {
			written++
		}
	}
	check.That(t, written >= 3 && written <= 4, "%d writes were done on two gateways, 3 are allowed", written) // 4: when a minute ended meanwhile
	check.That(t, !refused(here, "maya", publish) && !refused(there, "zoe", rename), "another mutation was refused, or another user")

	redis.Freeze(t)
	written = 0
	for range 4 {
		for _, g := range []*kithtest.Gateway{here, there} {
			if !refused(g, "noor", rename) {
				written++
			}
		}
	}
	check.Equal(t, "writes without Redis, of which each gateway allows 3", written, 6)
}
