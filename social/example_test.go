package social_test

import (
	"context"
	"fmt"

	"kith/internal/storagetest/oracle"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// town is a store in which 1 follows 2 and 3, both of whom follow 4; 2 follows 1 and 5, too.
func town() context.Context {
	ctx, store := context.Background(), oracle.New()
	var users []storage.User
	for id := storage.UserID(1); id <= 5; id++ {
		users = append(users, storage.User{ID: id, Handle: "u" + id.String()})
	}
	store.CreateUsers(ctx, users)
	for i, pair := range [][2]storage.UserID{{1, 2}, {1, 3}, {2, 4}, {3, 4}, {2, 1}, {2, 5}} {
		follow := storage.EdgeChange{To: pair[1], Type: storage.Following, At: storage.Micros(i + 1)}
		store.ChangeEdges(ctx, storage.Forward, pair[0], []storage.EdgeChange{follow}, storage.ChangeOptions{Inverse: true})
	}
	return loaders.Attach(ctx, store)
}

// Who follows 4 and is followed by 1?
func ExampleGraph_People() {
	ctx := town()
	g := social.New(loaders.For(ctx).Reader(), 0, nil)
	filter := social.Both(social.List{Side: storage.Inverse, Owner: 4}, social.List{Side: storage.Forward, Owner: 1})
	found, err := g.People(ctx, social.PeopleQuery{Filter: filter, First: 10})
	fmt.Println(found.IDs, found.Total, found.Complete, err)
	// Output:
	// [2 3] 2 true <nil>
}

// Whom might 1 want to follow?
func ExampleGraph_Suggest() {
	ctx := town()
	g := social.New(loaders.For(ctx).Reader(), 0, nil)
	found, err := g.Suggest(ctx, social.SuggestionQuery{User: 1, First: 10, Via: 3})
	for _, s := range found.Suggestions {
		fmt.Println(s.ID, "because of", s.Via)
	}
	fmt.Println(err)
	// Output:
	// 4 because of [2 3]
	// 5 because of [2]
	// <nil>
}
