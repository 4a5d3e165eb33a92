package resolvers_test

import (
	"context"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// A set answer that panics fails alone, even if others are worked out together with it.
func TestASetAnswerThatPanicsFailsAlone(t *testing.T) {
	store := oracle.New()
	apitest.Users(t, store, 5)
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
	for _, want := range []string{`"followSuggestions":null`, `"friends":{"totalCount":`, `"commonFollowings":{"totalCount":`, `"path":["viewer","user","followSuggestions"]`, `INTERNAL`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	if strings.Contains(text, "no last posts") {
		t.Errorf("%s shows the panic", text)
	}
}
