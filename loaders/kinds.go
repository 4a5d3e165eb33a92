package loaders

import "kith/storage"

// A kind is a look-up as a loader knows it.
type kind[K comparable, V any] struct {
	in func(*storage.Bundle, storage.Side) **lookup[K, V] // where a bundle has it

	// If it is about relations: whose rows a key asks for, and where the library's answers are.
	key  func(storage.Side, K) Key
	rows func(*Rows) *[]storage.Result[V]
}

// lookup is the part of a bundle that a loader fills.
type lookup[K comparable, V any] = storage.Lookup[K, V]

var (
	users = kind[storage.UserID, storage.User]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.UserID, storage.User] { return &b.Users },
	}
	handles = kind[string, storage.UserID]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[string, storage.UserID] { return &b.Handles },
	}
	counts = kind[storage.UserID, storage.Counts]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.UserID, storage.Counts] { return &b.Counts },
	}
	edges = kind[storage.Pair, storage.Edge]{
		in:   func(b *storage.Bundle, s storage.Side) **lookup[storage.Pair, storage.Edge] { return &b.Edges[s] },
		key:  func(s storage.Side, p storage.Pair) Key { return Key{Side: s, Owner: s.Owner(p)} },
		rows: func(r *Rows) *[]storage.Result[storage.Edge] { return &r.Edges },
	}
	pages = kind[storage.PageQuery, []storage.Edge]{
		in: func(b *storage.Bundle, s storage.Side) **lookup[storage.PageQuery, []storage.Edge] {
			return &b.Pages[s]
		},
		key:  func(s storage.Side, q storage.PageQuery) Key { return Key{Side: s, Owner: q.Owner} },
		rows: func(r *Rows) *[]storage.Result[[]storage.Edge] { return &r.Pages },
	}
	rows = kind[storage.RowsQuery, []storage.Edge]{
		in:   func(b *storage.Bundle, _ storage.Side) **lookup[storage.RowsQuery, []storage.Edge] { return &b.Rows },
		key:  func(_ storage.Side, q storage.RowsQuery) Key { return Key{Side: q.Side, Owner: q.Owner} },
		rows: func(r *Rows) *[]storage.Result[[]storage.Edge] { return &r.Pages },
	}
	neighbours = kind[storage.UserID, []storage.UserID]{
		in: func(b *storage.Bundle, s storage.Side) **lookup[storage.UserID, []storage.UserID] {
			return &b.Neighbours[s]
		},
		key:  ownList,
		rows: func(r *Rows) *[]storage.Result[[]storage.UserID] { return &r.Lists },
	}
	packed = kind[storage.UserID, []storage.UserID]{
		in: func(b *storage.Bundle, s storage.Side) **lookup[storage.UserID, []storage.UserID] {
			return &b.Packed[s]
		},
		key:  ownList,
		rows: func(r *Rows) *[]storage.Result[[]storage.UserID] { return &r.Lists },
	}
	sets = kind[storage.UserID, storage.Set]{
		in:   func(b *storage.Bundle, s storage.Side) **lookup[storage.UserID, storage.Set] { return &b.Sets[s] },
		key:  ownList,
		rows: func(r *Rows) *[]storage.Result[storage.Set] { return &r.Sets },
	}
	recommenders = kind[storage.UserID, storage.Recommender]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.UserID, storage.Recommender] {
			return &b.Recommenders
		},
		key:  ownList,
		rows: func(r *Rows) *[]storage.Result[storage.Recommender] { return &r.Recommenders },
	}
	blocks = kind[storage.UserID, []storage.UserID]{
		in:   func(b *storage.Bundle, _ storage.Side) **lookup[storage.UserID, []storage.UserID] { return &b.Blocks },
		key:  ownList,
		rows: func(r *Rows) *[]storage.Result[[]storage.UserID] { return &r.Lists },
	}
	specials = kind[storage.UserID, []storage.UserID]{
		in:   func(b *storage.Bundle, _ storage.Side) **lookup[storage.UserID, []storage.UserID] { return &b.Specials },
		key:  ownList,
		rows: func(r *Rows) *[]storage.Result[[]storage.UserID] { return &r.Lists },
	}
	marks = kind[storage.Pair, storage.EdgeMark]{
		in:   func(b *storage.Bundle, _ storage.Side) **lookup[storage.Pair, storage.EdgeMark] { return &b.Marks },
		key:  ownPair,
		rows: func(r *Rows) *[]storage.Result[storage.EdgeMark] { return &r.Marks },
	}
	messages = kind[storage.Pair, string]{
		in:   func(b *storage.Bundle, _ storage.Side) **lookup[storage.Pair, string] { return &b.Messages },
		key:  ownPair,
		rows: func(r *Rows) *[]storage.Result[string] { return &r.Messages },
	}
	favoritePages = kind[storage.FavoritesQuery, []storage.Edge]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.FavoritesQuery, []storage.Edge] {
			return &b.FavoritePages
		},
		key:  func(_ storage.Side, q storage.FavoritesQuery) Key { return Key{Side: storage.Favorites, Owner: q.User} },
		rows: func(r *Rows) *[]storage.Result[[]storage.Edge] { return &r.Pages },
	}
	favoritedBy = kind[storage.FavoritedByQuery, []storage.Edge]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.FavoritedByQuery, []storage.Edge] {
			return &b.FavoritedBy
		},
		key: func(_ storage.Side, q storage.FavoritedByQuery) Key {
			return Key{Side: storage.FavoriteInbox, Owner: q.Post.Author}
		},
		rows: func(r *Rows) *[]storage.Result[[]storage.Edge] { return &r.Pages },
	}
	posts = kind[storage.PostID, storage.Post]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.PostID, storage.Post] { return &b.Posts },
	}
	postPages = kind[storage.PostsQuery, []storage.Post]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.PostsQuery, []storage.Post] {
			return &b.PostPages
		},
	}
	comments = kind[storage.CommentID, storage.Comment]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.CommentID, storage.Comment] {
			return &b.Comments
		},
	}
	commentPages = kind[storage.CommentsQuery, []storage.Comment]{
		in: func(b *storage.Bundle, _ storage.Side) **lookup[storage.CommentsQuery, []storage.Comment] {
			return &b.CommentPages
		},
	}
)

func ownList(side storage.Side, id storage.UserID) Key { return Key{Side: side, Owner: id} }

func ownPair(side storage.Side, p storage.Pair) Key { return Key{Side: side, Owner: p.From} }
