package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/bench/growth"
)

func TestBenchSimulate(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "plan.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	out, err := benchCommand(t, "simulate")
	if err != nil || strings.Count(out, "\n") != 2+1+growth.Example().Curve.Months {
		t.Errorf("%v\n%s", err, out)
	}
	// Settings that a file leaves out have the values of the example.
	out, err = benchCommand(t, "simulate", "--print", file(`{"curve":{"months":3}}`))
	var plan growth.Plan
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		t.Fatal(err)
	}
	want := growth.Example()
	want.Curve.Months = 3
	if err != nil || plan != want {
		t.Errorf("%v\n%s", err, out)
	}
	var months []growth.Month
	out, err = benchCommand(t, "simulate", "--output=json", file(out))
	if errJSON := json.Unmarshal([]byte(out), &months); err != nil || errJSON != nil || len(months) != 4 || months[3].Month != 3 {
		t.Errorf("%v\n%s", err, out)
	}
	for text, want := range map[string]string{
		`{"curve":{"months":0}}`:          "months",
		`{"curve":{"month":3}}`:           "unknown field",
		`{} {}`:                           "more than one",
		strings.Repeat(" ", 1<<20):        "EOF",
		strings.Repeat(" ", 1<<20) + "{}": "more than 1048576 bytes",
	} {
		if _, err := benchCommand(t, "simulate", file(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}
