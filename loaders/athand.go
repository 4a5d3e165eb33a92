package loaders

import "kith/storage"

// AtHand is what a store may be besides: one that keeps answers in memory. Each method
// answers as the method of [storage.Reader] of its name does, but from memory only: it reads
// nothing and waits for nobody. Where it does not have all of the keys, ok is false and
// nothing is answered; it is then asked in the usual way.
//
// Batches that are read are read side by side, each but the last by a goroutine of its own.
// To start one takes longer than to answer from memory, so batches at hand are answered by
// whoever asks.
type AtHand interface {
	UsersAtHand(ids []storage.UserID) (results []storage.Result[storage.User], ok bool)
	CountsAtHand(ids []storage.UserID) (results []storage.Result[storage.Counts], ok bool)
	EdgesAtHand(side storage.Side, pairs []storage.Pair) (results []storage.Result[storage.Edge], ok bool)
	PagesAtHand(side storage.Side, queries []storage.PageQuery) (results []storage.Result[[]storage.Edge], ok bool)
	BlocksAtHand(ids []storage.UserID) (results []storage.Result[[]storage.UserID], ok bool)
}

// near is a method of AtHand.
type near[K comparable, V any] func(AtHand, []K) ([]storage.Result[V], bool)

// sidedNear is a method of AtHand that answers keys from one side.
type sidedNear[K comparable, V any] func(AtHand, storage.Side, []K) ([]storage.Result[V], bool)
