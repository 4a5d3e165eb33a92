package social

import (
	"context"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/properties"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// failing is a store: the first reads succeed, and then some fail. Reads of users do not fail: a user whose row
// cannot be read stays in an answer.
type failing struct {
	Reader
	good, bad int // how many reads succeed, and then fail
	reads     int
}

var errRead = errors.New("the shard does not answer")

// fails counts a read of so many keys. A read of no keys is not counted.
func (f *failing) fails(keys int) bool {
	if keys > 0 {
		f.reads++
	}
	return keys > 0 && f.reads > f.good && f.reads <= f.good+f.bad
}

func failed[V any](n int) []storage.Result[V] {
	results := make([]storage.Result[V], n)
	for i := range results {
		results[i].Err = errRead
	}
	return results
}

func (f *failing) Counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	if f.fails(len(ids)) {
		return failed[storage.Counts](len(ids))
	}
	return f.Reader.Counts(ctx, ids)
}

func (f *failing) Profiles(ctx context.Context, ids []storage.UserID) ([]*storage.Profile, error) {
	if f.fails(len(ids)) {
		return nil, errRead
	}
	return f.Reader.Profiles(ctx, ids)
}

func (f *failing) Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	if f.fails(len(pairs)) {
		return failed[storage.Edge](len(pairs))
	}
	return f.Reader.Edges(ctx, side, pairs)
}

func (f *failing) Pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	if f.fails(len(queries)) {
		return failed[[]storage.Edge](len(queries))
	}
	return f.Reader.Pages(ctx, side, queries)
}

func (f *failing) AllRows(ctx context.Context, queries []storage.RowsQuery) []storage.Result[[]storage.Edge] {
	if f.fails(len(queries)) {
		return failed[[]storage.Edge](len(queries))
	}
	return f.Reader.AllRows(ctx, queries)
}

func (f *failing) Neighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	if f.fails(len(owners)) {
		return failed[[]storage.UserID](len(owners))
	}
	return f.Reader.Neighbours(ctx, side, owners)
}

func (f *failing) PackedNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	if f.fails(len(owners)) {
		return failed[[]storage.UserID](len(owners))
	}
	return f.Reader.PackedNeighbours(ctx, side, owners)
}

// If the counts cannot be read, it is unknown whether an answer fits the budget.
func TestFitsFailsWithItsRead(t *testing.T) {
	f := &failing{Reader: onRows{oracle.New()}, bad: 1}
	if _, fits, err := New(f, 0, nil).Fits(t.Context(), Friends(1)); fits || !errors.Is(err, errRead) {
		t.Errorf("fits: %t, %v", fits, err)
	}
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
		f := &failing{Reader: onRows{store}, good: good, bad: 1}
		g := New(f, 0, nil)
		g.sizes.maxPool = 3 // whether the viewer follows a candidate is not known from the pool
		_, err := g.Suggest(t.Context(), SuggestionQuery{User: 1, First: 5})
		if f.reads <= good {
			break
		}
		if !errors.Is(err, errRead) {
			t.Errorf("read %d fails: %v", good+1, err)
		}
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
			f := &failing{Reader: onRows{store}, good: good, bad: bad}
			answer, _, err := q.page(t.Context(), readBy(planner, f), nil, first)
			if sizes, ok := answer.([]storage.Result[Size]); ok { // each has its own error
				for _, s := range sizes {
					err = errors.Join(err, s.Err)
				}
			}
			if hasFailed := f.reads > good; hasFailed != errors.Is(err, errRead) {
				t.Fatalf("%s: %d reads, of which the first %d did not fail, and then %d did: %+v, %v", q.name, f.reads, good, bad, answer, err)
			}
		}
	})
}
