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
	if err := w.othersAgree(); err != nil {
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

// othersAgree returns an error that names a difference between the two sides of requests, favorites and relations, or in the counts of the
// last two.
func (w *world) othersAgree() error {
	live := map[storage.Side]int64{}
	for _, side := range []storage.Side{storage.Requests, storage.Favorites, storage.Relations} {
		truth, err := w.rows(side)
		if err != nil {
			return err
		}
		replica, err := w.rows(side.Replica())
		if err == nil && !maps.Equal(truth, replica) {
			err = fmt.Errorf("%s holds %v, %s %v", side, truth, side.Replica(), replica)
		}
		if err != nil {
			return err
		}
		for e := range truth {
			if e.Type != storage.None {
				live[side]++
			}
		}
	}
	of := make([]int64, 5)
	for i, sum := range []string{
		"SUM(favorite_count), 0) FROM user_counts", "SUM(total_favorited), 0) FROM user_counts", "SUM(favorite_count), 0) FROM post_counts",
		"SUM(outgoing), 0) FROM relation_counts", "SUM(incoming), 0) FROM relation_counts",
	} {
		err := w.each("SELECT COALESCE("+sum, func(r *sql.Rows) error {
			var n int64
			err := r.Scan(&n)
			of[i] += n
			return err
		})
		if err != nil {
			return err
		}
	}
	if of[0] != live[storage.Favorites] || of[1] != of[2] {
		return fmt.Errorf("users count %d favorites, there are %d; authors count %d, their posts %d", of[0], live[storage.Favorites], of[1], of[2])
	}
	if of[3] != live[storage.Relations] || of[4] != of[3] {
		return fmt.Errorf("%d relations are counted, and %d on the other side; there are %d", of[3], of[4], live[storage.Relations])
	}
	return nil
}
