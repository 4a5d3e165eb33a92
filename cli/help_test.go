package cli

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
)

// TestExamples: every example is a command of the present program, for its own path. Every command has an example,
// unless it has neither flags nor arguments.
func TestExamples(t *testing.T) {
	quoted, comment := regexp.MustCompile(`'[^']*'`), regexp.MustCompile(` +#.*`)
	known := map[string]bool{"": true}
	for path, text := range commandExamples {
		for line := range strings.Lines(strings.TrimSpace(text)) {
			line = strings.TrimSuffix(strings.TrimPrefix(comment.ReplaceAllString(strings.TrimSpace(line), ""), "source <("), ")")
			if _, command, piped := strings.Cut(line, " | "); piped {
				line = command
			}
			words := strings.Fields(quoted.ReplaceAllString(line, "mysql:x@tcp(y)/z"))
			check.That(t, words[0] == "kith" && strings.HasPrefix(strings.Join(words[1:], " "), path), "%s: %s", path, line)
			if words[len(words)-1] == "bash" || words[1] == "schema" {
				continue // they end the process while arguments are parsed
			}
			_, err := model(t).Parse(words[1:])
			check.Is(t, line, err, nil)
		}
	}
	for _, node := range append(model(t).Model.Leaves(true), model(t).Model.Children...) {
		known[node.Path()] = true
		if _, ok := commandExamples[node.Path()]; !ok && len(node.Flags)+len(node.Positional) > 0 && !strings.HasPrefix(node.Path(), "shards ") {
			t.Errorf("%s has no example", node.Path())
		}
	}
	for path := range commandExamples {
		check.That(t, known[path], "there is no command %q", path)
	}
}

func TestHelpHasGroupsAndExamples(t *testing.T) {
	var out, complaints bytes.Buffer
	code := Run(t.Context(), []string{"--help"}, &out, &complaints)
	must.That(t, code == 0 && complaints.Len() == 0, "%v %v", code, &complaints)
	at := 0
	for _, want := range []string{"Usage: kith ", "Examples:\n", "    kith --demo  ", "Serve the graph:\n", "  serve  ", "Bring data in and out:\n", "  import  ", "Look after a store:\n", "  migrate  ", "Measure, and learn about the program:\n", "  version  ", "--store=LOCATION"} {
		i := strings.Index(out.String()[at:], want)
		must.That(t, i >= 0, "no %q behind byte %d of\n%s", want, at, &out)
		at += i
	}
}

func TestSuggestions(t *testing.T) {
	root := model(t).Model.Node
	for line, want := range map[string]string{
		"imprt":             `unexpected argument imprt, did you mean "import"?`,
		"--store=x imprt":   `unexpected argument imprt, did you mean "import"?`,
		"recon":             `unexpected argument recon, did you mean "reconcile"?`,
		"serve imprt":       `unexpected argument imprt (kith serve --help)`,
		"reconcile ful":     `unexpected argument ful, did you mean "full"?`,
		"zebra":             `unexpected argument zebra (kith --help)`,
		"--stoer=x":         `unknown flag --stoer, did you mean "--store"?`,
		"--max-costs=3":     `unknown flag --max-costs, did you mean "--max-cost"?`,
		"import --strct f":  `unknown flag --strct, did you mean "--strict"?`,
		"shards mov --to=1": `unexpected argument mov, did you mean "move"?`,
		"import":            `expected "<file> ..." (kith import --help)`,
		"shards --repair":   `unknown flag --repair (kith shards --help)`,
		"shards split 0 1":  `unexpected argument 0 (kith shards split --help)`,
		"serve -demo":       `unknown flag -d: flags have two dashes (kith serve --help)`,
		"serve --max-cost=": `--max-cost (KITH_MAX_COST): "" is no whole number`,
		"copy --max-load=a": `--max-load: "a" is no number such as 0.5`,
		"serve --store":     `--store (KITH_STORE): its value is missing`,
	} {
		args := strings.Fields(line)
		_, err := model(t).Parse(args)
		if err == nil {
			err = errors.New("none")
		} else {
			err = suggest(named(err), root, args)
		}
		check.Equal(t, line, err.Error(), want)
	}
}
