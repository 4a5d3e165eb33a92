package oracle

import (
	"maps"
	"slices"

	"kith/storage"
)

// A Snapshot is everything a store holds at one moment, in a fixed order, so
// that two of them can be compared.
type Snapshot struct {
	Users    []storage.User // ascending id
	Counts   []UserCounts   // ascending id
	Forward  []storage.Edge // ascending From, then To; tombstones included
	Inverse  []storage.Edge // ascending To, then From; tombstones included
	Requests []storage.Edge // as Forward
	Inbox    []storage.Edge // as Inverse

	Favorites     []storage.Edge // as Forward, then by post
	FavoriteInbox []storage.Edge // as Inverse, then by post
	Relations     []storage.Edge // as Forward, then by kind
	RelationInbox []storage.Edge // as Inverse, then by kind
}

// UserCounts is one row of counts with the user it belongs to.
type UserCounts struct {
	ID storage.UserID
	storage.Counts
}

// Snapshot copies the whole store.
func (s *Store) Snapshot() Snapshot {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all Snapshot
	for _, id := range slices.Sorted(maps.Keys(s.users)) {
		all.Users = append(all.Users, s.users[id])
	}
	for _, id := range slices.Sorted(maps.Keys(s.counts)) {
		all.Counts = append(all.Counts, UserCounts{id, s.counts[id]})
	}
	all.Forward = s.edges(storage.Forward)
	all.Inverse = s.edges(storage.Inverse)
	all.Requests = s.edges(storage.Requests)
	all.Inbox = s.edges(storage.Inbox)
	all.Favorites = s.edges(storage.Favorites)
	all.FavoriteInbox = s.edges(storage.FavoriteInbox)
	all.Relations = s.edges(storage.Relations)
	all.RelationInbox = s.edges(storage.RelationInbox)
	return all
}

// edges returns every edge of a side, by owner and then by peer.
func (s *Store) edges(side storage.Side) []storage.Edge {
	var edges []storage.Edge
	for _, owner := range slices.Sorted(maps.Keys(s.tables[side])) {
		edges = append(edges, s.byPeer(side, owner)...)
	}
	return edges
}
