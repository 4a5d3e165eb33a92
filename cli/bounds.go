package cli

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/alecthomas/kong"

	"kith/files/importer"
)

// bounds are the values of the tag `bound` of a flag that is a number or a duration.
var bounds = map[string]struct {
	holds func(float64) bool
	err   error
}{
	"positive": {func(n float64) bool { return n > 0 }, errors.New("it must be greater than 0")},
	"some":     {func(n float64) bool { return n >= 1 }, errors.New("it must be at least 1")},
	"natural":  {func(n float64) bool { return n >= 0 }, errors.New("it must not be negative")},
	"size":     {func(n float64) bool { return n > 0 && n <= 1<<40 }, errors.New("it must be greater than 0 and at most 1TiB")},
	"keep": {func(n float64) bool { return n >= float64(2*time.Second) && n <= float64(24*time.Hour) },
		errors.New("it must be from 2s to 24h: programs look for moves once a second")},
	"chunk": {func(n float64) bool { return n >= 1 && n <= importer.MaxChunk }, fmt.Errorf("it must be 1 to %d", importer.MaxChunk)},
	"cost":  {func(n float64) bool { return n >= 1 && n <= 1e9 }, errors.New("it must be greater than 0 and at most 1000000000")},
	"share": {func(n float64) bool { return n > 0 && n <= 1 }, errors.New("it must be above 0 and at most 1")},
}

// bounded refuses flags that are out of their bounds, before a command checks more. kith doctor reports them itself.
var bounded = kong.WithBeforeApply(func(k *kong.Context) (first error) {
	if k.Command() != "doctor" {
		outOfBounds(k, func(flag string, err error) { first = cmp.Or(first, fmt.Errorf("--%s: %w", flag, err)) })
	}
	return first
})

// outOfBounds reports the flags of a command that are out of their bounds.
func outOfBounds(k *kong.Context, report func(flag string, err error)) {
	for _, f := range k.Flags() {
		bound, ok := bounds[f.Tag.Get("bound")]
		if !ok {
			continue
		}
		value := reflect.ValueOf(k.FlagValue(f))
		if value.CanInt() || value.CanUint() {
			value = value.Convert(reflect.TypeFor[float64]())
		}
		if !bound.holds(value.Float()) {
			report(f.Name, bound.err)
		}
	}
}
