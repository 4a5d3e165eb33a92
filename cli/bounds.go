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

// bounds say, by the tag `bound` of a flag, what is wrong with its value.
var bounds = map[string]func(value reflect.Value) error{
	"positive": number("it must be greater than 0", func(n float64) bool { return n > 0 }),
	"some":     number("it must be at least 1", func(n float64) bool { return n >= 1 }),
	"second":   number("it must be at least 1s", func(n float64) bool { return n >= float64(time.Second) }),
	"natural":  number("it must not be negative", func(n float64) bool { return n >= 0 }),
	"size":     number("it must be greater than 0 and at most 1TiB", func(n float64) bool { return n > 0 && n <= 1<<40 }),
	"keep": number("it must be from 2s to 24h: programs look for moves once a second",
		func(n float64) bool { return n >= float64(2*time.Second) && n <= float64(24*time.Hour) }),
	"chunk": number(fmt.Sprintf("it must be 1 to %d", importer.MaxChunk), func(n float64) bool { return n >= 1 && n <= importer.MaxChunk }),
	"cost":  number("it must be greater than 0 and at most 1000000000", func(n float64) bool { return n >= 1 && n <= 1e9 }),
	"share": number("it must be above 0 and at most 1", func(n float64) bool { return n > 0 && n <= 1 }),

	"address": func(value reflect.Value) error { return CheckAddress(value.String()) },
	"origin":  func(value reflect.Value) error { return checkOneOrigin(value.String()) },
	"origins": func(value reflect.Value) error { return checkOrigins(value.Interface().([]string)) },
	"headers": func(value reflect.Value) error { return checkHeaders(value.Interface().([]string)) },
}

// number is a bound of a flag that is a number or a duration.
func number(says string, holds func(float64) bool) func(reflect.Value) error {
	return func(value reflect.Value) error {
		if holds(value.Convert(reflect.TypeFor[float64]()).Float()) {
			return nil
		}
		return errors.New(says)
	}
}

// bounded refuses flags that are out of their bounds, before a command checks more. kith doctor reports them itself.
var bounded = kong.WithBeforeApply(func(k *kong.Context) (first error) {
	if k.Command() != "doctor" {
		outOfBounds(k, func(flag string, err error) { first = cmp.Or(first, fmt.Errorf("--%s: %w", flag, err)) })
	}
	return first
})

// outOfBounds reports the flags of a command that are out of their bounds. One without a default may be left out.
func outOfBounds(k *kong.Context, report func(flag string, err error)) {
	for _, f := range k.Flags() {
		value, bound := reflect.ValueOf(k.FlagValue(f)), bounds[f.Tag.Get("bound")]
		if bound == nil || value.IsZero() && !f.HasDefault {
			continue
		}
		if err := bound(value); err != nil {
			report(f.Name, err)
		}
	}
}
