package social

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/idset"
)

// failing is a store: the first reads succeed, and then some fail. Reads of users do not fail: a user whose row
// cannot be read stays in an answer.
type failing struct {
	storage.Answerer
	good, bad int // how many reads succeed, and then fail
	reads     int
}

var errRead = errors.New("the shard does not answer")

// fails counts a read.
func (f *failing) fails() bool {
	f.reads++
	return f.reads > f.good && f.reads <= f.good+f.bad
}

// Bundle implements [storage.Answerer]. A bundle of [Graph] has one kind.
func (f *failing) Bundle(ctx context.Context, b *storage.Bundle) {
	users, sets, recommenders := storage.UserLookups.In(b), idset.ListLookups[0].In(b) != nil || idset.ListLookups[1].In(b) != nil, idset.RecommenderLookups.In(b)
	if users == nil && !sets && recommenders == nil && f.fails() {
		b.Fail(errRead)
		return
	}
	f.Answerer.Bundle(ctx, b)
}

// If the counts cannot be read, it is unknown whether an answer fits the budget.
func TestFitsFailsWithItsRead(t *testing.T) {
	f := &failing{Answerer: oracle.New(), bad: 1}
	_, fits, err := New(f, 0, nil).Fits(t.Context(), Friends(1))
	check.That(t, !fits && errors.Is(err, errRead), "fits: %t, %v", fits, err)
}

// Suggestions fail if one of their reads fails, even if the next read would succeed.
func TestSuggestionsFailWithOneRead(t *testing.T) {
	store := oracle.New()
	var edges []storage.Edge
	for to := storage.UserID(2); to < 8; to++ {
		edges = append(edges, storage.Edge{From: 1, To: to, Type: storage.Following, UpdateTime: storage.Micros(to)})
		for candidate := storage.UserID(100); candidate < 130; candidate++ {
			edges = append(edges, storage.Edge{From: to, To: candidate, Type: storage.Following, UpdateTime: 1})
		}
	}
	store.Apply(t.Context(), storage.Forward, edges, storage.IfNewer)
	for good := 0; ; good++ {
		f := &failing{Answerer: store, good: good, bad: 1}
		g := New(f, 0, nil)
		g.sizes.maxPool = 3 // whether the viewer follows a candidate is not known from the pool
		_, err := g.Suggest(t.Context(), SuggestionQuery{User: 1, First: 5})
		if f.reads <= good {
			break
		}
		check.Is(t, fmt.Sprintf("read %d", good+1), err, errRead)
	}
}

// If something could not be read for an answer, the answer is an error, and never a shorter answer. That holds if
// one read fails, and if all later reads fail.
func TestAnswersFailWithTheirReads(t *testing.T) {
	properties.Check(t, 100, func(t *rapid.T) {
		store := drawGraph(t)
		drawPeople(t, store)
		planner := drawPlanner(t, store)
		good := rapid.IntRange(0, 6).Draw(t, "reads that do not fail")
		bad := rapid.SampledFrom([]int{1, math.MaxInt32}).Draw(t, "reads that fail then")
		first := rapid.IntRange(0, 5).Draw(t, "first")
		suggest := SuggestionQuery{User: storage.UserID(rapid.IntRange(1, people).Draw(t, "user")), Via: 2}
		none := func(List) bool { return false }
		for _, q := range questions(drawList(t, "a"), drawList(t, "b"), drawList(t, "c"), drawFilter(t, 2), none, suggest) {
			f := &failing{Answerer: store, good: good, bad: bad}
			answer, _, err := q.page(t.Context(), readBy(planner, f), nil, first)
			if sizes, ok := answer.([]storage.Result[Size]); ok { // each has its own error
				for _, s := range sizes {
					err = errors.Join(err, s.Err)
				}
			}
			must.That(t, (f.reads > good) == errors.Is(err, errRead), "%s: %d reads, of which the first %d did not fail, and then %d did: %+v, %v", q.name, f.reads, good, bad, answer, err)
		}
	})
}

// A list that a filter names twice, and of which a range is also read, is read once. So an error of that read is the
// error of the answer.
func TestAListThatIsNamedTwiceIsReadOnce(t *testing.T) {
	store := oracle.New()
	var edges []storage.Edge
	for to := storage.UserID(100); to < 110; to++ {
		edges = append(edges, storage.Edge{From: 1, To: to, Type: storage.Following, UpdateTime: 1})
	}
	store.Apply(t.Context(), storage.Forward, edges, storage.IfNewer)
	one := Filter{On: []List{{storage.Forward, 1}}}
	query := PeopleQuery{Filter: Filter{Any: []Filter{one, one}}, First: 3}
	for good, reads := 0, 2; good < 3; good++ {
		f := &failing{Answerer: store, good: good, bad: 1}
		g := New(f, 4, nil)
		g.sizes.firstLook, g.sizes.packedFrom = 1, 1000
		page, err := g.People(t.Context(), query)
		hasFailed := good < reads
		check.That(t, hasFailed == errors.Is(err, errRead) && (hasFailed || len(page.IDs) > 0 && f.reads == reads), "read %d fails: %d reads, %+v, %v", good+1, f.reads, page, err)
	}
}
