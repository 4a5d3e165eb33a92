package deferral_test

import (
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

// Whatever is deferred, and whoever puts the parts together: it is the answer that everybody else gets.
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
