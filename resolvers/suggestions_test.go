package resolvers_test

import (
	"testing"

	"kith/internal/apitest"
	"kith/storage"
)

// suggestion is an edge of followSuggestions.
type suggestion struct {
	Cursor string
	Node   node
	Reason string
}

type suggestionPage struct {
	Edges    []suggestion
	PageInfo pageInfo
}

// via has three users unless first says otherwise, and each via has its own first.
func TestViaHasThreeUsersUnlessFirstSaysOtherwise(t *testing.T) {
	store := storeOf(t, 7)
	apitest.Follow(t, store, 1, 2, 3, 4, 5, 6)
	for id := storage.UserID(2); id <= 6; id++ {
		apitest.Follow(t, store, id, 7)
	}
	api := apitest.New(t, store, apitest.Options{})
	api.Ask(`{ user(by: {id: 1}) { followSuggestions { edges { score sharedCount reason
		via { id } none: via(first: 0) { id } one: via(first: 1) { handle } all: via(first: 100) { id } nothing: via(first: null) { id }
	} } } }`, nil).Is(`{"user": {"followSuggestions": {"edges": [{"score": 5, "sharedCount": 5, "reason": "FOLLOWED_BY_FOLLOWINGS",
		"via": [{"id": "2"}, {"id": "3"}, {"id": "4"}], "none": [], "one": [{"handle": "u2"}],
		"all": [{"id": "2"}, {"id": "3"}, {"id": "4"}, {"id": "5"}, {"id": "6"}],
		"nothing": [{"id": "2"}, {"id": "3"}, {"id": "4"}]
	}]}}}`)
}
