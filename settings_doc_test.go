package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"kith/cli"
)

// The tables of settings in the documents are the program's flags: all of them, in
// their order, each with its variable and its default.
func TestSettingsAreDocumented(t *testing.T) {
	var p program
	parser, err := kong.New(&p, kong.Name("kith"), cli.Vars)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"serve": "README.md", "import": "docs/import.md", "replicate": "docs/operations.md"}
	for _, command := range parser.Model.Children {
		t.Run(command.Name, func(t *testing.T) {
			want := slices.Clone(command.Flags)
			if command.Name == "serve" {
				want = append(slices.Clone(parser.Model.Flags), want...)
			}
			want = slices.DeleteFunc(want, func(f *kong.Flag) bool { return f.Name == "help" })
			file := files[command.Name]
			var documented []setting
			if file != "" {
				documented = settingsIn(t, file)
			}
			if len(documented) != len(want) {
				t.Fatalf("%q has %d settings, the command %d", file, len(documented), len(want))
			}
			for i, flag := range want {
				compareSetting(t, documented[i], flag)
			}
		})
	}
}

// setting is a row of a table of settings; its cells are as they are written.
type setting struct{ flag, variable, def string }

var settingRow = regexp.MustCompile("(?m)^\\| (`--[^|]*`) \\|([^|]*)\\| ([^|]*) \\| [^|]{10,} \\|$")

func settingsIn(t *testing.T, file string) []setting {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []setting
	for _, m := range settingRow.FindAllStringSubmatch(string(text), -1) {
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
	case got.def == "by store": // Settings.Check fills it in
		want.def = got.def
	}
	if got != want {
		t.Errorf("documented %+v, the program has %+v", got, want)
	}
}
