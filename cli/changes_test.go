package cli

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/alecthomas/kong"

	"kith/internal/check"
	"kith/internal/must"
)

// Who asks for all that was written until now learns that it has not got all. Without an end, being stopped is the end.
func TestAnInterruptedListOfChangesIsAFailure(t *testing.T) {
	store := emptyStore(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for end, want := range map[bool]error{true: context.Canceled, false: nil} {
		var program struct {
			Changes ChangesCmd `cmd:""`
		}
		parser, err := kong.New(&program, kong.Writers(io.Discard, io.Discard), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(store, &Settings{}))
		must.OK(t, err)
		k, err := parser.Parse([]string{"changes", fmt.Sprintf("--until-now=%t", end)})
		must.OK(t, err)
		check.Is(t, fmt.Sprintf("until now %t", end), k.Run(), want)
	}
}
