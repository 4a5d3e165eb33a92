package idset_test

import (
	"fmt"

	"kith/storage"
	"kith/storage/cache/idset"
)

// The followers of two users, but not of a third.
func ExampleSelect() {
	dir := idset.NewDirectory() // numbers users, so that sets are bitmaps
	a := idset.Build(dir, []storage.UserID{10, 11, 12, 13})
	b := idset.Build(dir, []storage.UserID{11, 12, 13, 14})
	c := idset.Build(dir, []storage.UserID{13})

	both := idset.Term{All: []idset.Term{{Set: a}, {Set: b}, {Set: c, Not: true}}}
	ids, total := idset.Select(both, 0, 1) // the first id
	fmt.Println(ids, "of", total)
	ids, _ = idset.Select(both, ids[0], 10) // and the ids after it
	fmt.Println(ids)
	// Output:
	// [11] of 2
	// [12]
}

// Suggestions are the users whom most of one's followings follow.
func ExampleTopK_Best() {
	dir := idset.NewDirectory()
	best, excluded := idset.TopK{
		Sets: []*idset.Set{ // the lists of three followings
			idset.Build(dir, []storage.UserID{1, 20, 21}),
			idset.Build(dir, []storage.UserID{1, 21, 22}),
			idset.Build(dir, []storage.UserID{21, 22}),
		},
		Except: [][]storage.UserID{{1}}, // the user who asks
		Most:   2,
	}.Best()
	for _, c := range best {
		fmt.Println(c.ID, "is followed by", c.Count)
	}
	fmt.Println("left out:", excluded)
	// Output:
	// 21 is followed by 3
	// 22 is followed by 2
	// left out: [1]
}

// A changed list is a new list, which shares most of the old one.
func ExampleList_Insert() {
	dir := idset.NewDirectory()
	before := idset.New(dir, []storage.Position{{UpdateTime: 200, Peer: 8}, {UpdateTime: 100, Peer: 7}})
	after := before.Insert(storage.Position{UpdateTime: 300, Peer: 9})
	fmt.Println(before.Len(), after.Len())
	for _, at := range after.Order.Page(storage.Position{}, storage.Position{}, 2, false) { // the newest two
		fmt.Println(at.Peer, "at", at.UpdateTime)
	}
	// Output:
	// 2 3
	// 9 at 300
	// 8 at 200
}
