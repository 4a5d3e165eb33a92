package oracle

import (
	"slices"

	"kith/storage"
)

// findReactions answers [storage.ReactionLookups].
func (s *Store) findReactions(q storage.ReactionsQuery) (list []storage.Reaction, known bool) {
	if q.Kind == storage.PostComments {
		for _, c := range s.comments {
			if c.Author == q.User {
				list = append(list, storage.Reaction{Place: c.Place(), By: c.By, Post: c.Post})
			}
		}
	} else {
		of := map[storage.ReactionKind]storage.EdgeType{storage.PostFavorites: storage.Favorited, storage.PostMentions: storage.Mentioned}
		for _, e := range s.byPeer(storage.FavoriteInbox, q.User) {
			if e.Type == of[q.Kind] {
				list = append(list, storage.Reaction{Place: storage.Place{CreatedAt: e.UpdateTime, Number: e.Item}, By: e.From, Post: e.Item})
			}
		}
	}
	list = slices.DeleteFunc(list, func(r storage.Reaction) bool { return q.After != (storage.Reaction{}) && r.Compare(q.After) <= 0 })
	slices.SortFunc(list, storage.Reaction.Compare)
	return list[:min(q.Limit, len(list))], true
}
