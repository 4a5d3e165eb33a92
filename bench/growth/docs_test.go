package growth

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table in bench/results/scale.md anew")

// The table of bench/results/scale.md is the result of the example:
//
//	go test ./bench/growth -run TestDocumentIsOfTheExample -update
func TestDocumentIsOfTheExample(t *testing.T) {
	const path, begin, end = "../../bench/results/scale.md", "<!-- kith bench simulate: from here on -->\n", "<!-- kith bench simulate: up to here -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatal("bench/results/scale.md does not say where its table is")
	}
	months, err := Simulate(Example())
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	WriteTable(&table, months)
	want := before + begin + "\n" + table.String() + "\n" + end + after
	switch {
	case *update:
		err = os.WriteFile(path, []byte(want), 0o644)
	case want != string(page):
		t.Error("bench/results/scale.md has another table than kith bench simulate: write it anew with -update")
	}
	if err != nil {
		t.Fatal(err)
	}
}
