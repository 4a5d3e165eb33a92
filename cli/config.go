package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"kith/graph/declared"
	"kith/storage"
)

// settingsOf are the flags of all commands that have variables, by name.
func settingsOf(root *kong.Node) map[string]*kong.Flag {
	all := map[string]*kong.Flag{}
	for _, node := range append(root.Leaves(false), root) {
		for _, f := range node.Flags {
			if len(f.Envs) > 0 {
				all[f.Name] = f
			}
		}
	}
	return all
}

// notSettings are variables that Kubernetes makes for a service of the name kith, and those of tests.
var notSettings = regexp.MustCompile(`^KITH_(TEST|BENCH)|_SERVICE_(HOST|PORT.*)$|^KITH_([A-Z_]+_)?PORT(_\d+_.*)?$`)

// checkVariables warns of variables KITH_… that are no settings.
func checkVariables(root *kong.Node, stderr io.Writer) {
	all := settingsOf(root)
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		flag, ours := strings.CutPrefix(name, "KITH_")
		if flag = strings.ToLower(strings.ReplaceAll(flag, "_", "-")); !ours || all[flag] != nil || notSettings.MatchString(name) {
			continue
		}
		meant := ""
		if best := nearest(flag, slices.Sorted(maps.Keys(all))); best != "" {
			meant = ": did you mean KITH_" + variable(best) + "?"
		}
		fmt.Fprintf(stderr, "kith: warning: %s is not a setting%s\n", printable(name), meant)
	}
}

// isTold reports whether a variable sets a flag. An empty one does not, as with the variables of OpenTelemetry: Docker Compose and Helm set what is left
// out to nothing. Without its store, a process would serve an empty one of its own, so an empty KITH_STORE is told, and refused.
func isTold(flag string) bool {
	value, inEnv := os.LookupEnv("KITH_" + variable(flag))
	return value != "" || inEnv && flag == "store"
}

// untold keeps kong from taking the values of empty variables.
var untold = kong.WithBeforeReset(func(k *kong.Context) error {
	return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			if _, inEnv := os.LookupEnv("KITH_" + variable(flag.Name)); inEnv && !isTold(flag.Name) {
				flag.Tag.Envs = nil
			}
		}
		return next(nil)
	})
})

// configured reads the file that --config names: settings by the names of their flags. Flags and variables win.
var configured = kong.WithBeforeResolve(func(k *kong.Context) error {
	name := os.Getenv("KITH_CONFIG")
	for _, p := range k.Path {
		if p.Flag != nil && p.Flag.Name == "config" {
			name, _ = k.FlagValue(p.Flag).(string)
		}
	}
	if name == "" {
		return nil
	}
	var values map[string]any
	text, err := declared.ReadFile(name)
	if err == nil {
		if err = declared.Decode(text, &values); err == nil {
			err = checkKeys(values, settingsOf(k.Model.Node))
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}
	if err != nil {
		return errors.New("--config: " + worded(err)) // [named] adds the variable, and keeps the text alone
	}
	k.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
		value, inFile := values[f.Name]
		if !inFile || isTold(f.Name) || len(f.Envs) == 0 {
			return nil, nil
		}
		return value, nil
	}))
	return nil
})

// checkKeys refuses keys that are no settings, and makes texts of the values, as flags have them.
func checkKeys(values map[string]any, all map[string]*kong.Flag) error {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch value := values[key].(type) {
		case map[string]any, nil:
			return fmt.Errorf("%s: it is a value, or a list of values", key)
		case []any:
			values[key] = strings.Join(storage.Each(value, func(v any) string { return fmt.Sprint(v) }), ",")
		default:
			values[key] = fmt.Sprint(value)
		}
		switch best := nearest(key, slices.Sorted(maps.Keys(all))); {
		case key == "config":
			return errors.New("config: a file does not name another one")
		case all[key] != nil:
		case best != "":
			return fmt.Errorf("%s is not a setting: did you mean %s?", key, best)
		default:
			return fmt.Errorf("%s is not a setting: kith serve --help-all shows all", key)
		}
	}
	return nil
}

// days reads durations as Go writes them, and days, such as 30d.
var days = kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(func(k *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := k.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	hours := text
	if n, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.ParseUint(n, 10, 16); err == nil {
			hours = fmt.Sprintf("%dh", 24*days)
		}
	}
	d, err := time.ParseDuration(hours)
	if err != nil {
		return fmt.Errorf("%q is not a duration, such as 500ms, 10s, 36h or 30d", text)
	}
	target.SetInt(int64(d))
	return nil
}))
