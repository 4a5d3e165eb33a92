package prepared

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/check"
)

// While no server takes writes, each refused write does not close all connections.
func TestAGenerationLastsASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused, other := errors.New("read-only"), errors.New("another")
		g := &Generation{Ends: func(err error) bool { return errors.Is(err, refused) }}
		for _, c := range []struct {
			after time.Duration
			err   error
			want  int64
		}{{0, nil, 0}, {0, other, 0}, {0, refused, 1}, {0, refused, 1}, {generationTime - 1, refused, 1}, {1, other, 1}, {0, refused, 2}} {
			time.Sleep(c.after)
			g.hear(c.err)
			check.Equal(t, "the generation", g.now(), c.want)
		}
	})
	var none *Generation
	none.hear(errors.New("any"))
	check.Equal(t, "of none", none.now(), 0)
}
