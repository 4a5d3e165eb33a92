package docs_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"kith/cli"
	"kith/internal/must"
)

// update is for pages that the program's settings, metrics and alerts are written into:
//
//	go test ./docs -run Generated -update
var update = flag.Bool("update", false, "write the generated parts of docs/reference anew")

// generated compares a part of a page, between comments with its name, with what it is made of, or writes it anew.
func generated(t *testing.T, path, name, text string) {
	t.Helper()
	begin, end := "<!-- begin: "+name+" -->\n", "<!-- end: "+name+" -->"
	page := read(t, path)
	before, rest, opened := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	must.That(t, opened && closed, "%s does not say where %q is", path, name)
	switch want := before + begin + "\n" + text + "\n" + end + after; {
	case want == page:
	case *update:
		must.OK(t, os.WriteFile(path, []byte(want), 0o644))
	default:
		t.Errorf("%s: %q is not what the program has now: go test ./docs -run Generated -update", path, name)
	}
}

// program is the command line as kong knows it.
func program(t *testing.T) *kong.Application {
	t.Helper()
	parser, err := kong.New(new(cli.Program), kong.Name("kith"), cli.Vars)
	must.OK(t, err)
	return parser.Model
}

// titles are the headings of settings of `kith serve`, by their group.
var titles = map[string]string{
	"store": "Store and log, for every command", "of the store": "In the store", "requests": "Requests", "process": "This process",
	"schema": "Schema, documents and pages", "connections": "Connections", "identity": "Who may ask",
}

// docs/reference/settings.md has all settings of `kith serve`, by group.
func TestGeneratedSettings(t *testing.T) {
	var text strings.Builder
	var keys []string
	groups := map[string][]*kong.Flag{}
	for _, f := range append(slices.Clone(program(t).Flags), program(t).DefaultCmd.Flags...) {
		key := ""
		if f.Group != nil {
			key = f.Group.Key
		}
		if !slices.Contains(keys, key) && !ofEveryProgram(f) {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], f)
	}
	for i, key := range keys {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "### %s\n\n%s", cmp.Or(titles[key], key, "Others"), flagTable(groups[key]))
	}
	generated(t, "reference/settings.md", "settings", text.String())
}

// docs/reference/cli.md has all commands, with their arguments and the flags that are their own.
func TestGeneratedCommands(t *testing.T) {
	var text strings.Builder
	model, tables := program(t), map[*kong.Node][]*kong.Flag{}
	for _, command := range model.Leaves(false) {
		name := command.Path()
		if strings.HasPrefix(name, "bench ") {
			continue // for measuring: bench/README.md
		}
		if text.Len() > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "### kith %s\n\n%s.", name, cell(command.Help))
		if slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == "output" }) {
			text.WriteString(" Takes `--output`.") // said of all of them above
		}
		text.WriteString("\n")
		for _, a := range command.Positional {
			if a.Help != "" {
				fmt.Fprintf(&text, "\nArgument `%s`: %s.\n", strings.ToUpper(a.Name), cell(a.Help))
			}
		}
		own := slices.DeleteFunc(slices.Clone(command.Flags), func(f *kong.Flag) bool {
			return ofEveryProgram(f) || f.Name == "output" || name == "doctor" && // they take those of serve
				slices.ContainsFunc(model.DefaultCmd.Flags, func(o *kong.Flag) bool { return o.Name == f.Name })
		})
		switch like := covering(tables, command, own); {
		case command == model.DefaultCmd:
			text.WriteString("\nIts flags are the [settings](settings.md).\n")
		case like != nil:
			var names []string
			for _, f := range own {
				names = append(names, "--"+f.Name)
			}
			fmt.Fprintf(&text, "\nTakes %s, as `kith %s`.\n", quoted(names), like.Path())
		case len(own) > 0:
			text.WriteString("\n" + flagTable(own))
			tables[command] = own
		}
	}
	generated(t, "reference/cli.md", "commands", text.String())
}

// covering is a command beside another one that has the same flags, and perhaps more; nil if there is none.
func covering(tables map[*kong.Node][]*kong.Flag, command *kong.Node, own []*kong.Flag) *kong.Node {
	for _, sibling := range command.Parent.Children {
		all := len(own) > 0
		for _, f := range own {
			all = all && slices.ContainsFunc(tables[sibling], func(o *kong.Flag) bool {
				return o.Name == f.Name && o.Help == f.Help && o.Default == f.Default && o.Required == f.Required
			})
		}
		if all {
			return sibling
		}
	}
	return nil
}

// ofEveryProgram are flags that are no settings.
func ofEveryProgram(f *kong.Flag) bool {
	return f.Name == "help" || f.Name == "help-all" || f.Name == "version"
}

var saidDefault = regexp.MustCompile(` Default: (.*)\.$`)

// flagTable has a row for each flag: what it is called, its variable, its default and what it means.
func flagTable(flags []*kong.Flag) string {
	var text strings.Builder
	variables := slices.ContainsFunc(flags, func(f *kong.Flag) bool { return len(f.Envs) > 0 })
	if text.WriteString("|flag|default|meaning|\n|---|---|---|\n"); variables {
		text.Reset()
		text.WriteString("|flag|variable|default|meaning|\n|---|---|---|---|\n")
	}
	for _, f := range flags {
		if ofEveryProgram(f) {
			continue
		}
		name := "`--" + f.Name + "`"
		if f.Hidden { // it lies in the store
			name = "`" + f.Name + "`"
		} else if f.Tag.Negatable != "" {
			name += ", `--no-" + f.Name + "`"
		}
		def, meaning := f.Default, f.Help
		if m := saidDefault.FindStringSubmatch(meaning); m != nil {
			def, meaning = m[1], strings.TrimSuffix(meaning, m[0])
		}
		switch {
		case def != "" && def == f.Default:
			def = "`" + def + "`"
		case def == "" && f.Required:
			def = "needed"
		case def == "" && f.IsBool():
			def = "off"
		case def == "":
			def = "none"
		}
		fmt.Fprintf(&text, "|%s|", name)
		if variables {
			fmt.Fprintf(&text, "%s|", quoted(f.Envs))
		}
		fmt.Fprintf(&text, "%s|%s|\n", cell(def), cell(meaning))
	}
	return text.String()
}

func quoted(names []string) string {
	var list []string
	for _, name := range names {
		list = append(list, "`"+name+"`")
	}
	return strings.Join(list, ", ")
}

// cell is a text that stands in a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(strings.TrimSuffix(strings.TrimSpace(text), "."))
}

// docs/reference/metrics.md has all metrics of Kith's own, with their types, their labels and their help.
func TestGeneratedMetrics(t *testing.T) {
	var text strings.Builder
	text.WriteString("|metric|type, by labels|what it shows|\n|---|---|---|\n")
	list := metrics(t)
	for _, m := range list {
		by := m.kind
		if len(m.labels) > 0 {
			by += " by " + quoted(m.labels)
		}
		fmt.Fprintf(&text, "|`%s`|%s|%s|\n", m.name, by, cell(m.help))
	}
	must.That(t, len(list) >= 80, "only %d metrics", len(list))
	generated(t, "reference/metrics.md", "metrics", text.String())
}

var (
	labelInSummary = regexp.MustCompile(`\{\{ \$labels\.(\w+) \}\}`)
	valueInSummary = strings.NewReplacer("{{ $value | humanizePercentage }}", "*N* %", "{{ $value | humanizeDuration }}", "*N* s", "{{ $value }}", "*N*")
)

// docs/reference/metrics.md has all alerts, in their order.
func TestGeneratedAlerts(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, For          string
				Labels, Annotations map[string]string
			}
		}
	}
	must.OK(t, yaml.Unmarshal([]byte(read(t, filepath.Join(root, "deploy/prometheus/alerts.yaml"))), &file))
	var text strings.Builder
	text.WriteString("|alert|severity|after|says|\n|---|---|---|---|\n")
	rows := 0
	for _, group := range file.Groups {
		for _, a := range group.Rules {
			severity := a.Labels["severity"]
			if severity == "critical" {
				severity = "**critical**: pages"
			}
			says := labelInSummary.ReplaceAllString(valueInSummary.Replace(a.Annotations["summary"]), "*$1*")
			_, anchor, _ := strings.Cut(a.Annotations["runbook_url"], "#")
			fmt.Fprintf(&text, "|[%s](../how-to/incidents.md#%s)|%s|%s|%s|\n", a.Alert, anchor, severity, cmp.Or(a.For, "at once"), cell(says))
			rows++
		}
	}
	must.That(t, rows >= 20 && !strings.Contains(text.String(), "{{"), "%d alerts:\n%s", rows, text.String())
	generated(t, "reference/metrics.md", "alerts", text.String())
}
