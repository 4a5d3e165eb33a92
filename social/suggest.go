package social

import (
	"context"
	"fmt"

	"kith/storage"
	"kith/storage/finding"
)

// SuggestionMark is where a list of suggestions continues: in the pool of followings
// that starts behind Pool, with candidates that rank behind (Score, ID). Its zero
// value is the beginning.
type SuggestionMark struct {
	Pool  storage.Position
	Score int64 // of the last suggestion; 0: at the pool's best candidate
	ID    storage.UserID

	// Popular reports that the list is for a user without followings.
	Popular bool
}

// Suggestion is a user whom another may want to follow.
type Suggestion struct {
	ID     storage.UserID
	Shared int              // how many of the user's followings follow the candidate
	Score  int64            // the sort key: Shared, a share of [ScoreUnit], or how popular a popular user is
	Via    []storage.UserID // some of the followings, by ascending id

	// FollowsUser reports that the candidate follows the user. It is looked up for [SuggestionQuery].Best only.
	FollowsUser bool
}

// Pinned reports whether the user is suggested because the operators have pinned it.
func (s Suggestion) Pinned() bool { return s.Score > pinned }

// Suggestions is a page of suggestions, best first.
type Suggestions struct {
	Suggestions []Suggestion

	// Complete is false if the budget ended before all followings were asked; Next of the last
	// suggestion then leads to the remaining followings, and a user who was suggested already may
	// be suggested again.
	Complete bool
	More     bool
	Next     SuggestionMark

	// Popular reports that the user follows nobody: the suggestions are the pinned users and then
	// the most followed of the recently active users, whose Score is the number of their followers.
	Popular bool

	Excluded Exclusions
}

// Exclusions is how many candidates were left out of a page's pool, by reason. Each is counted
// once, by the first reason that applies.
type Exclusions struct{ Followed, Blocked, Dismissed int }

// SuggestionQuery asks for suggestions to a user.
type SuggestionQuery struct {
	User  storage.UserID
	From  SuggestionMark
	First int
	Via   int // how many of each suggestion's recommenders are wanted

	// Best asks for the order of the walk (see suggestbest.go) instead of that of Shared.
	Best bool
	// OpenFollowers reports that the user's followers are open to the audience: those among the
	// candidates come earlier in the best order.
	OpenFollowers bool
	// Active reports which users are known to be active; nil: of nobody. It is asked for Best only.
	Active func(context.Context, []storage.UserID) []bool

	// Dismissed are never suggested, nor are those who are muted, or asked already, who are not counted. All ascend.
	Dismissed, Muted, Asked []storage.UserID
	// Popular lists the suggestions for a user without followings, most followed first;
	// nil: nobody.
	Popular func(context.Context) ([]finding.PopularUser, error)
}

// Suggest ranks the users whom a user's followings follow by how many of these do, ties by smaller id (seeds: query 6 of the user
// relations, friends of friends). It leaves out the user, users it follows already, users who are hidden from the audience or
// dismissed, and users who do not want to be suggested. If the audience is the user itself, it also leaves out locked users whom it
// has asked to follow. It returns the first ones behind a mark, each with some of the followings that recommend it. In the order
// Best it ranks users by the walk over a shared audience.
//
// It uses the newest followings whose lists together fit the budget, and only those whose lists are
// open to the audience.
func (g *Graph) Suggest(ctx context.Context, q SuggestionQuery) (_ Suggestions, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("suggest to user %s: %w", q.User, err)
		}
	}()
	if q.From.Popular {
		return g.suggestPopular(ctx, q)
	}
	p, err := g.poolOf(ctx, q)
	if err != nil {
		return Suggestions{}, err
	}
	if p.empty && q.From == (SuggestionMark{}) {
		return g.suggestPopular(ctx, q)
	}
	candidateFilter := &candidateFilter{graph: g, user: q.User, pool: p}
	scores, err := g.scoresOf(ctx, q, p)
	if err != nil {
		return Suggestions{}, err
	}
	out := Suggestions{Complete: p.last, Next: q.From}
	best := candidateFilter.best
	if q.Best {
		best = candidateFilter.activeFirst(q)
	}
	ranked, err := best(ctx, scores, q.First+1)
	if err != nil {
		return Suggestions{}, err
	}
	out.Excluded = scores.out
	out.Excluded.Followed += candidateFilter.followedOutside
	out.take(ranked, q)
	if !out.More && !p.last {
		out.More, out.Next = true, SuggestionMark{Pool: p.end}
	}
	scores.via(out.Suggestions, q.Via)
	return out, nil
}
