package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/alecthomas/kong"

	"kith/cluster"
	"kith/storage/sqlstore"
)

// SettingsCmd is `kith settings`.
type SettingsCmd struct {
	Get SettingsGetCmd `cmd:"" default:"withargs" help:"Show the settings in the store, and which are defaults."`
	Set SettingsSetCmd `cmd:"" help:"Change settings in the store, all at once. NAME= restores the default."`
}

// SettingsGetCmd is `kith settings get`.
type SettingsGetCmd struct {
	Output
	Names []string `arg:"" optional:"" name:"name" help:"Settings to show; all if none is named."`
}

// storeSetting is a setting in the report.
type storeSetting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Now     string `json:"now,omitempty"` // what "auto" is on this store
	Default bool   `json:"default"`
	help    string
}

// Run shows them in the order in which they are declared.
func (c *SettingsGetCmd) Run(settings *Settings, k *kong.Context) error {
	of, err := readStoreSettings(settings.set)
	if err != nil {
		return err
	}
	parser, flags := of.storeFlags()
	for _, name := range c.Names {
		if flags[name] == nil {
			return unusable{unknownSetting(name, flags)}
		}
	}
	var list []storeSetting
	for _, f := range parser.Model.Flags {
		if _, isSet := settings.set[f.Name]; len(c.Names) == 0 || slices.Contains(c.Names, f.Name) {
			s := storeSetting{Name: f.Name, Value: written(f), Default: !isSet, help: f.Help}
			if s.Value == auto {
				s.Now = settings.Redundancy // resolved when this command joined the store
			}
			list = append(list, s)
		}
	}
	if c.JSON() {
		return WriteJSON(k.Stdout, list)
	}
	for _, s := range list {
		from := "set"
		if s.Default {
			from = "default"
		}
		value := s.Value
		if s.Now != "" {
			value += " (now " + s.Now + ")"
		}
		fmt.Fprintf(k.Stdout, "%-21s %-17s %-8s %s\n", s.Name, value, from, s.help)
	}
	return nil
}

// SettingsSetCmd is `kith settings set`.
type SettingsSetCmd struct {
	Values []string `arg:"" name:"name=value" help:"Settings, such as max-following=8000."`
}

// Run checks all values before it sets one.
func (c *SettingsSetCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	set := maps.Clone(settings.set)
	_, flags := new(StoreSettings).storeFlags()
	for _, given := range c.Values {
		name, value, ok := strings.Cut(given, "=")
		if flags[name] == nil {
			return unusable{unknownSetting(name, flags)}
		}
		if !ok {
			return unusable{fmt.Errorf("%s: write %[1]s=VALUE; %[1]s= is the default again", name)}
		}
		if set[name] = value; value == "" {
			delete(set, name)
		}
	}
	was, err := valuesOf(settings.set, nil)
	if err != nil {
		return err
	}
	after, err := readStoreSettings(set)
	if err != nil {
		return unusable{err}
	}
	if name, err := after.check(settings.Store, settings.Redis); err != nil {
		return unusable{fmt.Errorf("%s: %w", name, err)}
	}
	if _, err := after.modeOn(store); err != nil {
		return unusable{fmt.Errorf("redundancy: %w", err)}
	}
	_, is := after.storeFlags()
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, isSet := set[name]; isSet {
			set[name] = written(is[name])
		}
		if was[name] != written(is[name]) {
			changed = append(changed, name)
		}
	}
	needStop := func(name string) bool { return is[name].Tag.Get("restart") == "all" }
	if i := slices.IndexFunc(changed, needStop); i >= 0 && cluster.OthersRun(ctx, store) {
		if err := ctx.Err(); err != nil {
			return err // the look for others was cut off, and says that some run
		}
		return fmt.Errorf("%s: gateways or replicators run on this store, and two values at a time would leave wrong values in memory: stop all, set it, start them", changed[i])
	}
	if err := cluster.SaveSettings(ctx, store, set); err != nil {
		return Misset("store", err)
	}
	for _, name := range changed {
		within := "within 5s, without a restart"
		switch is[name].Tag.Get("restart") {
		case "all":
			within = "from the next start on"
		case "each":
			within = "from each gateway's next start on"
		}
		fmt.Fprintf(k.Stdout, "%s: %s → %s, %s\n", name, cmp.Or(was[name], "none"), cmp.Or(written(is[name]), "none"), within)
	}
	if slices.Contains(changed, "redundancy") {
		fmt.Fprintln(k.Stdout, "what the former mode had not propagated is found by kith reconcile full --repair")
	}
	if len(changed) == 0 {
		fmt.Fprintln(k.Stdout, "nothing changed")
	}
	return nil
}

// unknownSetting is the error of a name that is none, with the one that may have been meant.
func unknownSetting[V any](name string, known map[string]V) error {
	best := nearest(name, slices.Sorted(maps.Keys(known)))
	if best == "" {
		return fmt.Errorf("%s is not a setting of the store: kith settings shows all", name)
	}
	return fmt.Errorf("%s is not a setting of the store: did you mean %s?", name, best)
}

// nearest is the name that begins like this one, or differs least, by fewer than three letters; empty if there is none.
func nearest(name string, names []string) (best string) {
	closest := 3
	for _, n := range names {
		d := levenshtein.ComputeDistance(name, n)
		if len(name) > 1 && strings.HasPrefix(n, name) {
			d = 0
		}
		if d < closest {
			best, closest = n, d
		}
	}
	return best
}
