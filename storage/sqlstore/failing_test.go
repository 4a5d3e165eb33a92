package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest"
	"kith/storage"
	"kith/storage/finding"
	"kith/storage/sides"
)

func errorOf[V any](results []storage.Result[V]) (err error) {
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	return err
}

// Whatever a store is asked to read or to write fails if one of its statements fails, or returns a
// row that cannot be read. After that it can be tried again.
func TestNothingSucceedsWithoutItsStatements(t *testing.T) {
	f := &faults{}
	s := openFaulty(t, f)
	operations := faultyReads()
	maps.Copy(operations, faultyScans())
	maps.Copy(operations, faultyWrites())
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		do := operations[name]
		t.Run(name, func(t *testing.T) {
			reached := 0
			for at := 1; ; at++ {
				f.arm(at, false)
				err := do(t.Context(), s)
				statements, hit := f.disarm()
				if !hit {
					must.That(t, err == nil, "without a fault: %v", err)
					break
				}
				reached++
				check.Is(t, fmt.Sprintf("statement %d of %d fails", at, statements), err, errStatement)
				f.arm(at, true)
				err = do(t.Context(), s)
				statements, hit = f.disarm()
				check.That(t, !hit || err != nil && strings.Contains(err.Error(), "struct {}"), "a row of statement %d of %d cannot be read: %v", at, statements, err)
				if statements < at && err == nil {
					break // earlier attempts have done a part of it
				}
			}
			check.That(t, reached != 0, "no statement failed")
		})
	}
}

// openFaulty makes a store of two shards with some rows of every kind.
func openFaulty(t *testing.T, f *faults) *Store {
	t.Helper()
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "0.db"), filepath.Join(dir, "1.db")}
	s := openSmall(t, "sqlite:"+paths[0]+";"+paths[1], nil)
	for i, n := range s.db.All() {
		read, write := n.Read, n.Write
		n.Read, n.Write = f.pool(t, paths[i], "&_pragma=query_only(1)"), f.pool(t, paths[i], "&_txlock=immediate")
		n.Write.SetMaxOpenConns(1)
		t.Cleanup(func() { read.Close(); write.Close() })
	}
	fillFaulty(t, s)
	return s
}

func fillFaulty(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	var users []storage.User
	for id := storage.UserID(1); id <= 40; id++ {
		users = append(users, storage.User{ID: id, Handle: "user_" + id.String(), Name: "N", CreatedAt: storage.Micros(1e15)})
	}
	must.All(t, s.CreateUsers(ctx, users))
	var edges []storage.Edge
	for from := storage.UserID(1); from <= 40; from++ {
		for to := storage.UserID(1); to <= 20; to++ {
			if kind := storage.Following; from != to {
				if from == 3 && to == 4 {
					kind = storage.Blocking
				}
				if from != 4 || to != 3 {
					edges = append(edges, storage.Edge{From: from, To: to, Type: kind, UpdateTime: storage.Micros(1e9 + from)})
				}
			}
		}
	}
	must.All(t, s.Apply(ctx, storage.Forward, edges, storage.IfNewer))
	must.All(t, s.Apply(ctx, storage.Inverse, edges, storage.IfNewer))
	for _, from := range []storage.UserID{12, 21, 22} {
		for to := storage.UserID(30); to < 35; to++ {
			_, err := storagetest.Request(ctx, s, storage.Pair{From: from, To: to}, storage.EdgeChange{Type: storage.Pending, Message: "hello", At: 1e15}, someRequests)
			must.OK(t, err)
		}
	}
	special, remark := true, "r"
	for _, from := range []storage.UserID{1, 2, 3, 4, 5, 12} {
		_, _, err := s.SetMark(ctx, storage.Pair{From: from, To: 11}, storage.MarkChange{Special: &special, Remark: &remark})
		must.OK(t, err)
	}
	for id := storage.UserID(12); id < 16; id++ {
		_, err := s.SetState(ctx, id, storage.Deleting, 1e15)
		must.OK(t, err)
	}
	for shard := range s.db.All() {
		_, err := s.db.Shard(shard).Write.ExecContext(ctx, "UPDATE user_counts SET following_count = 77, follower_count = 78, friend_count = 79 WHERE user_id BETWEEN 16 AND 17")
		must.OK(t, err)
	}
	for _, owner := range []storage.UserID{2, 9, 12} {
		for _, side := range packedSides {
			mustPack(t, s, side, owner)
		}
	}
	must.OK(t, s.SaveCheckpoint(ctx, "c", []byte("v")))
	_, err := s.Lease(ctx, "k", "me", 3, 1, 2)
	must.OK(t, err)
	_, err = s.Secret(ctx, "p")
	must.OK(t, err)
}

var someRequests = storage.ChangeOptions{TTL: 1e6 * time.Hour, MaxPending: 10, MaxFollowing: 1000, Inverse: true}

type operation = func(context.Context, *Store) error

// asks reads some keys.
func asks[K, V any](kind *storage.LookupKind[K, V], keys ...K) operation {
	return func(ctx context.Context, s *Store) error { return errorOf(kind.Read(ctx, s, keys...)) }
}

// second and third are the errors of methods that return one behind other values.
func second[V any](_ V, err error) error { return err }

func third[V, W any](_ V, _ W, err error) error { return err }

func faultyReads() map[string]operation {
	ids := []storage.UserID{1, 2, 3}
	pairs := []storage.Pair{{From: 1, To: 2}, {From: 3, To: 5}, {From: 21, To: 30}, {From: 30, To: 21}, {From: 1, To: 11}}
	all := map[string]operation{
		"Users":             asks(storage.UserLookups, ids...),
		"UsersOfIdentities": asks(storage.IdentityLookups, identityOf(1), identityOf(2)),
		"IdentitiesOf":      asks(storage.LinkLookups, 1),
		"UserIDs":           asks(storage.HandleLookups, "user_1", "é"),
		"Counts":            asks(storage.CountLookups, ids...),
		"Marks":             asks(storage.MarkLookups, pairs...),
		"Messages":          asks(storage.MessageLookups, pairs...),
		"Specials":          asks(storage.SpecialLookups, ids...),
		"Blocks":            asks(storage.BlockLookups, ids...),
		"Profiles":          asks(storage.ProfileLookups, ids...),
		"StatesOf":          asks(storage.StateLookups, 12, 13, 14, 15),
		"Suspension":        asks(storage.StateLookups, 1),
		"ModerationLog":     asks(storage.ModerationLookups, storage.PlaceQuery{Limit: 5}),
		"Passwords":         asks(storage.PasswordLookups, ids...),
		"WithWord":          asks(finding.WordLookups, finding.WordQuery{Prefix: "user", Limit: 5}),
		"HaveWord":          asks(finding.UserWordLookups, finding.UserWord{Users: ids, Prefix: "user"}),
		"Popular":           asks(finding.PopularLookups, finding.PopularQuery{Since: 1, Limit: 5}),
		"StateChanges":      asks(storage.StateChangeLookups, storage.ShardQuery[storage.StateChange]{Limit: 5}, storage.ShardQuery[storage.StateChange]{Shard: 1, Limit: 5}),
		"UserIDsAfter":      asks(storage.UserIDLookups, storage.ShardQuery[storage.UserID]{Limit: 5}),
		"Empty":             func(ctx context.Context, s *Store) error { _, err := storage.IsEmpty(ctx, s); return err },
		"ReadLog":           func(ctx context.Context, s *Store) error { _, err := s.ReadLog(ctx, 0, 5, 5); return err },
		"ReadLog, at its end": func(ctx context.Context, s *Store) error {
			last, err := s.LastOfLog(ctx, 0)
			if err != nil {
				return err
			}
			_, err = s.ReadLog(ctx, 0, last, 5)
			return err
		},
		"LoadCheckpoint": func(ctx context.Context, s *Store) error { _, _, err := s.LoadCheckpoint(ctx, "c"); return err },
		"Holders":        func(ctx context.Context, s *Store) error { _, err := s.Holders(ctx, "k"); return err },
		"Secret":         func(ctx context.Context, s *Store) error { _, err := s.Secret(ctx, "p"); return err },
	}
	for _, side := range storage.Sides {
		all["Edges of "+side.String()] = asks(storage.EdgeLookups[side], pairs...)
		all["Neighbours of "+side.String()] = asks(storage.NeighbourLookups[side], 1, 21, 31)
		all["Pages of "+side.String()] = asks(storage.PageLookups[side], storage.PageQuery{Owner: 1, Limit: 3}, storage.PageQuery{Owner: 21, Limit: 3}, storage.PageQuery{Owner: 31, Limit: 3})
		all["AllRows of "+side.String()] = asks(storage.RowLookups, storage.RowsQuery{Side: side, Owner: 1, Limit: 3}, storage.RowsQuery{Side: side, Owner: 21, Limit: 3}, storage.RowsQuery{Side: side, Owner: 31, Limit: 3})
		all["CountEdges of "+side.String()] = asks(storage.EdgeCountLookups[side], storage.EdgeCountQuery{Owner: 1, Limit: 3}, storage.EdgeCountQuery{Owner: 2, Limit: 3})
		if side.Truth() != storage.Forward {
			continue
		}
		all["Lists of "+side.String()] = asks(storage.SnapshotLookups[side], storage.ListQuery{Owner: 1, Longest: 100}, storage.ListQuery{Owner: 2, Longest: 100})
		all["one Lists of "+side.String()] = func(ctx context.Context, s *Store) error {
			return s.listRow(ctx, side, s.shards.Of(1), storage.ListQuery{Owner: 1, Longest: 100}, func(storage.ListQuery, storage.List) {})
		}
		all["neighbours by row of "+side.String()] = func(ctx context.Context, s *Store) error {
			return second(s.neighboursByRow(ctx, s.shards.Of(1), side, 1))
		}
	}
	all["users with their counts"] = asks(storage.ProfileLookups, ids...)
	return all
}

func faultyScans() map[string]operation {
	owners := sides.OwnerRange{UpTo: 100}
	// onEach runs an operation on both shards, each of which has some of the rows that are looked for.
	onEach := func(one func(context.Context, *Store, int) error) operation {
		return func(ctx context.Context, s *Store) error { return errors.Join(one(ctx, s, 0), one(ctx, s, 1)) }
	}
	all := map[string]operation{
		"NextOwner": onEach(func(ctx context.Context, s *Store, shard int) error {
			return third(s.NextOwner(ctx, shard, 0, 1))
		}),
		"WrongFriends": onEach(func(ctx context.Context, s *Store, shard int) error {
			return second(s.WrongFriends(ctx, shard, owners))
		}),
		"ForbiddenFollows": onEach(func(ctx context.Context, s *Store, shard int) error {
			return second(s.ForbiddenFollows(ctx, shard, owners))
		}),
	}
	for _, side := range storage.Sides {
		all["OwnerOfRow of "+side.String()] = onEach(func(ctx context.Context, s *Store, shard int) error {
			return third(s.OwnerOfRow(ctx, side, shard, 0, 1))
		})
		all["Digests of "+side.String()] = onEach(func(ctx context.Context, s *Store, shard int) error {
			return second(s.Digests(ctx, side, shard, owners, sides.Cut{Parts: 1}, nil))
		})
		all["OwnerDigests of "+side.String()] = onEach(func(ctx context.Context, s *Store, shard int) error {
			return second(s.OwnerDigests(ctx, side, shard, owners))
		})
		all["GroupRows of "+side.String()] = onEach(func(ctx context.Context, s *Store, shard int) error {
			groups := make([]int, sides.Classes)
			for i := range groups {
				groups[i] = i
			}
			return s.GroupRows(ctx, side, shard, owners, sides.Cut{Parts: 1}, sides.Choose(sides.Classes, groups), func(storage.Edge) {})
		})
		if side.Truth() == storage.Forward {
			all["WrongCounts of "+side.String()] = onEach(func(ctx context.Context, s *Store, shard int) error {
				return second(s.WrongCounts(ctx, side, shard, owners))
			})
		}
	}
	return all
}

func faultyWrites() map[string]operation {
	apply := func(side storage.Side, n int) operation {
		return func(ctx context.Context, s *Store) error {
			owner := storage.UserID(1000 + 2*n)
			edges := slices.Concat(edgesFrom(side, owner, n, storage.Following), edgesFrom(side, owner+1, n-1, storage.None))
			if side.HasItem() {
				for i := range edges {
					edges[i].Item = int64(i + 1)
				}
			}
			return errorOf(s.Apply(ctx, side, edges, storage.IfNewer))
		}
	}
	change := func(kind storage.EdgeType, to ...storage.UserID) operation {
		return func(ctx context.Context, s *Store) error {
			var changes []storage.EdgeChange
			for _, id := range to {
				changes = append(changes, storage.EdgeChange{To: id, Type: kind, At: 2e15})
			}
			return errorOf(s.ChangeEdges(ctx, storage.Forward, 2, changes, storage.ChangeOptions{Inverse: true, MaxFollowing: 1000}))
		}
	}
	request := func(act storage.EdgeType, from, to storage.UserID) operation {
		return func(ctx context.Context, s *Store) error {
			_, err := storagetest.Request(ctx, s, storage.Pair{From: from, To: to}, storage.EdgeChange{Type: act, At: 2e15, Message: "m"}, someRequests)
			return err
		}
	}
	special, name := true, "B"
	all := map[string]operation{
		"CreateUsers": func(ctx context.Context, s *Store) error {
			return errorOf(s.CreateUsers(ctx, []storage.User{{ID: 101, Handle: "h101", Name: "N"}, {ID: 102, Handle: "h102", Name: "N"}}))
		},
		"Register": func(ctx context.Context, s *Store) error {
			return s.Register(ctx, storage.User{ID: 103, Handle: "h103", Name: "N", CreatedAt: 1e15}, "hash")
		},
		"Register, over a claim": func(ctx context.Context, s *Store) error {
			if err := s.Claim(ctx, "h104", 999, 0); err != nil {
				return err
			}
			return s.Register(ctx, storage.User{ID: 104, Handle: "h104", Name: "N", CreatedAt: 1e15}, "hash")
		},
		"LinkIdentity": func(ctx context.Context, s *Store) error { return s.LinkIdentity(ctx, identityOf(105), 105, 1e15) },
		"Restore, identities": func(ctx context.Context, s *Store) error {
			return errorOf(s.Restore(ctx, storage.Restored{Identities: []storage.LinkedIdentity{{Identity: identityOf(106), User: 106, At: 1}, {Identity: identityOf(107), User: 107, At: 1}}}))
		},
		"UnlinkIdentity": func(ctx context.Context, s *Store) error {
			if err := s.LinkIdentity(ctx, identityOf(108), 108, 1); err != nil {
				return err
			}
			return second(s.UnlinkIdentity(ctx, identityOf(108), 108))
		},
		"SetPassword": func(ctx context.Context, s *Store) error {
			return second(s.SetPassword(ctx, 13, storage.PasswordChange{New: "x", At: 1, EndsTokens: true}))
		},
		"UpdateProfile": func(ctx context.Context, s *Store) error {
			return third(s.UpdateProfile(ctx, 1, storage.ProfileChange{Name: &name}, 2e15))
		},
		"SetMark": func(ctx context.Context, s *Store) error {
			return third(s.SetMark(ctx, storage.Pair{From: 1, To: 5}, storage.MarkChange{Special: &special}))
		},
		"SetMark, of none": func(ctx context.Context, s *Store) error {
			special, remark := false, ""
			return third(s.SetMark(ctx, storage.Pair{From: 1, To: 11}, storage.MarkChange{Special: &special, Remark: &remark}))
		},
		"Restore, marks": func(ctx context.Context, s *Store) error {
			return errorOf(s.Restore(ctx, storage.Restored{Annotations: []storage.Annotation{
				{Pair: storage.Pair{From: 1, To: 6}, Special: true}, {Pair: storage.Pair{From: 1, To: 7}, Text: "x"},
			}, Kind: storage.AnnotationMark}))
		},
		"Restore, posts, comments": func(ctx context.Context, s *Store) error {
			row := func(n int64) storage.PostRow {
				return storage.PostRow{PostID: storage.PostID{Author: 1, Number: n}, Key: fmt.Sprint(n), Deleted: n == 71}
			}
			if err := errorOf(s.Restore(ctx, storage.Restored{Posts: []storage.PostRow{row(70), row(71), row(72)}})); err != nil {
				return err
			}
			below := func(n int64) storage.Comment {
				return storage.Comment{CommentID: storage.CommentID{Author: row(70).Author, Number: n}, Post: row(70).Number, By: 2, Key: fmt.Sprint(n)}
			}
			return errorOf(s.Restore(ctx, storage.Restored{Comments: []storage.Comment{below(80), below(81)}}))
		},
		"MarkActive": func(ctx context.Context, s *Store) error { return s.MarkActive(ctx, []storage.UserID{1, 2, 3}, 30_000) },
		"SetState":   func(ctx context.Context, s *Store) error { return second(s.SetState(ctx, 20, storage.Deleting, 2e15)) },
		"Moderate": func(ctx context.Context, s *Store) error {
			return third(s.Moderate(ctx, storage.ModerationEntry{Owner: 20, User: 20, Action: storage.Suspended, At: 1, Until: 2e15}))
		},
		"Restore, lists": func(ctx context.Context, s *Store) error {
			list := func(number int64) storage.UserList {
				return storage.UserList{ListID: storage.ListID{Owner: 20, Number: number}, Name: "x"}
			}
			return errorOf(s.Restore(ctx, storage.Restored{Lists: []storage.UserList{list(80), list(81)}}))
		},
		"Restore, moderation": func(ctx context.Context, s *Store) error {
			return errorOf(s.Restore(ctx, storage.Restored{Moderation: []storage.ModerationEntry{{Owner: 20, User: 20, Action: storage.Suspended, At: 1, Until: 2e15}, {Owner: 21, At: 1}}, At: 2e15}))
		},
		"Erase": func(ctx context.Context, s *Store) error { return s.Erase(ctx, 12, 2e15) },
		"EndEdges": func(ctx context.Context, s *Store) error {
			sides := []storage.Side{storage.Forward, storage.Inverse}
			listed := storage.RowLookups.Read(ctx, s, storage.RowsQuery{Side: sides[0], Owner: 37, Limit: 4}, storage.RowsQuery{Side: sides[1], Owner: 37, Limit: 4})
			if err := errorOf(listed); err != nil {
				return err
			}
			var rows []storage.Row
			for i, r := range listed {
				for _, e := range r.Value {
					rows = append(rows, storage.Row{Side: sides[i], Edge: e})
				}
			}
			return errorOf(s.EndEdges(ctx, 37, rows, 2e15))
		},
		"RepairInverse": func(ctx context.Context, s *Store) error {
			return errorOf(s.RepairInverse(ctx, []sides.Repair{{
				Pair:     storage.Pair{From: 1, To: 2},
				Observed: storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: 1e9 + 1},
				Want:     storage.Edge{From: 1, To: 2, Type: storage.None, UpdateTime: 2e9},
			}}))
		},
		"RecountFriends": func(ctx context.Context, s *Store) error {
			return errorOf(s.RecountFriends(ctx, []storage.UserID{16, 17}))
		},
		"Lease":            func(ctx context.Context, s *Store) error { _, err := s.Lease(ctx, "k", "you", 3, 1, 2); return err },
		"Lease, of fewer":  func(ctx context.Context, s *Store) error { _, err := s.Lease(ctx, "k", "me", 3, 1, 5); return err },
		"Release":          func(ctx context.Context, s *Store) error { return s.Release(ctx, "k", "me", 0) },
		"SaveCheckpoint":   func(ctx context.Context, s *Store) error { return s.SaveCheckpoint(ctx, "c", []byte("w")) },
		"DeleteCheckpoint": func(ctx context.Context, s *Store) error { return s.DeleteCheckpoint(ctx, "c") },
		"PruneLog":         func(ctx context.Context, s *Store) error { return s.PruneLog(ctx, 0, 3) },

		"three towards one": func(ctx context.Context, s *Store) error {
			var jobs []*edgeJob
			for _, from := range []storage.UserID{24, 25, 26} {
				if s.shards.Of(from) == s.shards.Of(27) {
					jobs = append(jobs, &edgeJob{user: from, change: storage.EdgeChange{To: 27, Type: storage.Following, At: 2e15}, options: storage.ChangeOptions{Inverse: true}})
				}
			}
			return s.transactFor(ctx, "change", 27, func(w *writer) error { return w.changeEdges(storage.Forward, true, jobs) })
		},

		"follow":         change(storage.Following, 21),
		"follow two":     change(storage.Following, 22, 23),
		"unfollow":       change(storage.None, 11),
		"unfollow two":   change(storage.None, 5, 6),
		"block":          change(storage.Blocking, 5),
		"block two":      change(storage.Blocking, 6, 7),
		"ask":            request(storage.Pending, 23, 36),
		"accept":         request(storage.Accepted, 21, 31),
		"decline":        request(storage.Declined, 21, 32),
		"end a friend":   request(storage.Removed, 5, 6),
		"ask each other": request(storage.Pending, 30, 21),
		"ask somebody on the shard who has no counts": func(ctx context.Context, s *Store) error {
			to := storage.UserID(2001)
			for s.shards.Of(to) != s.shards.Of(23) {
				to++
			}
			return request(storage.Pending, 23, to)(ctx, s)
		},
	}
	for _, side := range storage.AllSides {
		for _, n := range []int{1, 3, 70} {
			all[fmt.Sprintf("Apply %d to %s", n, side)] = apply(side, n)
		}
		if side.Truth() == storage.Forward {
			all["Recount "+side.String()] = func(ctx context.Context, s *Store) error {
				return errorOf(s.Recount(ctx, side, []storage.UserID{16, 17}))
			}
		}
	}
	return all
}
