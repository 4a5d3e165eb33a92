package cursor_test

import (
	"fmt"

	"kith/graph/cursor"
)

// Only the field that a cursor was made for can read it.
func ExampleSealer_Decode() {
	cursors := cursor.NewSealer([]byte("32 bytes that only gateways know"))
	text := (*cursor.Sealer)(nil).Encode(cursor.Followings, 1_700_000_000_000_000, 42)
	var at, peer int64
	fmt.Println(cursors.Decode(cursor.Followings, text, &at, &peer), at, peer)
	fmt.Println(cursors.Decode(cursor.Followers, text, &at, &peer) != nil)
	// Output:
	// <nil> 1700000000000000 42
	// true
}

// A sealed cursor reveals nothing to a client. It names a user who was not shown.
func ExampleSealer_Encode() {
	ours, others := cursor.NewSealer([]byte("32 bytes that only gateways know")), cursor.NewSealer([]byte("32 bytes of some other deployment"))
	text := ours.Encode(cursor.Followings, 1_700_000_000_000_000, 42)
	var at, peer int64
	fmt.Println(ours.Decode(cursor.Followings, text, &at, &peer), peer)
	fmt.Println(others.Decode(cursor.Followings, text, &at, &peer) != nil)
	// Output:
	// <nil> 42
	// true
}
