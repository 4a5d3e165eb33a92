package cli

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"kith/internal/check"
)

// The value at a bound is taken, the next one is refused with the flag's name.
func TestBounds(t *testing.T) {
	for line, want := range map[string]string{
		"--max-cost 1": "", "serve --max-cost 0": "--max-cost: it must be greater than 0", "--max-cost=0": "--max-cost: it must be greater than 0",
		"--max-cost 1000000000": "", "--max-cost 1000000001": "--max-cost: it must be greater than 0 and at most 1000000000",
		"--drain 0s": "", "--drain=-1ns": "--drain: it must not be negative",
		"migrate --shard-conns 1": "", "migrate --shard-conns 0": "--shard-conns: it must be at least 1",
		"import f --chunk 10000000": "", "import f --chunk 10000001": "--chunk: it must be 1 to 10000000",
		"reconcile full --max-load 1": "", "reconcile full --max-load 1.01": "--max-load: it must be above 0 and at most 1",
		"reconcile full --max-load 0": "--max-load: it must be above 0 and at most 1", "reconcile full --max-load NaN": "--max-load: it must be above 0 and at most 1",
		"shards resume --keep 24h": "", "shards resume --keep 24h1ns": "--keep: it must be from 2s to 24h", "shards resume --keep 1999ms": "--keep: it must be from 2s to 24h",
		"doctor --max-cost 0": "", // it reports all of them
	} {
		switch _, err := model(t).Parse(strings.Fields(line)); {
		case want == "" && err != nil, want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	t.Setenv("KITH_MAX_COST", "0")
	_, err := model(t).Parse(nil)
	check.That(t, err != nil && named(err).Error() == "--max-cost (KITH_MAX_COST): it must be greater than 0 and at most 1000000000", "by its variable: %v", err)
	err = kong.Visit(model(t).Model, func(node kong.Visitable, next kong.Next) error {
		if f, ok := node.(*kong.Flag); ok && f.Tag.Has("bound") {
			if _, known := bounds[f.Tag.Get("bound")]; !known {
				t.Errorf("--%s: there is no bound %q", f.Name, f.Tag.Get("bound"))
			}
		}
		return next(nil)
	})
	check.That(t, err == nil, "%v", err)
}
