package direct

import (
	"errors"

	"kith/graph/model"
	"kith/storage"
)

// User is the schema's.
type User = model.User

// BrokenCounts is a user whose counts could not be read.
func BrokenCounts() *User {
	return &User{Row: storage.User{Handle: "anna"}, Counts: storage.Result[storage.Counts]{Err: errors.New("shard unavailable")}}
}
