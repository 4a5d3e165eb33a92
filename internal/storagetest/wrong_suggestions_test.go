package storagetest_test

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about popular users and searches.

func greaterIsPopular(ctx context.Context, s *oracle.Store, _ storage.Side, queries []storage.PopularQuery) []storage.Result[[]storage.PopularUser] {
	return storage.Each(queries, func(q storage.PopularQuery) storage.Result[[]storage.PopularUser] {
		r := storage.PopularLookups.Read(ctx, s, storage.PopularQuery{Since: q.Since, Limit: storage.PopularSample})[0]
		slices.SortFunc(r.Value, func(a, b storage.PopularUser) int {
			return cmp.Or(cmp.Compare(b.Followers, a.Followers), cmp.Compare(b.User, a.User))
		})
		r.Value = r.Value[:min(q.Limit, len(r.Value))]
		return r
	})
}

type readersAreIdle struct{ *oracle.Store }

func (s readersAreIdle) MarkActive(context.Context, []storage.UserID, storage.Day) error { return nil }

type marksMake struct{ *oracle.Store }

func (s marksMake) MarkActive(ctx context.Context, users []storage.UserID, day storage.Day) error {
	for _, id := range users {
		s.Apply(ctx, storage.Forward, []storage.Edge{{From: id, To: id + 1, UpdateTime: 1}}, storage.IfNewer)
	}
	return s.Store.MarkActive(ctx, users, day)
}

// listsBy lists, of all users made, some in another order.
type listsBy struct {
	*oracle.Store
	users []storage.User
	keeps func(storage.PopularUser) bool
	order func(a, b storage.PopularUser) int
	most  int
}

func (s *listsBy) CreateUsers(ctx context.Context, users []storage.User) []storage.Result[bool] {
	s.users = append(s.users, users...)
	return s.Store.CreateUsers(ctx, users)
}

func (s *listsBy) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PopularLookups.Instead(ctx, b, storage.OneByOne(s.popular))
	s.Store.Bundle(ctx, b)
}

func (s *listsBy) popular(ctx context.Context, q storage.PopularQuery) ([]storage.PopularUser, error) {
	var list []storage.PopularUser
	for _, user := range s.users {
		p := storage.PopularUser{User: user.ID, Followers: storage.CountLookups.Read(ctx, s, user.ID)[0].Value.Follower}
		if user.CreatedAt.Day() >= q.Since && s.keeps(p) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, s.order)
	list = list[:min(s.most, len(list))]
	slices.SortFunc(list, mostFollowed)
	return list[:min(q.Limit, len(list))], nil
}

func mostFollowed(a, b storage.PopularUser) int {
	return cmp.Or(cmp.Compare(b.Followers, a.Followers), cmp.Compare(a.User, b.User))
}

func hasFollowers(p storage.PopularUser) bool { return p.Followers > 0 }

func samplesAll(s *oracle.Store) storage.Store {
	return &listsBy{Store: s, keeps: hasFollowers, order: mostFollowed, most: 1 << 30}
}

func listsEverybody(s *oracle.Store) storage.Store {
	everybody := func(storage.PopularUser) bool { return true }
	return &listsBy{Store: s, keeps: everybody, order: mostFollowed, most: storage.PopularSample}
}

func samplesTheNewest(s *oracle.Store) storage.Store {
	newest := func(a, b storage.PopularUser) int { return cmp.Compare(b.User, a.User) }
	return &listsBy{Store: s, keeps: hasFollowers, order: newest, most: storage.PopularSample}
}

func ordersByDigits(s *oracle.Store) storage.Store {
	digits := func(p storage.PopularUser) string { return strconv.FormatInt(p.Followers, 10) }
	byDigits := func(a, b storage.PopularUser) int { return strings.Compare(digits(b), digits(a)) }
	return &listsBy{Store: s, keeps: hasFollowers, order: byDigits, most: 12}
}

// searchesBy finds users by another rule.
type searchesBy struct {
	*oracle.Store
	matches func(u storage.User, prefix string) bool
}

func (s searchesBy) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.WordLookups.Instead(ctx, b, storage.OneByOne(s.words))
	s.Store.Bundle(ctx, b)
}

func (s searchesBy) words(ctx context.Context, q storage.WordQuery) (ids []storage.UserID, err error) {
	all, err := storage.UserIDLookups.Get(ctx, s, storage.ShardQuery[storage.UserID]{Shard: 0, After: 0, Limit: 1 << 30})
	for i, r := range storage.UserLookups.Read(ctx, s, all...) {
		if q.Prefix != "" && r.Found && len(ids) < q.Limit && s.matches(r.Value, q.Prefix) {
			ids = append(ids, all[i])
		}
	}
	return ids, err
}

func containing(s *oracle.Store) storage.Store {
	return searchesBy{s, func(u storage.User, prefix string) bool {
		return slices.ContainsFunc(u.Words(), func(word string) bool { return strings.Contains(word, prefix) })
	}}
}

func byHandleAlone(s *oracle.Store) storage.Store {
	return searchesBy{s, func(u storage.User, prefix string) bool { return strings.HasPrefix(u.Handle, prefix) }}
}

func withAccents(s *oracle.Store) storage.Store {
	return searchesBy{s, func(u storage.User, prefix string) bool {
		words := append(strings.Fields(strings.ToLower(u.Name)), strings.Split(u.Handle, "_")...)
		return slices.ContainsFunc(append(words, u.Handle), func(word string) bool { return strings.HasPrefix(word, prefix) })
	}}
}

type listsAll struct{ *oracle.Store }

func (s listsAll) Bundle(ctx context.Context, b *storage.Bundle) {
	changeKeys(storage.WordLookups, b, func(q *storage.WordQuery) { q.Limit = 1 << 30 })
	s.Store.Bundle(ctx, b)
}

type haveAll struct{ *oracle.Store }

func (s haveAll) Bundle(ctx context.Context, b *storage.Bundle) {
	changeKeys(storage.UserWordLookups, b, func(q *storage.UserWord) { q.Prefix = "s" })
	s.Store.Bundle(ctx, b)
}
