package changes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"kith/replication/binlog"
	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sleep"
)

// A reader that keeps a copy of edges can tell whether it is right: it gets digests of what the tables hold, each of the edges of one kind of the
// users of one bucket in a range of ids, and of each of these users. They are computed while others write, so nobody knows of which place in the
// logs they are: of users of whom nothing was written between a place before and one after, they are the same. These come behind all that
// was written up to the later place, and the others do not come.

// Digests asks for them, once, of the edges among the other kinds, when all that was written before has been passed on.
const Digests Kind = "digests"

// ErrDigests: there is nothing that digests could be of.
var ErrDigests = errors.New("digests are of follows, requests and favorites: ask for some of these, too")

// digested are the tables that have digests. Relations are told by the names of their kinds, which the tables do not have.
var digested = []storage.Side{storage.Forward, storage.Requests, storage.Favorites}

func hasDigests(kinds []Kind) bool {
	return slices.ContainsFunc(digested, func(side storage.Side) bool { return slices.Contains(kinds, ofSides[side]) })
}

const (
	usersAtOnce = 20_000  // by one statement
	usersInAll  = 100_000 // by those of all shards at once, so that they are few in memory
	digestsLoad = 0.5     // the share of time in which such statements run
	mostTouched = 1 << 16

	lastUser storage.UserID = math.MaxInt64
)

// touched are users of whom something was written. nil: nobody wants to know.
type touched map[touch]bool

type touch struct {
	side storage.Side
	user storage.UserID
}

// take notes whose rows were written. More than [mostTouched] are as good as all.
func (t touched) take(rows []storage.Row) {
	for _, r := range rows {
		if t != nil && len(t) <= mostTouched && slices.Contains(digested, r.Side) {
			t[touch{r.Side, r.Edge.From}] = true
		}
	}
}

// cell is what a digest is of.
type cell struct {
	side   storage.Side
	owners sides.OwnerRange
	bucket int
	users  []digestOf // those who have edges, ascending
}

type digestOf struct {
	user storage.UserID
	sides.Digest
}

// prove passes on the digests of all users.
func (s *stream) prove(ctx context.Context) error {
	for upTo := []storage.UserID(nil); ; {
		upTo = append(upTo, make([]storage.UserID, s.Store.Shards()-len(upTo))...)
		if !slices.ContainsFunc(upTo, func(id storage.UserID) bool { return id < lastUser }) {
			return nil
		}
		s.touched = make(touched)
		if !s.Store.HasLog() { // what is in a binlog may be read a moment later
			if err := sleep.For(ctx, binlog.AllVisible); err != nil {
				return err
			}
		}
		cells, err := s.digests(ctx, upTo)
		if err == nil {
			err = s.round(ctx, true)
		}
		if err == nil {
			err = s.giveDigests(cells)
		}
		if s.touched = nil; err != nil {
			return err
		}
	}
}

// digests reads those of the next users of each shard, and moves upTo, the last of each that has been looked at.
func (s *stream) digests(ctx context.Context, upTo []storage.UserID) (all []cell, err error) {
	var reading sync.WaitGroup
	cells, errs := make([][]cell, len(upTo)), make([]error, len(upTo))
	for shard := range upTo {
		reading.Go(func() {
			for users, pause := max(1, min(usersAtOnce, usersInAll/len(upTo))), firstPause; upTo[shard] < lastUser; users, pause = max(1, users/4), min(2*pause, longPause) {
				owners := sides.OwnerRange{After: upTo[shard]}
				if cells[shard], errs[shard] = s.digestsOf(ctx, shard, &owners, users); errs[shard] == nil {
					upTo[shard] = owners.UpTo
					return
				}
				if sleep.For(ctx, pause) != nil {
					return
				}
				s.Logger.WarnContext(ctx, "digests were interrupted: trying again with fewer users", "shard", shard, "error", errs[shard])
			}
		})
	}
	reading.Wait()
	return slices.Concat(cells...), errors.Join(errs...)
}

// digestsOf reads those of a number of users of a shard. If buckets move meanwhile, there are none.
func (s *stream) digestsOf(ctx context.Context, shard int, owners *sides.OwnerRange, users int) (cells []cell, err error) {
	before, err := s.Store.Served(ctx, shard)
	if err != nil {
		return nil, err
	}
	last, more, err := s.Store.NextOwner(ctx, shard, owners.After, users)
	if owners.UpTo = last; !more {
		owners.UpTo = lastUser // also edges of those who are no users
	}
	if before.Others {
		owners.Buckets = before.Buckets
	}
	for _, side := range digested {
		if err != nil || !s.kinds[ofSides[side]] {
			continue
		}
		err = sleep.Throttle{Load: digestsLoad}.Do(ctx, func() error {
			digests, err := s.Store.OwnerDigests(ctx, side, shard, *owners)
			var users [storage.Buckets][]digestOf
			for _, user := range slices.Sorted(maps.Keys(digests)) {
				bucket := user.Bucket()
				users[bucket] = append(users[bucket], digestOf{user, digests[user]})
			}
			for bucket := range storage.Buckets {
				if before.Buckets.Has(bucket) {
					cells = append(cells, cell{side, *owners, bucket, users[bucket]})
				}
			}
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	after, err := s.Store.Served(ctx, shard)
	if after.Epoch != before.Epoch {
		cells = nil
	}
	return cells, err
}

// giveDigests passes on those beside which nothing was written. Everything that was written before them has been passed on.
func (s *stream) giveDigests(cells []cell) error {
	if len(s.touched) > mostTouched {
		return nil
	}
	type list struct {
		side   storage.Side
		bucket int
	}
	written := make(map[list][]storage.UserID)
	for t := range s.touched {
		at := list{t.side, t.user.Bucket()}
		written[at] = append(written[at], t.user)
	}
	cells = slices.DeleteFunc(cells, func(c cell) bool {
		return slices.ContainsFunc(written[list{c.side, c.bucket}], func(id storage.UserID) bool { return c.owners.After < id && id <= c.owners.UpTo })
	})
	text, err := s.at.text()
	if err != nil {
		return err
	}
	for i, c := range cells {
		e := c.event()
		e.Source, e.ID = "/kith/"+s.Store.UUID(), nameOf(text)+"/"+e.Subject
		if i == len(cells)-1 {
			e.Cursor = text
		}
		if err := s.pass(e); err != nil {
			return err
		}
	}
	return nil
}

// event is the digest as readers get it.
func (c cell) event() Event {
	var all sides.Digest
	users := make([]string, len(c.users))
	for i, u := range c.users {
		all, users[i] = all.Plus(u.Digest), fmt.Sprintf("%d:%016x", u.user, u.Mixed)
	}
	kind, bucket, after, upTo := string(ofSides[c.side]), strconv.Itoa(c.bucket), c.owners.After.String(), c.owners.UpTo.String()
	data := map[string]string{
		"kind": kind, "bucket": bucket, "after": after, "up_to": upTo, "rows": strconv.FormatInt(all.Rows, 10), "digest": fmt.Sprintf("%016x", all.Mixed),
	}
	if len(users) > 0 {
		data["users"] = strings.Join(users, " ")
	}
	return Event{
		SpecVersion: "1.0", Type: "kith." + string(Digests), Subject: kind + "/" + bucket + "/" + after + "-" + upTo, DataContentType: "application/json", Data: data,
	}
}
