package social

import (
	"errors"
	"testing"

	"kith/storage"
)

// A page of favorites fails if the posts of its first rows cannot be read.
func TestFavoritesFailWithTheirPosts(t *testing.T) {
	rows := []storage.Edge{{From: 1, To: 2, Post: 3, Type: storage.Favorited, UpdateTime: 4}}
	page, err := NewAudience(0, nil, nil).ShowFavorites(rows, 2, 1, func([]storage.PostID) []storage.Result[storage.Post] {
		return []storage.Result[storage.Post]{{Err: errRead}}
	}, func(storage.Place, int) ([]storage.Edge, error) { return nil, nil })
	if !errors.Is(err, errRead) {
		t.Errorf("%+v, %v", page, err)
	}
}
