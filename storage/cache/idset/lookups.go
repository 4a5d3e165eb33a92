package idset

import "kith/storage"

// Look-ups that caches answer in the forms of sets. A store that keeps nothing finds nothing: rows are read
// instead.
var (
	// ListLookups are lists, at their sides.
	ListLookups = storage.SideLookups[storage.UserID, *List]{
		storage.Forward: storage.NewKind[storage.UserID, *List]("sets.following", func(id storage.UserID) (storage.Side, storage.UserID) { return storage.Forward, id }).OfCaches(),
		storage.Inverse: storage.NewKind[storage.UserID, *List]("sets.follower", func(id storage.UserID) (storage.Side, storage.UserID) { return storage.Inverse, id }).OfCaches(),
	}
	RecommenderLookups = storage.NewKind[storage.UserID, Recommender]("recommenders", func(id storage.UserID) (storage.Side, storage.UserID) { return storage.Forward, id }).OfCaches()
)

// Recommender is what suggestions need of a user: whom it follows, and who may see that.
type Recommender struct {
	Visibility storage.Visibility // of its followings
	Following  int64              // how many they are, by its counts

	Followings Compact // of the directory
	Directory  *Directory
}
