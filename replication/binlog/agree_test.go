package binlog_test

import (
	"database/sql"
	"fmt"
	"maps"

	"kith/storage"
)

// agrees returns an error that names a difference between the two sides, or in the counts.
func (w *world) agrees() error {
	forward, err := w.rows(storage.Forward)
	if err != nil {
		return err
	}
	inverse, err := w.rows(storage.Inverse)
	if err != nil {
		return err
	}
	if !maps.Equal(forward, inverse) {
		missing, extra := 0, 0
		for e := range forward {
			if !inverse[e] {
				missing++
			}
		}
		for e := range inverse {
			if !forward[e] {
				extra++
			}
		}
		return fmt.Errorf("of %d rows, %d are missing on the inverse side, %d are there that should not be", len(forward), missing, extra)
	}
	if err := w.requestsAgree(); err != nil {
		return err
	}
	if err := w.favoritesAgree(); err != nil {
		return err
	}
	type counts struct{ following, follower, friend int64 }
	want, got := map[storage.UserID]counts{}, map[storage.UserID]counts{}
	types := map[storage.Pair]storage.EdgeType{}
	for e := range forward {
		types[e.Pair()] = e.Type
	}
	for e := range forward {
		back := types[storage.Pair{From: e.To, To: e.From}]
		if e.Type == storage.Following {
			c := want[e.From]
			c.following++
			if back == storage.Following {
				c.friend++
			}
			want[e.From] = c
			c = want[e.To]
			c.follower++
			want[e.To] = c
		}
		if e.Type == storage.Blocking && back == storage.Following && e.From != e.To {
			return fmt.Errorf("%d blocks %d, which follows it", e.From, e.To)
		}
	}
	err = w.each(`SELECT user_id, following_count, follower_count, friend_count FROM user_counts`, func(r *sql.Rows) error {
		var id storage.UserID
		var c counts
		err := r.Scan(&id, &c.following, &c.follower, &c.friend)
		if c != (counts{}) {
			got[id] = c
		}
		return err
	})
	if err != nil {
		return err
	}
	if !maps.Equal(want, got) {
		return fmt.Errorf("counts differ: want %v, got %v", want, got)
	}
	return nil
}

// requestsAgree returns an error that names a difference between the two sides of requests.
func (w *world) requestsAgree() error {
	forward, err := w.rows(storage.Requests)
	if err != nil {
		return err
	}
	inbox, err := w.rows(storage.Inbox)
	if err == nil && !maps.Equal(forward, inbox) {
		err = fmt.Errorf("requests are %v, the inboxes hold %v", forward, inbox)
	}
	return err
}

// favoritesAgree returns an error that names a difference between the two sides of favorites, or in their counts.
func (w *world) favoritesAgree() error {
	forward, err := w.rows(storage.Favorites)
	if err != nil {
		return err
	}
	inbox, err := w.rows(storage.FavoriteInbox)
	if err == nil && !maps.Equal(forward, inbox) {
		err = fmt.Errorf("favorites are %v, the inboxes hold %v", forward, inbox)
	}
	if err != nil {
		return err
	}
	for e := range forward {
		if e.Type == storage.None {
			delete(forward, e)
		}
	}
	var of [3]int64 // of users, of posts together, of posts
	for i, sum := range []string{
		"SELECT COALESCE(SUM(favorite_count), 0) FROM user_counts",
		"SELECT COALESCE(SUM(total_favorited), 0) FROM user_counts",
		"SELECT COALESCE(SUM(favorite_count), 0) FROM post_counts",
	} {
		err := w.each(sum, func(r *sql.Rows) error {
			var n int64
			err := r.Scan(&n)
			of[i] += n
			return err
		})
		if err != nil {
			return err
		}
	}
	if n := int64(len(forward)); of[0] != n {
		return fmt.Errorf("users count %d favorites, there are %d", of[0], n)
	}
	if of[1] != of[2] {
		return fmt.Errorf("%d favorites of authors, %d of their posts", of[1], of[2])
	}
	return nil
}
