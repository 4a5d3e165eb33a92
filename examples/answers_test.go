package examples_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kith/examples"
	"kith/internal/check"
	"kith/internal/must"
)

// Each operation gives the answer in the file beside it, one after another, as user 1 of the demo graph. The answer of the
// subscription is the event that the follow causes. A test in internal/program shows it in GraphiQL.
func TestOperationsHaveTheirAnswers(t *testing.T) {
	kith := start(t)
	for i, operation := range examples.All() {
		name := examples.Names[i]
		if name == "subscription" {
			continue
		}
		got := indented(t, kith.ask(t, "1", operation, nil))
		file := filepath.Join("answers", name+".json")
		if os.Getenv("KITH_TEST_ANSWERS") == "1" { // writes the present answers
			write(t, file, got)
		}
		want := must.File(t, file)
		check.That(t, bytes.Equal(got, want), "%s: the answer is now\n%s\nand was\n%s", name, got, want)
	}
}

func TestAllOperationsAreNamed(t *testing.T) {
	named := func(pattern string) (names []string) {
		files, err := filepath.Glob(pattern)
		must.OK(t, err)
		for _, file := range files {
			names = append(names, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
		}
		return names
	}
	want := slices.Sorted(slices.Values(examples.Names))
	if operations, answers := named("*.graphql"), named("answers/*.json"); !slices.Equal(operations, want) || !slices.Equal(answers, want) {
		t.Errorf("there are the operations %v and the answers %v; the names are %v", operations, answers, want)
	}
	for i, operation := range examples.All() {
		check.That(t, strings.HasPrefix(operation, "# "), "%s does not say what it shows", examples.Names[i])
	}
}

// indented is an answer in the form of the files.
func indented(t *testing.T, data json.RawMessage) []byte {
	t.Helper()
	text, err := json.MarshalIndent(map[string]any{"data": data}, "", "  ")
	must.OK(t, err)
	return append(text, '\n')
}
