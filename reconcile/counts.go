package reconcile

import (
	"context"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/sides"
)

// The counts of a user, in the order in which they are compared. Friends come first: a user without
// a row of counts gets one when its other counts are repaired.
const (
	friends = iota
	followings
	followers
	favorites // given by the user
	favorited // how often the user's posts have been
	ofPosts   // favorites of each of the user's posts
	outgoing  // relations of each kind that leave the user
	incoming  // relations of each kind that enter the user
	counts
)

// countedBy are the tables whose rows are counted; friends are in following, too.
var countedBy = [counts]storage.Side{
	storage.Forward, storage.Forward, storage.Inverse, storage.Favorites, storage.FavoriteInbox, storage.FavoriteInbox,
	storage.Relations, storage.RelationInbox,
}

// countsAtOnce is how many suspected counts are read again together.
const countsAtOnce = 1000

// count compares one of the counts of a walk's users with their rows.
func (f *full) count(ctx context.Context, which int, w *walk) error {
	var wrong, suspects []sides.WrongCount
	read := func(r sides.OwnerRange) (err error) {
		wrong, err = f.wrong(ctx, which, w.Shard, r)
		return err
	}
	took := func(upTo storage.UserID) error {
		suspects = append(suspects, wrong...)
		if 0 < len(suspects) && len(suspects) < countsAtOnce && upTo < lastOwner {
			return nil // one wait for many
		}
		c, settled, err := f.confirmCounts(ctx, which, suspects)
		if err == nil && len(suspects) > 0 { // their rows may have been removed
			_, err = f.holds(ctx, w)
		}
		if err == nil {
			err = f.recount(ctx, which, w.Shard, settled, &c)
		}
		if err != nil {
			return err
		}
		n := len(suspects)
		suspects = nil
		f.commit(ctx, func(s *state) {
			s.take(c, f.cfg.List)
			s.Report.Bytes += int64(n) * countBytes
			w.UpTo = upTo
		})
		return nil
	}
	return f.goOn(ctx, countedBy[which], w, read, took)
}

func (f *full) wrong(ctx context.Context, which, shard int, r sides.OwnerRange) ([]sides.WrongCount, error) {
	switch which {
	case friends:
		return f.cfg.Store.WrongFriends(ctx, shard, r)
	case ofPosts, outgoing, incoming:
		return f.cfg.Store.WrongItemCounts(ctx, countedBy[which], shard, r)
	}
	return f.cfg.Store.WrongCounts(ctx, countedBy[which], shard, r)
}

// confirmCounts reads suspected counts twice, the second time after the window, and keeps those
// that are wrong by the same number at both readings.
//
// It returns the wrong counts, and those of them that are findings. A count that will be right once
// the edges are is not a finding: if a user has lost a row and still counts it, there is one
// disagreement, which is that row's.
func (f *full) confirmCounts(ctx context.Context, which int, suspects []sides.WrongCount) (c confirmed, settled []sides.WrongCount, err error) {
	type wrongBy struct {
		of  count
		off int64
	}
	key := func(w sides.WrongCount) wrongBy { return wrongBy{keyOfCount(which, w), w.Have - w.Are} }
	settled, changing, err := twice(ctx, f.cfg.Window, suspects, key, func(list []sides.WrongCount) ([]sides.WrongCount, error) {
		return f.wrongCounts(ctx, which, list)
	})
	c.unsettled = len(changing)
	for _, w := range settled {
		if w.Have-w.Are != f.state.Explained[keyOfCount(which, w)] {
			c.found = append(c.found, Finding{Kind: WrongCount, Side: countedBy[which], Friends: which == friends, User: w.User, Post: w.Item, Have: w.Have, Are: w.Are})
		}
	}
	return c, settled, err
}

func keyOfCount(which int, w sides.WrongCount) count {
	return count{which, storage.PostID{Author: w.User, Number: w.Item}}
}

// wrongCounts reads counts again, where their users are now.
func (f *full) wrongCounts(ctx context.Context, which int, suspects []sides.WrongCount) ([]sides.WrongCount, error) {
	var wrong []sides.WrongCount
	seen := make(map[storage.UserID]bool)
	for _, w := range suspects {
		if seen[w.User] { // another item of the same
			continue
		}
		seen[w.User] = true
		shard := f.cfg.Store.ShardOf(w.User)
		err := f.again(ctx, shard, func() error {
			now, err := f.wrong(ctx, which, shard, sides.OwnerRange{After: w.User - 1, UpTo: w.User})
			if err == nil {
				wrong = append(wrong, now...)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return wrong, nil
}

// recount repairs counts, including those that are wrong because of edges, unless the scan is a dry
// run.
func (f *full) recount(ctx context.Context, which, shard int, wrong []sides.WrongCount, c *confirmed) error {
	if !f.cfg.Repair || len(wrong) == 0 {
		return nil
	}
	for chunk := range slices.Chunk(wrong, 100) {
		users, items := make([]storage.UserID, len(chunk)), make([]storage.PostID, len(chunk))
		for i, w := range chunk {
			users[i], items[i] = w.User, keyOfCount(which, w).Of
		}
		err := f.again(ctx, shard, func() error {
			switch which {
			case friends:
			case ofPosts, outgoing, incoming:
				return recounted("items of "+countedBy[which].String(), users, f.cfg.Store.RecountItems(ctx, countedBy[which], items))
			default:
				if err := recounted(countedBy[which].String(), users, f.cfg.Store.Recount(ctx, countedBy[which], users)); err != nil {
					return err
				}
			}
			if countedBy[which].Truth() != storage.Forward {
				return nil
			}
			return recounted("friends", users, f.cfg.Store.RecountFriends(ctx, users))
		})
		if err != nil {
			return err
		}
	}
	still, err := f.wrongCounts(ctx, which, wrong)
	if err != nil {
		return err
	}
	c.repaired = map[Kind]int{WrongCount: len(c.found)}
	for _, w := range still {
		if slices.ContainsFunc(c.found, func(d Finding) bool { return d.User == w.User && d.Post == w.Item }) {
			c.repaired[WrongCount]--
		}
	}
	return nil
}

func recounted(what string, users []storage.UserID, results []storage.Result[bool]) error {
	for i, r := range results {
		if r.Err != nil {
			return fmt.Errorf("recount %s of user %d: %w", what, users[i], r.Err)
		}
	}
	return nil
}

// A count is one of the counts of a user or, if Of has a number, of a post or a kind.
type count struct {
	Which int
	Of    storage.PostID
}

func countOf(which int, user storage.UserID) count {
	return count{which, storage.PostID{Author: user}}
}

// explain computes by how much counts are off because rows of follower, favorite_inbox or relation_inbox are
// wrong: counts are updated by writes, and they are compared with these rows. A row that is missing or superfluous also
// removes or adds a friend if its owner follows back.
func (f *full) explain(ctx context.Context, found []Finding) (map[count]int64, error) {
	off := make(map[count]int64)
	var back []Key
	var diffs []int64
	var posts []storage.PostID
	for _, d := range found {
		diff := counted(d.Forward) - counted(d.Inverse)
		switch {
		case diff == 0:
		case d.Side == storage.Forward:
			off[countOf(followers, d.Forward.To)] += diff
			back, diffs = append(back, Key{storage.Forward, reversed(d.Pair())}), append(diffs, diff)
		case d.Side == storage.Favorites:
			of := count{ofPosts, d.Pair().PostID()}
			if _, known := off[of]; !known {
				posts = append(posts, of.Of)
			}
			off[of] += diff
		case d.Side == storage.Relations:
			off[count{incoming, storage.PostID{Author: d.Forward.To, Number: d.Forward.Item}}] += diff
		}
	}
	err := whileAway(ctx, func() error {
		rows := readRows(ctx, f.store, back, storage.Side.Truth)
		if err := errorOf(rows); err != nil {
			return err
		}
		for i, r := range rows {
			off[countOf(friends, back[i].Pair.From)] += diffs[i] * counted(r.Value)
		}
		return nil
	})
	if err != nil || len(posts) == 0 {
		return off, err
	}
	return off, whileAway(ctx, func() error {
		results := storage.PostLookups.Read(ctx, f.cfg.Store, posts...)
		if err := errorOf(results); err != nil {
			return err
		}
		for i, r := range results {
			if r.Found { // a post that has been deleted counts no longer for its author
				off[countOf(favorited, posts[i].Author)] += off[count{ofPosts, posts[i]}]
			}
		}
		return nil
	})
}

// errorOf is the first error of results.
func errorOf[T any](results []storage.Result[T]) error {
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// counted is what an edge adds to a count.
func counted(e storage.Edge) int64 {
	if e.Type == storage.Following {
		return 1
	}
	return 0
}
