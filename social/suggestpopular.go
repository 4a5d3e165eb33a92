package social

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"kith/graph/why"
	"kith/storage"
	"kith/storage/finding"
)

// suggestPopular is the cold start: suggestions for a user who follows nobody, for whom
// there are no friends of friends. It goes through the users whom the operators have
// pinned, and then the most followed among the recently active.
func (g *Graph) suggestPopular(ctx context.Context, q SuggestionQuery) (Suggestions, error) {
	out := Suggestions{Complete: true, Popular: true, Next: q.From}
	if q.Popular == nil {
		return out, nil
	}
	popular, err := q.Popular(ctx)
	if err != nil {
		return Suggestions{}, err
	}
	s := &candidateFilter{graph: g, user: q.User, pool: pool{whole: q.From == (SuggestionMark{})}} // later pages look once more: the user may follow some of them by now
	behind := Suggestion{ID: q.From.ID, Score: q.From.Score}
	var candidates ranking
	for _, p := range popular {
		c := Suggestion{ID: p.User, Score: p.Followers}
		switch {
		case p.User == q.User:
		case g.audience.notice(g.audience.InBlock(p.User), why.Block, p.User):
			out.Excluded.Blocked++
		case g.audience.Hides(p.User):
		case g.audience.notice(has(q.Dismissed, p.User), why.NotSuggested, p.User):
			out.Excluded.Dismissed++
		case g.audience.notice(has(q.Muted, p.User), why.Mute, p.User):
		case g.audience.notice(has(q.Asked, p.User), why.NotSuggested, p.User):
		case q.From.ID == 0 || better(c, behind) > 0:
			candidates = append(candidates, c)
		}
	}
	ranked, err := s.keep(ctx, candidates, q.First+1)
	if err != nil {
		return Suggestions{}, err
	}
	out.Excluded.Followed = s.followedOutside
	out.take(ranked, q)
	return out, nil
}

// How Popular looks.
const (
	popularFor   = time.Minute // an answer is kept: asking every shard takes some 10 ms
	popularDays  = 30          // a user who was active in these counts as recently active
	popularUsers = 1000
	popularReads = 10 * time.Second // how long a read may take

	// MaxPinned is how many users may be pinned.
	MaxPinned = 100
	// pinned is above the scores of all users who are not pinned: more than there are users.
	pinned = 1 << 40
)

// Popular reads the popular users for all requests of a gateway, and keeps them for a
// minute.
type Popular struct {
	store  storage.Answerer
	pinned func() []storage.UserID
	now    func() time.Time

	reading singleflight.Group // by the pinned users
	kept    atomic.Pointer[popularAnswer]
}

type popularAnswer struct {
	users []finding.PopularUser // the first of them are those of first that exist
	first []storage.UserID
	until time.Time
}

// NewPopular makes a source. now is the clock; pinned are asked for at each call, and come before all others, in their
// order, whether they are active and followed or not; nil for none.
func NewPopular(store storage.Answerer, now func() time.Time, pinned func() []storage.UserID) *Popular {
	if pinned == nil {
		pinned = func() []storage.UserID { return nil }
	}
	return &Popular{store: store, pinned: pinned, now: now}
}

// Users lists the pinned users, and then the most followed among the recently active,
// most followed first. Calls during a read wait for its result, or until their contexts end.
func (p *Popular) Users(ctx context.Context) ([]finding.PopularUser, error) {
	now, first := p.now(), p.pinned()
	if kept := p.kept.Load(); kept != nil && now.Before(kept.until) && slices.Equal(first, kept.first) {
		return kept.users, nil
	}
	read := p.reading.DoChan(fmt.Sprint(first), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), popularReads) // not the context of the first caller: others may be waiting
		defer cancel()
		users, err := p.read(ctx, now, first)
		if err == nil {
			p.kept.Store(&popularAnswer{users, first, now.Add(popularFor)})
		}
		return users, err
	})
	defer storage.Wait(ctx)()
	select {
	case r := <-read:
		if r.Err != nil {
			return nil, fmt.Errorf("read who is popular: %w", r.Err)
		}
		return r.Val.([]finding.PopularUser), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("read who is popular: %w", ctx.Err())
	}
}

func (p *Popular) read(ctx context.Context, now time.Time, first []storage.UserID) ([]finding.PopularUser, error) {
	var users []finding.PopularUser
	for i, r := range storage.UserLookups.Read(ctx, p.store, first...) {
		switch {
		case r.Err != nil:
			return nil, r.Err
		case r.Found:
			users = append(users, finding.PopularUser{User: first[i], Followers: pinned + int64(len(first)-i)})
		}
	}
	popular, err := finding.PopularLookups.Get(ctx, p.store, finding.PopularQuery{Since: storage.MicrosOf(now).Day() - popularDays, Limit: popularUsers})
	if err != nil {
		return nil, err
	}
	others := storage.Filter(popular, func(one finding.PopularUser) bool { return !slices.Contains(first, one.User) })
	return append(users, others...), nil
}
