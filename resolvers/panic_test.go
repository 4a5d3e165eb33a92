package resolvers_test

import (
	"context"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/storagetest/double"
	"kith/storage"
)

// A set answer that panics fails alone, even if others are worked out together with it.
func TestASetAnswerThatPanicsFailsAlone(t *testing.T) {
	store := storeOf(t, 5)
	apitest.Tangle(t, store, 5)
	inactive := double.Of(store) // which panics when it is asked when users have posted last
	inactive.Instead.Bundle = func(ctx context.Context, b *storage.Bundle) {
		if storage.LastPostLookups.In(b) != nil {
			panic("no last posts")
		}
		store.Bundle(ctx, b)
	}
	api := apitest.New(t, inactive, apitest.Options{}).As(1)
	answer := api.Ask(`{ viewer { user { handle friends { totalCount } followSuggestions(orderBy: BEST) { nodes { id } } commonFollowings(with: 2) { totalCount } } } }`, nil)
	text := answer.Text
	check.Has(t, "the text", text,
		`"followSuggestions":null`, `"friends":{"totalCount":`, `"commonFollowings":{"totalCount":`, `"path":["viewer","user","followSuggestions"]`, `INTERNAL`)
	check.Lacks(t, "the text", text, "no last posts")
}
