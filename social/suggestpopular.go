package social

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kith/storage"
)

// suggestPopular is the cold start: whom to follow for somebody who follows nobody, so
// that no friend of a friend is known. It goes through the most followed among the
// recently active.
func (g *Graph) suggestPopular(ctx context.Context, q SuggestionQuery) (Suggestions, error) {
	out := Suggestions{Complete: true, Popular: true, Next: q.From}
	if q.Popular == nil {
		return out, nil
	}
	popular, err := q.Popular(ctx)
	if err != nil {
		return Suggestions{}, err
	}
	s := g.sieveOf(q, pool{whole: q.From == (SuggestionMark{})}) // later pages look once more: it may follow some by now
	behind := Suggestion{ID: q.From.ID, Score: q.From.Score}
	var candidates ranking
	for _, p := range popular {
		c := Suggestion{ID: p.User, Score: p.Followers}
		switch {
		case p.User == q.User:
		case g.audience.InBlock(p.User):
			out.Excluded.Blocked++
		case g.audience.Hides(p.User):
		case s.isDismissed(p.User):
			out.Excluded.Dismissed++
		case q.From.ID == 0 || better(c, behind) > 0:
			candidates = append(candidates, c)
		}
	}
	ranked, err := s.keep(ctx, candidates, q.First+1)
	if err != nil {
		return Suggestions{}, err
	}
	out.Excluded.Followed = s.followedOutside
	out.Suggestions = ranked.take(q.First)
	out.More = len(ranked) > q.First
	if n := len(out.Suggestions); n > 0 {
		last := out.Suggestions[n-1]
		out.Next = SuggestionMark{Score: last.Score, ID: last.ID, Popular: true}
	}
	return out, nil
}

// PopularReader is what a store tells of who is popular.
type PopularReader interface {
	Popular(ctx context.Context, since storage.Day, limit int) ([]storage.PopularUser, error)
}

// How Popular looks.
const (
	popularFor   = time.Minute // an answer is kept: asking every shard takes milliseconds
	popularDays  = 30          // who was active in these counts as recently active
	popularUsers = 1000
)

// Popular tells who is popular to everybody who asks a gateway, and remembers it for a
// minute.
type Popular struct {
	store PopularReader
	now   func() time.Time

	mu    sync.Mutex
	users []storage.PopularUser
	until time.Time
}

// NewPopular makes a source. now is the clock.
func NewPopular(store PopularReader, now func() time.Time) *Popular {
	return &Popular{store: store, now: now}
}

// Users lists the most followed among the recently active, most followed first. Who
// asks while it is being read waits for that.
func (p *Popular) Users(ctx context.Context) ([]storage.PopularUser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if now.Before(p.until) {
		return p.users, nil
	}
	users, err := p.store.Popular(ctx, storage.DayOf(storage.MicrosOf(now))-popularDays, popularUsers)
	if err != nil {
		return nil, fmt.Errorf("read who is popular: %w", err)
	}
	p.users, p.until = users, now.Add(popularFor)
	return users, nil
}
