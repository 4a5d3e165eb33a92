package reconcile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sides"
)

// The largest possible state fits into its column (MEDIUMBLOB), with as many walks as there are
// buckets.
func TestTheLargestStateFitsIntoItsColumn(t *testing.T) {
	const column = 1<<24 - 1
	r := rand.New(rand.NewPCG(1, 2))
	f := &full{cfg: FullConfig{Repair: true}.withDefaults()}
	f.state = f.newState()
	s := &f.state
	s.Fine = newSummary(127, storage.Indexes(sides.Classes))
	id := func() storage.UserID { return storage.UserID(1<<62 + r.Int64N(1<<62)) }
	walks := func() []walk {
		list := make([]walk, storage.Buckets)
		for i := range list {
			list[i] = walk{i, []storage.BucketRange{{First: i, Last: i}}, id()}
		}
		return list
	}
	for _, summary := range []*summary{&s.Coarse, &s.Fine} {
		for i := range summary.Sums {
			summary.Sums[i] = sum{[2]int64{1e9 + r.Int64N(1e9), 1e9 + r.Int64N(1e9)}, 1<<63 | r.Uint64()}
		}
		for side := range 2 {
			summary.Digested[side] = walks()
		}
	}
	s.Follows = walks()
	for which := range s.Counted {
		s.Counted[which] = walks()
	}
	for range 2 * unsettledAtOnce {
		s.Unsettled = append(s.Unsettled, Key{storage.Requests, storage.Pair{From: id(), To: id(), Item: int64(id())}})
	}
	for len(s.Explained) < mostExplained {
		s.Explained[count{ofPosts, storage.PostID{Author: id(), Number: int64(id())}}] = math.MinInt32
	}
	for range mostListed {
		e := storage.Edge{From: id(), To: id(), Item: int64(id()), Type: storage.Following, UpdateTime: storage.Micros(id())}
		s.Report.Findings = append(s.Report.Findings, Finding{Kind: WrongCount, Side: storage.Requests, Friends: true, Forward: e, Inverse: e, User: id(), Post: int64(id()), Have: int64(id()), Are: int64(id())})
	}
	value, err := s.encode()
	must.OK(t, err)
	t.Logf("%d bytes", len(value))
	check.Most(t, "the bytes of the state", len(value), column)
}

// A finer summary has no more sums than fit, whatever differs, and is as fine as requested where that is
// possible.
func TestAFinerSummaryIsBounded(t *testing.T) {
	for _, differ := range []int{1, 100, sides.Classes} {
		for _, rows := range []int64{100, 1e3, 1e6, 1e12} {
			coarse := newSummary(1, storage.Indexes(sides.Classes))
			for i := range differ {
				coarse.Sums[i*sides.Classes/differ] = sum{Rows: [2]int64{rows, rows}, Mixed: 1}
			}
			fine, better := coarse.finer(200)
			check.Equal(t, fmt.Sprintf("whether it is finer, %d classes of %d rows", differ, rows), better, rows > 200)
			if !better {
				continue
			}
			check.That(t, len(fine.Sums) <= mostSums && len(fine.Classes) == differ, "%d classes of %d rows: %d sums of %d classes", differ, rows, len(fine.Sums), len(fine.Classes))
			parts := fine.Cut.Parts
			check.That(t, (rows != 1e3 || parts == 7) && (rows != 1e12 || differ != 1 || parts == 1009), "%d classes of %d rows: %d parts", differ, rows, parts)
			for i := range fine.Sums {
				must.Equal(t, "where a group is", fine.indexOf(fine.groupAt(i)), i)
			}
		}
	}
}
