package oracle

import (
	"slices"

	"kith/storage"
	"kith/storage/reaction"
)

// findReactions answers [reaction.Lookups].
func (s *Store) findReactions(q reaction.Query) (list []reaction.Reaction, known bool) {
	if q.Kind == reaction.Comments {
		for _, c := range s.comments {
			if c.Author == q.User {
				list = append(list, reaction.Reaction{Place: c.Place(), By: c.By, Post: c.Post})
			}
		}
	} else {
		of := map[reaction.Kind]storage.EdgeType{reaction.Favorites: storage.Favorited, reaction.Mentions: storage.Mentioned}
		for _, e := range s.byPeer(storage.FavoriteInbox, q.User) {
			if e.Type == of[q.Kind] {
				list = append(list, reaction.Reaction{Place: storage.Place{CreatedAt: e.UpdateTime, Number: e.Item}, By: e.From, Post: e.Item})
			}
		}
	}
	list = slices.DeleteFunc(list, func(r reaction.Reaction) bool { return q.After != (reaction.Reaction{}) && r.Compare(q.After) <= 0 })
	slices.SortFunc(list, reaction.Reaction.Compare)
	return list[:min(q.Limit, len(list))], true
}
