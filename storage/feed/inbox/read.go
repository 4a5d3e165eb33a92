package inbox

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/feed/recent"
)

// spare is how many more posts are read from an inbox than are wanted, to replace those that are left out.
const spare = 10

// Page is the page of a query, which has an After, for the user whom the query's authors are the followings of, without posts of hot
// authors. It returns false if there is no inbox for these followings, or Redis does not answer.
func (b *Boxes) Page(ctx context.Context, s *State, user storage.UserID, q recent.Query) (page recent.Page, ok bool) {
	asking, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	_, active := b.Bounds()
	got, err := read.EvalSha(asking, b.Clock.Redis, []string{b.boxKey(user)},
		s.digest(q.Authors.IDs()), int64(q.After.CreatedAt), q.Limit+spare, active.Milliseconds(), min(renewEvery, active/2).Milliseconds()).StringSlice()
	switch {
	case err != nil:
		if ctx.Err() == nil { // a client that leaves says nothing of Redis
			b.fail(err)
		}
		return page, false
	case len(got) == 0 || !s.epoch.Holds():
		b.missed.Inc()
		return page, false
	}
	b.pages.Inc()
	page.Through = storage.Micros(numberOf(got[0]))
	for entry := range slices.Chunk(got[1:], 2) {
		number, author := unpair(entry[0])
		p := storage.PostAt{PostID: storage.PostID{Author: storage.UserID(author), Number: number}, CreatedAt: storage.Micros(numberOf(entry[1]))}
		if p.CreatedAt > page.Through && p.Place().Compare(q.After) > 0 && q.Has(p.Author) && !s.isHot(p.Author) && len(page.Posts) < q.Limit {
			page.Posts = append(page.Posts, p)
		}
	}
	return page, true
}

// Ask has the inbox of a user built, who reads its feed or may soon do so. It does not wait.
func (b *Boxes) Ask(user storage.UserID) {
	select {
	case b.Asked <- user:
	default:
	}
}

// Build builds the inbox of a user with these followings, unless it is there. pull finds the newest posts of some of them, Capacity at
// most, with all that were published up to a time, and down to [recent.Page.Through]; 0: there are no more.
func (b *Boxes) Build(ctx context.Context, user storage.UserID, followings []storage.UserID,
	pull func(ctx context.Context, authors []storage.UserID) (recent.Page, error),
) error {
	s := b.Current()
	if s == nil {
		return ErrNotNow
	}
	client, box, number, digest := b.Clock.Redis, b.boxKey(user), rand.Int64(), s.digest(followings)
	err := unlessNow(begin.EvalSha(ctx, client, []string{box, box + ":building"}, s.build(number), digest, b.Pause.Milliseconds(), buildTakes.Milliseconds()).Bool())
	if err != nil {
		return err
	}
	authors := slices.DeleteFunc(slices.Clone(followings), s.isHot)
	err = b.exec(ctx, func(pipe redis.Pipeliner) {
		for _, author := range authors {
			pipe.HSet(ctx, b.fansKey(author), pair(int64(user), number), "")
		}
	})
	if err != nil {
		return err
	}
	var now struct {
		Number int64          `redis:"number"`
		Doing  storage.Micros `redis:"doing"`
	}
	if err := client.HMGet(ctx, b.stateKey(), "number", "doing").Scan(&now); err != nil {
		return err
	}
	if now.Number != s.number || b.Recent.Through() < now.Doing {
		return ErrNotNow
	}
	page, err := pull(ctx, authors)
	if err != nil {
		return err
	}
	_, active := b.Bounds()
	if err = unlessNow(b.add(ctx, client, user, s.build(number), page.Posts, page.Through, digest, active.Milliseconds()).Bool()); err == nil {
		b.builds.Inc()
	}
	return err
}

// add calls add.lua.
func (b *Boxes) add(ctx context.Context, client redis.Scripter, user storage.UserID, build string, posts []storage.PostAt, floor storage.Micros, digest string, active int64) *redis.Cmd {
	args := []any{build, Capacity, int64(floor), digest, active}
	for _, p := range posts {
		args = append(args, int64(p.CreatedAt), pair(p.Number, int64(p.Author)))
	}
	return add.EvalSha(ctx, client, []string{b.boxKey(user)}, args...)
}
