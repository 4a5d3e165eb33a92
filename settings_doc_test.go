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
	for command, file := range map[string]string{"serve": "README.md", "import": "docs/import.md", "migrate": ""} {
		t.Run(command, func(t *testing.T) {
			want := slices.Clone(commandOf(t, parser.Model, command).Flags)
			if command == "serve" {
				want = append(slices.Clone(parser.Model.Flags), want...)
			}
			want = slices.DeleteFunc(want, func(f *kong.Flag) bool { return f.Name == "help" })
			var documented []setting
			if file != "" {
				documented = settingsIn(t, file)
			}
			if len(documented) != len(want) {
				t.Fatalf("%s has %d settings, the program %d", file, len(documented), len(want))
			}
			for i, flag := range want {
				compareSetting(t, documented[i], flag)
			}
		})
	}
}

func commandOf(t *testing.T, app *kong.Application, name string) *kong.Node {
	t.Helper()
	for _, node := range app.Children {
		if node.Name == name {
			return node
		}
	}
	t.Fatalf("no command %s", name)
	return nil
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
