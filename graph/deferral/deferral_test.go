package deferral_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/apitest"
	"kith/internal/properties"
	"kith/storage/memory"
)

const users = 12

func graph(t *testing.T) *apitest.API {
	store := memory.New()
	apitest.Users(t, store, users)
	apitest.Tangle(t, store, users)
	apitest.Publish(t, store, users)
	return apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits}).As(3)
}

// Whatever is deferred, and whichever client joins the parts, the result is the same answer that is given without parts.
func TestPartsAreTheWhole(t *testing.T) {
	api := graph(t)
	parts := 0
	properties.Check(t, 150, func(t *rapid.T) {
		query, vars := apitest.Deferring(t, users)
		whole := api.For(t).Ask(query, vars)
		if len(whole.Errors) > 0 {
			t.Skip("it has errors")
		}
		for _, format := range []string{apitest.PartsByID, apitest.PartsByPath} {
			got := api.For(t).InParts(format, query, vars)
			if len(got.Errors) > 0 || !reflect.DeepEqual(got.Data, whole.Data) {
				t.Errorf("%s\nwith %v is\n%s\nin parts, and\n%s", query, vars, got.Text, whole.Text)
			}
			if len(got.Messages) > 1 {
				parts++
			}
		}
	})
	if parts < 5 {
		t.Errorf("%d answers had parts", parts)
	}
}

// Clients could not join a list of which two parts select different fields. Such a fragment is not deferred, and the
// fragments beside it are.
// it are.
func TestListsComeWhole(t *testing.T) {
	api := graph(t)
	for _, query := range []string{
		`{ user(id: 1) { followings { nodes { id } } ... @defer { handle followings { nodes { name } } } ... @defer(label: "other") { bio } } }`,
		`{ user(id: 1) { id ... @defer { followings { nodes { id } } } ... @defer { handle followings { nodes { name } } } ... @defer(label: "other") { bio } } }`,
		`{ user(id: 1) { id ... @defer(label: "other") { followings { nodes { id } } ... @defer { handle followings { nodes { name } } } } } }`,
		`{ user(id: 1) { followings { nodes { id } } } ... @defer { user(id: 1) { handle followings { nodes { name } } } } ... @defer(label: "other") { viewer { id } } }`,
	} {
		parts := api.InParts(apitest.PartsByID, query, nil)
		parts.Is(string(asJSON(t, api.Ask(query, nil).Whole().Data)))
		if len(parts.Messages) != 2 || len(parts.Messages[0]["pending"].([]any)) != 1 || parts.Messages[0]["pending"].([]any)[0].(map[string]any)["label"] != "other" {
			t.Errorf("%s: %s", query, parts.Text)
		}
	}
}

func asJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
