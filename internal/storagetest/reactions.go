package storagetest

import (
	"slices"
	"testing"

	"kith/storage"
	"kith/storage/reaction"
)

// reactions are favorites of an author's posts, comments on them, and mentions of the author.
type reactions struct{ *harness }

func (s reactions) TheyRunNewestFirst(t *testing.T) {
	users := idsOf(s.newUsers(t, 5))
	author, other := users[0], users[1]
	own, others := []storage.PostID{s.post(t, author, 1).PostID, s.post(t, author, 2).PostID}, s.post(t, other, 3).PostID
	var favorited, commented, mentioned []reaction.Reaction
	for i := range 12 {
		post, by := own[i%2], users[1+i/2%4]
		c := s.comment(t, post, by, 100+i/3)
		commented = append(commented, reaction.Reaction{Place: c.Place(), By: by, Post: post.Number})
		s.comment(t, others, by, 100)
		m := s.post(t, by, i+10)
		mentioned = append(mentioned, reaction.Reaction{Place: storage.Place{CreatedAt: at(i + 10), Number: m.Number}, By: by, Post: m.Number})
		s.apply(t, storage.FavoriteInbox, storage.Edge{From: by, To: author, Item: m.Number, Type: storage.Mentioned, UpdateTime: at(i + 10)})
		if i < 8 { // two of each of four users, all of two times, and on one post
			favorited = append(favorited, reaction.Reaction{Place: storage.Place{CreatedAt: at(100 + i/4), Number: post.Number}, By: by, Post: post.Number})
			for _, id := range []storage.PostID{post, others} {
				s.apply(t, storage.FavoriteInbox, storage.Edge{From: by, To: id.Author, Item: id.Number, Type: storage.Favorited, UpdateTime: at(100 + i/4)})
			}
		}
	}
	end := favorited[5]
	s.apply(t, storage.FavoriteInbox, storage.Edge{From: end.By, To: author, Item: end.Post, Type: storage.None, UpdateTime: at(500)})
	favorited = slices.Delete(favorited, 5, 6)
	for _, of := range []struct {
		kind reaction.Kind
		want []reaction.Reaction
	}{{reaction.Favorites, favorited}, {reaction.Comments, commented}, {reaction.Mentions, mentioned}} {
		slices.SortFunc(of.want, reaction.Reaction.Compare)
		for _, limit := range []int{1, 3, 7, 100} {
			var got []reaction.Reaction
			for after := (reaction.Reaction{}); ; {
				page := one(t, s.harness, reaction.Lookups, reaction.Query{User: author, Kind: of.kind, After: after, Limit: limit})
				got = append(got, page...)
				if len(page) < limit || len(got) > len(of.want) {
					break
				}
				after = page[limit-1]
			}
			wantList(t, "reactions", got, of.want)
		}
	}
	behind := slices.IndexFunc(favorited, func(r reaction.Reaction) bool { return r.Compare(end) > 0 })
	wantList(t, "behind one that has ended", one(t, s.harness, reaction.Lookups, reaction.Query{User: author, After: end, Limit: 100}), favorited[behind:])
	wantList(t, "of nobody", one(t, s.harness, reaction.Lookups, reaction.Query{User: s.id(), Limit: 1}), nil)
}
