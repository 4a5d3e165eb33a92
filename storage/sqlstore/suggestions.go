package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"kith/storage"
	"kith/storage/finding"
	"kith/storage/sqlstore/internal/db"
)

const (
	// Served by idx_popular and the primary keys. idx_popular has the users in order of the classes of their counts of followers; the
	// counts themselves come by the primary key. With the classes one by one, the users of a class who are not active, who may be
	// millions, are not read. Only the sample is sorted. LEFT JOIN keeps the order of the look-ups. The hint is for
	// TiDB, which would read all counts and hash them; the others pass it over.
	sqlPopular = `
SELECT /*+ INL_JOIN(counts) */ counts.user_id, counts.follower_count
FROM (
  SELECT /*! STRAIGHT_JOIN */ user_counts.user_id
  FROM user_counts /*! FORCE INDEX (idx_popular) */
  CROSS JOIN users ON users.user_id = user_counts.user_id
  WHERE user_counts.follower_class IN (?) AND user_counts.active_day >= ?
  ORDER BY user_counts.follower_class DESC, user_counts.active_day DESC, user_counts.user_id DESC LIMIT ?
) AS famous
LEFT JOIN user_counts AS counts ON counts.user_id = famous.user_id
ORDER BY counts.follower_count DESC, counts.user_id LIMIT ?`

	// Most users have been marked by another gateway, or by what they have done. Served by the
	// primary key.
	sqlNotActive = `
SELECT user_id
FROM user_counts
WHERE active_day < ? AND user_id IN (?)`

	// Served by the primary key.
	sqlMarkActive = `
UPDATE user_counts
SET active_day = ?
WHERE active_day < ? AND user_id IN (?)`
)

// followedClasses are the classes of users with followers, of up to ten digits: more than there are people.
var followedClasses = func() (classes []any) {
	for digits := 1; digits <= 10; digits++ {
		for first := range 100 {
			if first >= 10 && digits > 1 || 0 < first && first < 10 && digits == 1 {
				classes = append(classes, digits*100+first)
			}
		}
	}
	return classes
}()

// mostSamples bounds the work beside users who move: a shard to which they are being copied may have no other ones.
const mostSamples = 16

// readPopular answers [finding.PopularLookups].
func (s *Store) readPopular(ctx context.Context, q finding.PopularQuery) ([]finding.PopularUser, error) {
	greatest := func(a, b finding.PopularUser) int {
		return cmp.Or(cmp.Compare(b.Followers, a.Followers), cmp.Compare(a.User, b.User))
	}
	return topOf(s, q.Limit, greatest, func(i int, owns func(bucket int) bool) (list []finding.PopularUser, err error) {
		for times := 1; ; times *= 2 { // with more users, if others are being moved, or have been, who do not count
			read, top := 0, times*q.Limit
			list = nil
			// Day 0 is that of counts whose user has never been active.
			args := append(slices.Clone(followedClasses), int64(max(q.Since, 1)), times*finding.PopularSample, top)
			err := s.db.Query(ctx, "popular", i, top, db.Listed(sqlPopular, len(followedClasses)), args, db.EachEntry(db.TwoColumns, func(user storage.UserID, followers int64) {
				if read++; owns(user.Bucket()) {
					list = append(list, finding.PopularUser{User: user, Followers: followers})
				}
			}))
			if err != nil || read == len(list) || len(list) >= q.Limit || read < min(top, times*finding.PopularSample) || times == mostSamples {
				return list, err
			}
		}
	})
}

// MarkActive implements [storage.Store].
func (s *Store) MarkActive(ctx context.Context, users []storage.UserID, day storage.Day) error {
	if len(users) == 0 {
		return nil
	}
	users = slices.Sorted(slices.Values(users)) // so that all transactions that lock several users do it in one order
	return s.db.Rerouted(ctx, func() error {
		parts := s.db.Split(len(users), markedAtOnce, func(i int) int { return s.shards.Of(users[i]) })
		return errors.Join(storage.Each(parts, func(p db.Part) error { return s.markActive(ctx, p.Shard, storage.Chosen(users, p.At), day) })...)
	})
}

// markedAtOnce is how many users one statement marks, and locks.
const markedAtOnce = 200

func (s *Store) markActive(ctx context.Context, shard int, ids []storage.UserID, day storage.Day) error {
	var idle []storage.UserID
	text, args := db.In(sqlNotActive, ids, int64(day))
	err := s.db.Query(ctx, "active", shard, len(ids), text, args, db.AppendTo(&idle, db.OneColumn))
	if err != nil || len(idle) == 0 {
		return err
	}
	slices.Sort(idle)
	return s.transactOn(ctx, "active", shard, func(w *writer) error {
		for _, id := range idle {
			w.touchUser(id)
		}
		text, args := db.In(sqlMarkActive, idle, int64(day), int64(day))
		_, err := w.Exec(len(idle), text, args...)
		return err
	})
}

// topOf merges what all shards answer, at most limit in all. read leaves out rows of buckets that the shard does not own, by one map for all
// shards: they answer one after another, and a bucket whose rows are on two of them may become the other's in between.
func topOf[T any](s *Store, limit int, compare func(a, b T) int, read func(shard int, owns func(bucket int) bool) ([]T, error)) ([]T, error) {
	now := s.shards.Now()
	lists := make([][]T, len(s.db.All()))
	err := db.EveryShard(len(lists), func(i int) (err error) {
		lists[i], err = read(i, ownedBy(now, i))
		return err
	})
	if err != nil {
		return nil, err
	}
	all := slices.Concat(lists...)
	slices.SortFunc(all, compare)
	return all[:min(limit, len(all))], nil
}

// ownedBy tells the buckets of a shard.
func ownedBy(now *storage.Assignment, shard int) func(bucket int) bool {
	return func(bucket int) bool { owner, _ := now.Owner(bucket); return owner == shard }
}

// firstOf merges rows of all shards in their order, at most limit in all. Each shard is asked for its share of them, as users are on any shard
// alike, and for all of them only if its next rows may be among the first: with 200 shards, a search would otherwise read 200 times what it
// needs. read reads those behind the rows that it gets; owns is as for [topOf].
func firstOf[T any](s *Store, limit int, compare func(a, b T) int, read func(shard, limit int, behind []T, owns func(bucket int) bool) ([]T, error)) ([]T, error) {
	now := s.shards.Now()
	lists := make([][]T, len(s.db.All()))
	ended := make([]bool, len(lists))
	for i := range ended { // a shard may have nothing yet but rows that are moving to it
		ended[i] = !now.Owns(i)
	}
	fair := float64(limit) / float64(len(lists))
	for most := min(limit, int(fair+3*math.Sqrt(fair))+8); ; most = limit {
		err := db.EveryShard(len(lists), func(i int) error {
			want := min(most, limit-len(lists[i]))
			if ended[i] = ended[i] || want == 0; ended[i] {
				return nil
			}
			page, err := read(i, want, lists[i], ownedBy(now, i))
			lists[i], ended[i] = append(lists[i], page...), len(page) < want
			return err
		})
		if err != nil {
			return nil, err
		}
		first := slices.Concat(lists...)
		slices.SortFunc(first, compare)
		first = first[:min(limit, len(first))]
		for i, list := range lists {
			ended[i] = ended[i] || len(first) == limit && compare(list[len(list)-1], first[limit-1]) >= 0
		}
		if !slices.Contains(ended, false) {
			return first, nil
		}
	}
}
