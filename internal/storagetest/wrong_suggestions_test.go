package storagetest_test

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/finding"
)

// Mistakes about popular users and searches.
var suggestionMistakes = []mistake{
	{"of equals the greater id is more popular", reads(func(ctx context.Context, s *oracle.Store, _ storage.Side, queries []finding.PopularQuery) []storage.Result[[]finding.PopularUser] {
		return storage.Each(queries, func(q finding.PopularQuery) storage.Result[[]finding.PopularUser] {
			r := finding.PopularLookups.Read(ctx, s, finding.PopularQuery{Since: q.Since, Limit: finding.PopularSample})[0]
			slices.SortFunc(r.Value, func(a, b finding.PopularUser) int {
				return cmp.Or(cmp.Compare(b.Followers, a.Followers), cmp.Compare(b.User, a.User))
			})
			r.Value = r.Value[:min(q.Limit, len(r.Value))]
			return r
		})
	}, finding.PopularLookups), "popular/TheMostFollowedComeFirst", promiseOnly},
	{"a new follower does not make a user active", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		edges = slices.Clone(edges)
		for i := range edges {
			if side == storage.Inverse {
				edges[i].UpdateTime = 1
			}
		}
		return s.Apply(ctx, side, edges, rule)
	}), "popular/OnlyTheActiveAreListed", promiseOnly},
	{"any edge of a follower makes a user active", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		for _, e := range edges {
			s.MarkActive(ctx, []storage.UserID{e.To}, e.UpdateTime.Day())
		}
		return s.Apply(ctx, side, edges, rule)
	}), "popular/OnlyNewFollowsMakeActive", promiseOnly},
	{"marking a user writes an edge", func(s *oracle.Store, w *double.Store) {
		w.Instead.MarkActive = func(ctx context.Context, users []storage.UserID, day storage.Day) error {
			for _, id := range users {
				s.Apply(ctx, storage.Forward, []storage.Edge{{From: id, To: id + 1, UpdateTime: 1}}, storage.IfNewer)
			}
			return s.MarkActive(ctx, users, day)
		}
	}, "popular/MarkingChangesNothingElse", promiseOnly},
	{"the popular have no followers", listsPopular(finding.PopularSample, func(finding.PopularUser) bool { return true }, mostFollowed), "popular/NobodyWithoutFollowersIsListed", promiseOnly},
	{"the popular are ordered by digits", listsPopular(12, hasFollowers, func(a, b finding.PopularUser) int {
		digits := func(p finding.PopularUser) string { return strconv.FormatInt(p.Followers, 10) }
		return strings.Compare(digits(b), digits(a))
	}), "popular/TheMostFollowedComeFirst", promiseOnly},
	{"the sample is everybody", listsPopular(1<<30, hasFollowers, mostFollowed), "popular/TheMostFollowedAreLookedAt", promiseOnly},
	{"the sample is the newest", listsPopular(finding.PopularSample, hasFollowers, func(a, b finding.PopularUser) int {
		return cmp.Compare(b.User, a.User)
	}), "popular/TheMostFollowedAreLookedAt", promiseOnly},
	{"words are searched in the middle", finds(func(u storage.User, prefix string) bool {
		return slices.ContainsFunc(finding.Words(u), func(word string) bool { return strings.Contains(word, prefix) })
	}), "search/AWordIsFoundByItsBeginning", promiseOnly},
	{"names are not searched", finds(func(u storage.User, prefix string) bool {
		return strings.HasPrefix(u.Handle, prefix)
	}), "search/RegisteredUsersAreFound", promiseOnly},
	{"accents count", finds(func(u storage.User, prefix string) bool {
		words := append(strings.Fields(strings.ToLower(u.Name)), strings.Split(u.Handle, "_")...)
		return slices.ContainsFunc(append(words, u.Handle), func(word string) bool { return strings.HasPrefix(word, prefix) })
	}), "search/AWordIsFoundByItsBeginning", promiseOnly},
	{"a search has no bound", asks(func(q *finding.WordQuery) { q.Limit = 1 << 30 }, finding.WordLookups), "search/UsersOfAllShardsComeInTheOrderOfWords", promiseOnly},
	{"others have the word, too", asks(func(q *finding.UserWord) { q.Prefix = "s" }, finding.UserWordLookups), "search/ANewNameHasNewWords", promiseOnly},
}

// listsPopular lists, of all users made, those that it keeps, and the most popular of so many that come first in some order.
func listsPopular(sample int, keeps func(finding.PopularUser) bool, order func(a, b finding.PopularUser) int) spoil {
	return func(s *oracle.Store, w *double.Store) {
		var users []storage.User
		w.Instead.CreateUsers = func(ctx context.Context, created []storage.User, states ...storage.UserState) []storage.Result[bool] {
			users = append(users, created...)
			return s.CreateUsers(ctx, created, states...)
		}
		answers(func(s *oracle.Store, _ storage.Side, q finding.PopularQuery, r *storage.Result[[]finding.PopularUser]) {
			r.Value = nil
			for _, user := range users {
				p := finding.PopularUser{User: user.ID, Followers: storage.CountLookups.Read(context.Background(), s, user.ID)[0].Value.Follower}
				if user.CreatedAt.Day() >= q.Since && keeps(p) {
					r.Value = append(r.Value, p)
				}
			}
			slices.SortFunc(r.Value, order)
			r.Value = r.Value[:min(sample, len(r.Value))]
			slices.SortFunc(r.Value, mostFollowed)
			r.Value = r.Value[:min(q.Limit, len(r.Value))]
		}, finding.PopularLookups)(s, w)
	}
}

func mostFollowed(a, b finding.PopularUser) int {
	return cmp.Or(cmp.Compare(b.Followers, a.Followers), cmp.Compare(a.User, b.User))
}

func hasFollowers(p finding.PopularUser) bool { return p.Followers > 0 }

// finds searches users by another rule.
func finds(matches func(u storage.User, prefix string) bool) spoil {
	return answers(func(s *oracle.Store, _ storage.Side, q finding.WordQuery, r *storage.Result[[]storage.UserID]) {
		all := storage.UserIDLookups.Read(context.Background(), s, storage.ShardQuery[storage.UserID]{Limit: 1 << 30})[0].Value
		r.Value = nil
		for i, user := range storage.UserLookups.Read(context.Background(), s, all...) {
			if q.Prefix != "" && user.Found && len(r.Value) < q.Limit && matches(user.Value, q.Prefix) {
				r.Value = append(r.Value, all[i])
			}
		}
	}, finding.WordLookups)
}
