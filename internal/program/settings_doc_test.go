package program_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"kith/cli"
)

// The tables of settings in the documents list the program's flags: all of them, in their order,
// each with its variable and its default.
func TestSettingsAreDocumented(t *testing.T) {
	var p cli.Program
	parser, err := kong.New(&p, kong.Name("kith"), cli.Vars)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Leaves(false) {
		name := command.Path()
		if strings.HasPrefix(name, "bench ") {
			continue // for measuring; bench/README.md names those that are needed
		}
		t.Run(name, func(t *testing.T) {
			want := slices.Clone(command.Flags)
			if name == "serve" {
				want = append(slices.Clone(parser.Model.Flags), want...)
			}
			if name == "doctor" || name == "token" {
				want = ofDoctor(parser.Model.Node, command)
			}
			want = slices.DeleteFunc(want, func(f *kong.Flag) bool { return strings.HasPrefix(f.Name, "help") || f.Name == "version" || f.Hidden })
			where := tables[name]
			documented := settingsIn(t, where)
			if len(documented) != len(want) {
				t.Fatalf("%q has %d settings, the command %d", where, len(documented), len(want))
			}
			for i, flag := range want {
				compareSetting(t, documented[i], flag)
			}
		})
	}
}

// ofDoctor returns the flags that only `kith doctor`, or `kith token`, has. They also take those of serve.
func ofDoctor(root, command *kong.Node) []*kong.Flag {
	return slices.DeleteFunc(slices.Clone(command.Flags), func(f *kong.Flag) bool {
		return slices.ContainsFunc(root.DefaultCmd.Flags, func(other *kong.Flag) bool { return other.Name == f.Name })
	})
}

// tables says where each command's flags are documented: the file, and the heading above the table.
var tables = map[string]string{
	"serve":                 "docs/settings.md#Settings",
	"doctor":                "docs/settings.md#Doctor",
	"token":                 "docs/settings.md#A token for operators",
	"settings get":          "docs/settings.md#Settings of the store",
	"migrate":               "docs/operations.md#Updates",
	"import":                "docs/import.md#Importing a graph",
	"export":                "docs/export.md#Exporting a graph",
	"copy":                  "docs/shards.md#To another store or engine",
	"shards status":         "docs/shards.md#kith shards status",
	"shards move":           "docs/shards.md#kith shards move",
	"shards split":          "docs/shards.md#kith shards split",
	"shards resume":         "docs/shards.md#kith shards resume",
	"healthcheck":           "docs/operations.md#kith healthcheck",
	"replicate":             "docs/operations.md#Replicating apart from serving",
	"schema":                "docs/api.md#The schema as a file",
	"reconcile full":        "docs/operations.md#kith reconcile full",
	"reconcile incremental": "docs/operations.md#kith reconcile incremental",
	"reconcile realtime":    "docs/operations.md#kith reconcile realtime",
}

// setting is a row of a table of settings, with its cells as they are written.
type setting struct{ flag, variable, def string }

var settingRow = regexp.MustCompile("(?m)^\\| (`--[^|]*`) \\|([^|]*)\\| ([^|]*) \\| [^|]{10,} \\|$")

// settingsIn reads the table below a heading. Without a heading there is none.
func settingsIn(t *testing.T, where string) []setting {
	t.Helper()
	file, heading, named := strings.Cut(where, "#")
	if !named {
		return nil
	}
	text, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	sections := regexp.MustCompile(`(?ms)^#+ `+regexp.QuoteMeta(heading)+`$(.*?)(?:^#|\z)`).FindAllStringSubmatch(string(text), -1)
	if len(sections) != 1 {
		t.Fatalf("%s has %d headings %q", file, len(sections), heading)
	}
	var list []setting
	for _, m := range settingRow.FindAllStringSubmatch(sections[0][1], -1) {
		list = append(list, setting{m[1], strings.TrimSpace(m[2]), m[3]})
	}
	return list
}

func compareSetting(t *testing.T, got setting, flag *kong.Flag) {
	t.Helper()
	want := setting{flag: "`--" + flag.Name + "`", def: "none"}
	if len(flag.Envs) > 0 {
		want.variable = "`" + flag.Envs[0] + "`"
	}
	switch {
	case flag.Default != "":
		want.def = "`" + flag.Default + "`"
	case flag.IsBool():
		want.def = "off"
	case got.def == "by store", got.def == "by memory": // Settings.Check and ServeCmd.footprint fill in these defaults
		want.def = got.def
	}
	if got != want {
		t.Errorf("documented %+v, the program has %+v", got, want)
	}
}
