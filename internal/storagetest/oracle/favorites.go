package oracle

import (
	"slices"

	"kith/storage"
	"kith/storage/judge"
)

// findFavoritePages answers [storage.FavoritePageLookups].
func (s *Store) findFavoritePages(q storage.PlaceQuery) ([]storage.Edge, bool) {
	list := slices.DeleteFunc(s.byPeer(storage.Favorites, q.Of.Author), func(e storage.Edge) bool { return e.Type != storage.Favorited })
	return pageOf(list, storage.Edge.Place, q.After, q.Limit), true
}

// counted is what an edge adds to its owner's count on a side.
func (s *Store) counted(side storage.Side, e storage.Edge) int64 {
	if side == storage.FavoriteInbox {
		if p := s.posts[e.Pair().PostID()]; p == nil || p.deleted {
			return 0
		}
	}
	return judge.Counted(e.Type)
}
