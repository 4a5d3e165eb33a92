package judge

import "kith/storage"

// Favorite judges a user's change of a favorite, see [storage.FavoriteChanger]. The rows between the
// user and the author are known.
func (j *Judge) Favorite(user storage.UserID, ch storage.FavoriteChange) (storage.Changed, error) {
	pair := storage.Pair{From: user, To: ch.Post.Author, Post: ch.Post.Number}
	old, _ := j.row(storage.Favorites, pair)
	if old.Type == ch.Type {
		return storage.Changed{Row: old}, nil
	}
	if ch.Type == storage.Favorited && user != ch.Post.Author && j.blocked(user, ch.Post.Author) {
		return storage.Changed{}, forbidden(pair)
	}
	written := j.propagate([]storage.Written{j.turn(storage.Favorites, pair, ch.Type, ch.At)})
	return storage.Changed{Row: written[0].Edge, Changed: true, Inverse: written[0].Inverse}, nil
}

// PostDiffs are the differences that the changed rows make to the numbers of favorites of posts that
// exist.
func (j *Judge) PostDiffs() map[storage.PostID]int64 {
	var diffs map[storage.PostID]int64
	for at, was := range j.was {
		if at.side != storage.FavoriteInbox {
			continue
		}
		diff := Counted(j.rows[at].Type) - Counted(was.Type)
		post := at.pair.PostID()
		if _, exists := j.Posts[post]; !exists || diff == 0 {
			continue
		}
		if diffs == nil {
			diffs = make(map[storage.PostID]int64)
		}
		diffs[post] += diff
	}
	return diffs
}
