package gateway_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"

	"kith/graph/generated"
	"kith/graph/sdl"
	"kith/internal/apitest"
	"kith/internal/testenv"
	"kith/storage/storagetest/oracle"
)

// Random valid queries with variables of any kind are answered as graphql-js answers them: the same values, nulls, paths of errors and
// order.
func TestAnswersAreThoseOfGraphQLJS(t *testing.T) {
	testenv.NPM(t, "audit")
	const users = 9
	store := oracle.New()
	apitest.Users(t, store, users)
	apitest.Tangle(t, store, users)
	apitest.Publish(t, store, users)
	text, err := sdl.Of(sdl.Without(generated.NewSchema(generated.Config{}).Schema(), sdl.Operators), "")
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(map[string]any{
		"url": apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits}).URL(), "sdl": text, "viewer": "3", "count": 2100, "seed": 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	compare := exec.CommandContext(t.Context(), "node", "audit/compare.mjs")
	compare.Stdin = bytes.NewReader(input)
	var complaint bytes.Buffer
	compare.Stderr = &complaint
	out, err := compare.Output()
	if err != nil {
		t.Fatalf("compare: %v: %s", err, complaint.String())
	}
	var found struct {
		Counts      map[string]int
		Differences []struct{ How, Text, Variables, Want, Got string }
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("read %s: %v", out, err)
	}
	t.Logf("%v", found.Counts)
	for _, d := range found.Differences {
		t.Errorf("%s: %s\nwith %s\nis answered %s\ngraphql-js: %s", d.How, d.Text, d.Variables, d.Got, d.Want)
	}
	for kind, least := range map[string]int{
		"compared": 2100, "refused": 100, "withErrors": 300, "lenient": 100, "wrong": 100, "null with a default": 100, "block": 100, "single": 100, "merged": 100, "cursors": 50,
	} {
		if found.Counts[kind] < least {
			t.Errorf("%s: %d; want %d", kind, found.Counts[kind], least)
		}
	}
}
