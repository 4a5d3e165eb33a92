package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kith/internal/must"
	"kith/storage"
	"kith/storage/contents"
	"kith/storage/finding"
	"kith/storage/reaction"
	"kith/storage/sides"
	"kith/storage/sqlstore/internal/packed"
)

// fillSideTables adds what is stored beside edges: for user 1 thousands of rows, for others a few.
func fillSideTables(t *testing.T, s *Store) {
	t.Helper()
	run := func(text string) {
		_, err := s.db.Shard(0).Write.ExecContext(t.Context(), text)
		must.That(t, err == nil, "%.100s: %v", text, err)
	}
	insert := func(table string, row func(user, i int) string) {
		var rows []string
		for user := 1; user <= 2000; user++ {
			n := 5
			if user == 1 {
				n = 5100
			}
			for i := range n {
				rows = append(rows, row(user, i))
			}
		}
		for chunk := range slices.Chunk(rows, 500) {
			run("INSERT INTO " + table + " VALUES " + strings.Join(chunk, ","))
		}
	}
	for _, user := range []storage.UserID{1, 900} {
		s.Apply(t.Context(), storage.Forward, []storage.Edge{{From: user, To: followedForPlans, Type: storage.Following, UpdateTime: 2e9}}, storage.IfNewer)
	}
	insert("edge_marks (from_user_id, to_user_id, special, remark)", func(user, i int) string { return fmt.Sprintf("(%d, %d, %d, 'x')", user, 10_000+i, i%2) })
	insert("user_states (user_id, state, changed_at)", func(user, i int) string { return fmt.Sprintf("(%d, %d, %d)", user*10_000+i, i%4, user+i) })
	insert("moderation_log (owner_id, at, user_id, action, operator, reason, ends_at, number)", func(user, i int) string {
		return fmt.Sprintf("(%d, %d, %d, %d, 'o', 'r', 1000000000, 0)", user, user+i*2000, 1+(user+i)%2000, 1+i%4)
	})
	insert("friend_request (from_user_id, to_user_id, type, update_time, message)", func(user, i int) string {
		return fmt.Sprintf("(%d, %d, %d, %d, '%s')", user, 10_000+i, 1+i%5, i, strings.Repeat("m", i%2))
	})
	insert("friend_request_inbox (to_user_id, from_user_id, type, update_time)", func(user, i int) string {
		return fmt.Sprintf("(%d, %d, %d, %d)", user, 10_000+i, 1+i%5, i)
	})
	for _, table := range []string{"packed_chunk (owner, side, first_peer, data)", "packed_change (owner, side, peer, update_time, type)"} {
		insert(table, func(user, i int) string {
			return fmt.Sprintf("(%d, %d, %d, 7%s)", 1_000_000+user, i%2, 10_000+i, strings.Repeat(", 1", strings.Count(table, "type")))
		})
	}
	insert("packed_short (owner, side, version, data)", func(user, i int) string { return fmt.Sprintf("(%d, %d, 1, 'x')", 1_000_000+10_000*user+i/2, i%2) })
	insert("post (author_id, post_id, client_key, text, media, created_at, state)", func(user, i int) string {
		return fmt.Sprintf("(%d, %d, 'k%d', 't', '[]', %d, %d)", user, 10_000*user+i, i, i, i%10/9)
	})
	insert("post_counts (author_id, post_id)", func(user, i int) string { return fmt.Sprintf("(%d, %d)", user, 10_000*user+i) })
	insert("comment (author_id, comment_id, post_id, user_id, client_key, text, created_at)", func(user, i int) string {
		return fmt.Sprintf("(%d, %d, %d, %d, 'k%d', 't', %d)", user, 10_000*user+i, 10_000*user+i%3, 1+(user+i)%2000, i, i)
	})
	favorite := func(user, i int) string {
		return fmt.Sprintf("(%d, %d, %d, %d, %d)", user, 1+i%2000, 10_000*(1+i%2000)+i%3, i%10/9^1, i)
	}
	insert("favorite (from_user_id, to_user_id, post_id, type, update_time)", favorite)
	insert("favorite_inbox (to_user_id, from_user_id, post_id, type, update_time)", func(user, i int) string {
		return fmt.Sprintf("(%d, %d, %d, %d, %d)", user, 10_000+i, 10_000*user+i%3, i%10/9^1, i)
	})
	insert("relation (from_user_id, to_user_id, kind, type, update_time, ends_at, attributes)", func(user, i int) string {
		return fmt.Sprintf("(%d, %d, %d, %d, %d, %d, '')", user, 10_000+i, 101+i%3, i%10/9^1, i, i%50/49*(user*1000+i))
	})
	insert("relation_inbox (to_user_id, from_user_id, kind, type, update_time)", func(user, i int) string {
		return fmt.Sprintf("(%d, %d, %d, %d, %d)", user, 10_000+i, 101+i%3, i%10/9^1, i)
	})
	insert("relation_counts (owner, kind, outgoing)", func(user, i int) string { return fmt.Sprintf("(%d, %d, 7)", user, 101+i) })
	run("UPDATE user_counts SET active_day = 20000 - user_id % 100")
	if s.HasLog() {
		run("ANALYZE")
		return
	}
	run("ANALYZE TABLE edge_marks, user_states, moderation_log, friend_request, friend_request_inbox, user_counts, packed_chunk, packed_change, packed_short, post, post_counts, comment, favorite, favorite_inbox, relation, relation_inbox, relation_counts")
}

// runSideLookUps runs each look-up with one key, with some and with many.
func runSideLookUps(t *testing.T, s *Store) {
	ctx := t.Context()
	for _, n := range []int{1, 20, 500} {
		ids := make([]storage.UserID, n)
		ofOne := make([]storage.Pair, n)
		ofMany := make([]storage.Pair, n)
		var counts []storage.EdgeCountQuery
		for i := range ids {
			ids[i] = storage.UserID(1 + i*2)
			ofOne[i] = storage.Pair{From: 1, To: storage.UserID(10_000 + i)}
			ofMany[i] = storage.Pair{From: ids[i], To: 10_002}
			since := storage.Micros(i % 2 * 5e8)
			counts = append(counts, storage.EdgeCountQuery{Owner: ids[i], Since: since, Limit: 1000})
		}
		storage.BlockLookups.Read(ctx, s, ids...)
		finding.UserWordLookups.Get(ctx, s, finding.UserWord{Users: ids, Prefix: "us"})
		for _, side := range storage.Sides {
			storage.EdgeCountLookups[side].Read(ctx, s, counts...)
		}
		storage.MarkLookups.Read(ctx, s, ofOne...)
		storage.MarkLookups.Read(ctx, s, ofMany...)
		storage.MessageLookups.Read(ctx, s, ofOne...)
		storage.MessageLookups.Read(ctx, s, ofMany...)
		storage.SpecialLookups.Read(ctx, s, ids...)
		storage.StateLookups.Read(ctx, s, ids...)
		runSnapshots(t, s, ids)
		runPosts(t, s, ids)
	}
	for _, limit := range []int{1, 100, 1000} {
		runLimited(t, s, limit)
		for _, after := range []finding.Rank{{}, {Class: 250, ActiveDay: 19_950, User: 77}, {Class: 101, ActiveDay: 19_990, User: 5000}} {
			_, err := s.Ranked(ctx, 0, after, limit)
			must.OK(t, err)
		}
	}
	runPacked(t, s)
}

// runPacked packs a long list and a short one, reads them, folds changes into them, and packs
// them again.
func runPacked(t *testing.T, s *Store) {
	t.Helper()
	s.packed.Sizes = packed.Sizes{From: 1, Chunk: 100, Slice: 500, Changes: 5, Window: 4, Step: 7, ShortTo: 100, ShortQuiet: -1 << 60}
	for _, side := range packedSides {
		var lists []packed.Name
		for owner := range storage.UserID(shortsAtOnce) {
			lists = append(lists, packed.Name{Side: side, Owner: 900 + owner})
		}
		s.packShorts(t.Context(), lists)
		s.packShorts(t.Context(), lists[:1])
	}
	for _, side := range packedSides {
		for _, owner := range []storage.UserID{1, 4, 900} {
			for range 2 {
				mustPack(t, s, side, owner)
				edges := edgesFrom(side, owner, 10, storage.Following)
				must.All(t, s.Apply(t.Context(), side, edges, storage.IfNewer))
				sameLists(t, s, []storage.UserID{owner})
				mustPack(t, s, side, owner)
				sameLists(t, s, []storage.UserID{owner})
				s.packed.Doubted.Store(packed.Name{Side: side, Owner: owner}, "") // so that it is packed again
			}
			s.packed.Doubted.Clear()
		}
	}
}

// runSnapshots reads some users who exist and some who do not, and lists with bounds of their own.
func runSnapshots(t *testing.T, s *Store, ids []storage.UserID) {
	t.Helper()
	ids = append(slices.Clone(ids), 1e9)
	storage.ProfileLookups.Read(t.Context(), s, ids...)
	storage.ProfileLookups.Read(t.Context(), s, ids[:1]...)
	var queries []storage.ListQuery
	for i, id := range ids {
		queries = append(queries, storage.ListQuery{Owner: id, Longest: i % 4 * 1000, EndedSince: storage.Micros(i % 3 * 5e8)})
	}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		storage.SnapshotLookups[side].Read(t.Context(), s, queries...)
		storage.SnapshotLookups[side].Read(t.Context(), s, storage.ListQuery{Owner: 1, Longest: 1e6})
	}
}

// runPosts reads posts and comments, of authors who have many and of authors who have few.
func runPosts(t *testing.T, s *Store, authors []storage.UserID) {
	t.Helper()
	posts, comments := make([]storage.PostID, len(authors)), make([]storage.CommentID, len(authors))
	pages, below := make([]storage.PlaceQuery, len(authors)), make([]storage.PlaceQuery, len(authors))
	for i, id := range authors {
		posts[i] = storage.PostID{Author: id, Number: 10_000 * int64(id)}
		comments[i] = storage.CommentID{Author: id, Number: 10_000*int64(id) + 1}
		pages[i] = storage.PlaceQuery{Of: storage.PostID{Author: id}, Limit: 20}
		below[i] = storage.PlaceQuery{Of: posts[i], After: storage.Place{CreatedAt: 3, Number: 10_000*int64(id) + 3}, Limit: 20}
	}
	storage.PostLookups.Read(t.Context(), s, posts...)
	storage.PostPageLookups.Read(t.Context(), s, pages...)
	storage.CommentLookups.Read(t.Context(), s, comments...)
	storage.CommentPageLookups.Read(t.Context(), s, below...)
	storage.LastPostLookups.Read(t.Context(), s, storage.LastQuery{UpTo: 3}.Of(authors)...)
	storage.LastPostLookups.Read(t.Context(), s, storage.LastQuery{UpTo: 3}.Of(authors[:1])...)
	runFavorites(t, s, posts)
	for _, after := range []storage.Place{{}, {CreatedAt: 3, Number: 20_000_001}} {
		_, err := storage.RecentPostLookups.Get(t.Context(), s, storage.ShardQuery[storage.Place]{After: after, Until: 1, Limit: len(authors)})
		must.OK(t, err)
		_, err = storage.LatestPostLookups.Get(t.Context(), s, storage.PlaceQuery{After: after, Limit: len(authors)})
		must.OK(t, err)
	}
}

// runFavorites reads favorites of users and posts that have many, and of some that have few.
func runFavorites(t *testing.T, s *Store, posts []storage.PostID) {
	t.Helper()
	given, by, pairs := make([]storage.PlaceQuery, len(posts)), make([]storage.PageQuery, len(posts)), make([]storage.Pair, len(posts))
	for i, id := range posts {
		given[i] = storage.PlaceQuery{Of: storage.PostID{Author: id.Author}, After: storage.Place{CreatedAt: 1000, Number: 7}, Limit: 20}
		by[i] = storage.PageQuery{Owner: id.Author, Item: id.Number, After: storage.Position{UpdateTime: 1000, Peer: 10_500}, Limit: 20}
		pairs[i] = storage.Pair{From: 1, To: id.Author, Item: id.Number}
	}
	kinds, details := make([]storage.OwnerKind, len(posts)), make([]storage.Pair, len(posts))
	for i, id := range posts {
		kinds[i] = storage.OwnerKind{Owner: id.Author, Kind: int64(101 + i%4)}
		details[i] = storage.Pair{From: id.Author, To: 10_000, Item: kinds[i].Kind}
	}
	storage.KindLookups.Read(t.Context(), s, kinds...)
	storage.DetailLookups.Read(t.Context(), s, details...)
	for _, side := range []storage.Side{storage.Relations, storage.RelationInbox} {
		storage.EdgeLookups[side].Read(t.Context(), s, details...)
		for _, backward := range []bool{false, true} {
			for _, at := range []storage.Position{{}, {UpdateTime: 50, Peer: 10_050}} {
				storage.PageLookups[side].Read(t.Context(), s, storage.Each(kinds, func(k storage.OwnerKind) storage.PageQuery {
					return storage.PageQuery{Owner: k.Owner, Item: k.Kind, Limit: 20, After: at, Backward: backward}
				})...)
			}
		}
	}
	storage.FavoritePageLookups.Read(t.Context(), s, given...)
	for _, kind := range []reaction.Kind{reaction.Favorites, reaction.Comments, reaction.Mentions} {
		reaction.Lookups.Read(t.Context(), s, storage.Each(posts, func(id storage.PostID) reaction.Query {
			return reaction.Query{User: id.Author, Kind: kind, After: reaction.Reaction{Place: storage.Place{CreatedAt: 1000, Number: id.Number}, By: 7}, Limit: 20}
		})...)
	}
	storage.PageLookups[storage.FavoriteInbox].Read(t.Context(), s, by...)
	storage.EdgeLookups[storage.Favorites].Read(t.Context(), s, pairs...)
	storage.EdgeLookups[storage.FavoriteInbox].Read(t.Context(), s, pairs...)
}

// runPostWrites runs the writes of an author.
func runPostWrites(t *testing.T, s *Store, author storage.UserID) {
	t.Helper()
	check := func(_, _ any, err error) { must.OK(t, err) }
	id, text := storage.PostID{Author: author, Number: 90_000_000 + int64(author)}, "new"
	for range 2 {
		check(s.Publish(t.Context(), storage.PostRow{PostID: id, Key: "new", At: 5}))
		check(s.EditPost(t.Context(), id, storage.PostChange{Text: &text}, 6))
		n := storage.Comment{CommentID: storage.CommentID(id), Post: id.Number, By: 7, Key: "new", CreatedAt: 7}
		check(s.AddComment(t.Context(), n))
	}
	row := storage.PostRow{PostID: storage.PostID{Author: author, Number: id.Number + 10_000_000}, Key: "row"}
	comment := storage.Comment{CommentID: storage.CommentID{Author: row.Author, Number: row.Number}, Post: row.Number, By: 7, Key: "row"}
	for _, r := range append(s.Restore(t.Context(), storage.Restored{Posts: []storage.PostRow{row}}), s.Restore(t.Context(), storage.Restored{Comments: []storage.Comment{comment}})...) {
		must.That(t, r.Err == nil && r.Value, "restore: %+v", r)
	}
	for _, o := range []storage.ChangeOptions{{}, {Inverse: true}} {
		changes := []storage.EdgeChange{id.Favorite(storage.Favorited, 8)}
		made := s.ChangeEdges(t.Context(), storage.Favorites, author, changes, storage.ChangeOptions{Peace: true, Inverse: o.Inverse})[0]
		check(nil, made, made.Err)
		changed := made.Value
		must.All(t, s.Apply(t.Context(), storage.FavoriteInbox, []storage.Edge{changed.Row}, storage.IfNewer))
	}
	pair := storage.Pair{From: author, To: 77_777, Item: 101}
	must.All(t, s.Apply(t.Context(), storage.Relations, []storage.Edge{pair.Edge(storage.Related, 9)}, storage.IfNewer))
	must.All(t, s.Restore(t.Context(), storage.Restored{Details: []storage.RelationRow{{Edge: pair.Edge(storage.Related, 9), Detail: storage.Detail{EndsAt: 5}}}}))
	for _, kind := range []storage.EdgeType{storage.None, storage.Related} {
		must.All(t, s.ChangeEdges(t.Context(), storage.Relations, author, []storage.EdgeChange{{To: pair.To, Item: 101, Type: kind, At: 12}}, storage.ChangeOptions{Peace: true, Inverse: true}))
	}
	on, err := s.DeleteComment(t.Context(), storage.CommentID{Author: author, Number: id.Number}, 7)
	check(nil, on, err)
	changed, err := s.DeletePost(t.Context(), id)
	check(nil, changed, err)
}

// runLimited runs the look-ups that list from a given place.
func runLimited(t *testing.T, s *Store, limit int) {
	t.Helper()
	check := func(_ any, err error) { must.OK(t, err) }
	ctx := context.WithoutCancel(t.Context())
	for _, side := range storage.AllSides {
		for _, after := range []storage.UserID{0, 1000} {
			for _, any := range []bool{false, true} {
				q := storage.RowsQuery{Side: side, Owner: 1, After: after, Limit: limit, Any: any}
				few := q
				few.Owner = 900
				must.All(t, storage.RowLookups.Read(ctx, s, q, few))
			}
		}
	}
	for _, prefix := range []string{"", "u", "user_1", "user_12345"} {
		check(finding.WordLookups.Get(ctx, s, finding.WordQuery{Prefix: prefix, Limit: limit}))
	}
	for _, upTo := range []storage.Micros{1, 5000, 1 << 60} {
		for _, after := range []storage.RelationRow{{}, {Edge: storage.Edge{From: 900, To: 1000, Item: 3}, Detail: storage.Detail{EndsAt: 3000}}} {
			check(storage.DueLookups.Get(ctx, s, storage.ShardQuery[storage.RelationRow]{Shard: 0, After: after, Limit: limit, Until: upTo}))
		}
	}
	for _, since := range []storage.Day{1, 19_950, 20_000} {
		check(finding.PopularLookups.Get(ctx, s, finding.PopularQuery{Since: since, Limit: limit}))
	}
	check(nil, s.MarkActive(ctx, []storage.UserID{1, 2, 3, 900, 1_000_000}, 20_001))
	check(storage.UserIDLookups.Get(ctx, s, storage.ShardQuery[storage.UserID]{Shard: 0, After: 0, Limit: limit}))
	check(storage.UserIDLookups.Get(ctx, s, storage.ShardQuery[storage.UserID]{Shard: 0, After: 19_000, Limit: limit}))
	check(storage.StateChangeLookups.Get(ctx, s, storage.ShardQuery[storage.StateChange]{Shard: 0, After: storage.StateChange{}, Limit: limit}))
	check(storage.StateChangeLookups.Get(ctx, s, storage.ShardQuery[storage.StateChange]{Shard: 0, After: storage.StateChange{At: 1000, User: 5_000_000}, Limit: limit}))
	for _, after := range []storage.Place{{}, {CreatedAt: 2_000_000, Number: 900}} {
		for _, user := range []storage.UserID{0, 1, 900} {
			if user == 0 && after == (storage.Place{}) {
				continue // from the beginning of the whole log there is no range: MySQL says that it walks through the index, to the limit
			}
			check(storage.ModerationLookups.Get(ctx, s, storage.PlaceQuery{Of: storage.PostID{Author: user}, After: after, Limit: limit}))
		}
	}
}

// followedForPlans is a user whom the users of runSideWrites follow.
const followedForPlans = 30_000

// runSideWrites runs each write for a user with many rows and for a user with few.
func runSideWrites(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	for _, user := range []storage.UserID{1, 900} {
		for _, special := range []bool{true, false} {
			_, _, err := s.SetMark(ctx, storage.Pair{From: user, To: followedForPlans}, storage.MarkChange{Special: &special})
			must.That(t, err == nil || user == 1, "%v", err) // user 1 has too many already
		}
		for _, upTo := range []storage.Micros{5, 6} {
			_, err := s.See(ctx, storage.Seen{User: user}, upTo)
			must.OK(t, err)
		}
		_, err := storage.SeenLookups.Get(ctx, s, storage.Seen{User: user})
		must.OK(t, err)
		changeLists(t, s, user)
		changeImports(t, s, user)
		asked := storage.Edge{From: user, To: followedForPlans + 1, Type: storage.Pending, UpdateTime: 1e9}
		must.All(t, s.Apply(ctx, storage.Requests, []storage.Edge{asked}, storage.IfNewer))
		for kind, to := range [...]storage.UserID{storage.AnnotationMark: followedForPlans, storage.AnnotationMessage: asked.To, storage.AnnotationFirst: followedForPlans} {
			row := storage.Annotation{Pair: storage.Pair{From: user, To: to}, Text: "x", At: 1e9}
			for _, r := range s.Restore(ctx, storage.Restored{Annotations: []storage.Annotation{row}, Kind: storage.AnnotationKind(kind)}) {
				must.That(t, r.Err == nil && r.Value, "beside %d → %d: %+v", user, to, r)
			}
		}
		runPostWrites(t, s, user)
		suspension := storage.ModerationEntry{Owner: user, At: 1e9, User: user, Action: storage.Suspended, By: "o", Reason: "r", Until: 2e9}
		_, _, err = s.Moderate(ctx, suspension)
		must.OK(t, err)
		is, err := storage.StateLookups.Get(ctx, s, user)
		must.That(t, err == nil && is.Until == 2e9, "%v %v", is, err)
		suspension.At = 3e9
		r := s.Restore(ctx, storage.Restored{Moderation: []storage.ModerationEntry{suspension}, At: 1e9})[0]
		must.That(t, r.Value, "%v", r)
		_, err = s.SetState(ctx, user, storage.Deleting, 2e9)
		must.OK(t, err)
		runEndEdges(t, s, user)
		const packed = "REPLACE INTO packed_short (owner, side, version, data) VALUES (?, 0, 1, 'x')" // on TiDB no list is packed by itself
		_, err = s.db.Shard(0).Write.ExecContext(ctx, packed, int64(user))
		must.OK(t, err)
		must.OK(t, s.Erase(ctx, user, 3e9))
	}
	must.OK(t, s.LinkIdentity(ctx, identityOf(950), 950, 1))
	var restored []storage.LinkedIdentity
	for id := storage.UserID(2000); id < 2100; id++ {
		restored = append(restored, storage.LinkedIdentity{Identity: identityOf(id), User: id, At: 1})
	}
	must.All(t, append(s.Restore(ctx, storage.Restored{Identities: restored}), s.Restore(ctx, storage.Restored{Identities: restored[:1]})...))
	_, err := storage.LinkLookups.Get(ctx, s, 950)
	must.OK(t, err)
	must.OK(t, s.eraseElsewhere(ctx, 950))
	must.OK(t, s.releaseHandle(ctx, 950, "user_950")) // of a user who exists when the statement is explained
}

// runEndEdges ends some edges of a user, first a single edge and then more.
func runEndEdges(t *testing.T, s *Store, user storage.UserID) {
	t.Helper()
	for _, limit := range []int{1, 20} {
		var rows []storage.Row
		for _, side := range storage.AllSides {
			for _, e := range storage.RowLookups.Read(t.Context(), s, storage.RowsQuery{Side: side, Owner: user, Limit: limit})[0].Value {
				rows = append(rows, storage.Row{Side: side, Edge: e})
			}
		}
		for _, r := range s.EndEdges(t.Context(), user, rows, 2e9) {
			must.That(t, r.Err == nil && r.Found, "end an edge: %+v", r)
		}
	}
}

// runScans runs the statements that compare and repair.
func runScans(t *testing.T, s *Store) {
	t.Helper()
	check := func(_ any, err error) { must.OK(t, err) }
	ctx, owners := t.Context(), sides.OwnerRange{After: 100, UpTo: 2000}
	classes := sides.Choose(sides.Classes, []int{1, 2, 3})
	_, _, err := s.NextOwner(ctx, 0, 0, 100)
	check(nil, err)
	one := sides.OwnerRange{After: 199, UpTo: 200}
	for _, side := range storage.AllSides {
		_, _, err := s.OwnerOfRow(ctx, side, 0, 100, 50)
		check(nil, err)
		check(s.Digests(ctx, side, 0, one, sides.Cut{Parts: 1}, nil))
		check(s.Digests(ctx, side, 0, one, sides.Cut{Parts: 16}, classes))
		check(s.OwnerDigests(ctx, side, 0, one))
		check(s.Digests(ctx, side, 0, owners, sides.Cut{Parts: 1}, nil))
		check(s.Digests(ctx, side, 0, owners, sides.Cut{Parts: 16}, classes))
		ofBuckets := owners
		ofBuckets.Buckets = sides.Choose(storage.Buckets, []int{7, 8})
		check(s.Digests(ctx, side, 0, ofBuckets, sides.Cut{Parts: 1}, nil))
		check(s.OwnerDigests(ctx, side, 0, owners))
		check(s.OwnerDigests(ctx, side, 0, ofBuckets))
		check(s.Digests(ctx, side, 0, ofBuckets, sides.Cut{Parts: 16}, classes))
		groups := sides.Choose(16*sides.Classes, []int{5, 6})
		check(nil, s.GroupRows(ctx, side, 0, owners, sides.Cut{Parts: 16}, groups, func(storage.Edge) {}))
		check(nil, s.GroupRows(ctx, side, 0, one, sides.Cut{Parts: 16}, groups, func(storage.Edge) {}))
	}
	for _, side := range packedSides {
		_, err := s.db.Shard(0).Write.ExecContext(ctx, "UPDATE user_counts SET "+side.String()+"_count = 7 WHERE user_id = 200")
		must.OK(t, err)
		check(s.WrongCounts(ctx, side, 0, owners))
		check(s.WrongCounts(ctx, side, 0, one))
		must.All(t, s.Recount(ctx, side, []storage.UserID{1, 200, 201}))
	}
	_, err = s.db.Shard(0).Write.ExecContext(ctx, "UPDATE user_counts SET favorite_count = 7, total_favorited = 7 WHERE user_id = 200")
	must.OK(t, err)
	for _, side := range []storage.Side{storage.Favorites, storage.FavoriteInbox} {
		check(s.WrongCounts(ctx, side, 0, owners))
		check(s.WrongCounts(ctx, side, 0, one))
		must.All(t, s.Recount(ctx, side, []storage.UserID{1, 200, 201}))
	}
	for _, side := range []storage.Side{storage.FavoriteInbox, storage.Relations, storage.RelationInbox} {
		check(s.WrongItemCounts(ctx, side, 0, owners))
		check(s.WrongItemCounts(ctx, side, 0, one))
		must.All(t, s.RecountItems(ctx, side, []storage.PostID{{Author: 200, Number: 2_000_000}, {Author: 201, Number: 2_010_000}}))
	}
	check(s.WrongFriends(ctx, 0, owners))
	check(s.ForbiddenFollows(ctx, 0, owners))
	check(s.ForbiddenFollows(ctx, 0, one))
	must.All(t, s.RecountFriends(ctx, []storage.UserID{1, 200, 201}))
	check(nil, s.ReadShard(ctx, 0, func(at contents.Moment) error {
		identities, err := at.Identities(ctx, "M", 50)
		check(identities, err)
		for _, after := range []storage.Pair{{}, {From: 1, To: 100}, {From: 900, To: 10_002}, {From: 4999}} {
			for _, limit := range []int{10, 10_000} {
				check(at.Users(ctx, after.From, limit))
				check(at.Rows(ctx, storage.Forward, after, limit))
				check(at.Rows(ctx, storage.Requests, after, limit))
				check(at.Rows(ctx, storage.Favorites, after, limit))
				check(at.Relations(ctx, after, limit))
				after.Item = 101
				check(at.Relations(ctx, after, limit))
				after.Item = 0
				for _, kind := range storage.AnnotationKinds {
					check(at.Annotations(ctx, kind, after, limit))
				}
				check(at.Posts(ctx, storage.PostID{Author: after.From, Number: int64(after.To)}, limit))
				check(at.Comments(ctx, storage.CommentID{Author: after.From, Number: int64(after.To)}, limit))
				check(at.Moderation(ctx, storage.ModerationEntry{Owner: after.From, At: storage.Micros(after.To)}, limit))
				check(at.Lists(ctx, storage.ListID{Owner: after.From, Number: int64(after.To)}, limit))
			}
		}
		return nil
	}))
	check(s.Lease(ctx, "plans", "me", 3, 1, 2))
	check(s.Holders(ctx, "plans"))
	check(nil, s.Release(ctx, "plans", "me", 0))
	if s.HasLog() {
		check(s.ReadLog(ctx, 0, 1, 10))
		check(s.LastOfLog(ctx, 0))
	}
}
