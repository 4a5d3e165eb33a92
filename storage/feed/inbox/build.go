package inbox

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
)

// ErrNotNow: an inbox is not built now, because one was begun a short while ago, or because inboxes have ended
// meanwhile.
var ErrNotNow = errors.New("not now")

// Build builds the inbox of a user with these followings. pull finds the newest posts of some of them, at most Capacity, and
// the time down to which these are all posts; 0: all. They include all posts that were published up to a time.
func (b *Boxes) Build(ctx context.Context, s *State, user storage.UserID, followings []storage.UserID,
	pull func(ctx context.Context, authors []storage.UserID) (posts []storage.PostAt, floor storage.Micros, err error),
) error {
	build, err := begin.EvalSha(ctx, b.Clock.Redis, []string{b.boxKey(user), b.lockKey(user)}, s.number, b.Pause.Milliseconds(), buildTakes.Milliseconds()).Int64()
	if err != nil || build == 0 {
		return errors.Join(err, notIf(build == 0))
	}
	authors := slices.DeleteFunc(slices.Clone(followings), s.isHot)
	if err := b.register(ctx, s, user, build, authors); err != nil {
		return err
	}
	doing, err := b.doing(ctx, s)
	if err != nil || b.Recent.Through() < doing {
		return errors.Join(err, ErrNotNow)
	}
	posts, floor, err := pull(ctx, authors)
	if err != nil {
		return err
	}
	args := []any{s.number, build, int64(floor), s.digest(authors), b.activeSeconds()}
	for _, p := range posts {
		args = append(args, int64(p.CreatedAt), memberOf(p.PostID))
	}
	filled, err := fill.EvalSha(ctx, b.Clock.Redis, []string{b.boxKey(user)}, args...).Int64()
	if err == nil && filled == 1 {
		b.metrics.builds.Inc()
	}
	return errors.Join(err, notIf(filled == 0))
}

// doing asks Redis up to where posts are being copied now.
func (b *Boxes) doing(ctx context.Context, s *State) (storage.Micros, error) {
	got, err := b.Clock.Redis.HMGet(ctx, b.stateKey(), "number", "doing").Result()
	if err != nil || got[0] != s.number {
		return 0, errors.Join(err, ErrNotNow)
	}
	text, _ := got[1].(string)
	doing, err := strconv.ParseInt(text, 10, 64)
	return storage.Micros(doing), err
}

func notIf(not bool) error {
	if not {
		return ErrNotNow
	}
	return nil
}

// register adds a user to the fans of authors.
func (b *Boxes) register(ctx context.Context, s *State, user storage.UserID, build int64, authors []storage.UserID) error {
	for some := range slices.Chunk(authors, b.Batch) {
		pipe := b.Clock.Redis.Pipeline()
		done := storage.Each(some, func(author storage.UserID) *redis.Cmd {
			return register.EvalSha(ctx, pipe, []string{b.fansKey(author)}, s.number, user.String(), build)
		})
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		for _, one := range done {
			if n, err := one.Int64(); err != nil || n == 0 {
				return errors.Join(err, notIf(n == 0))
			}
		}
	}
	return nil
}

// Read reads the posts of a user's inbox from a time on back, newest first, as many as are asked for, and the time from which
// on back the inbox does not have all. The posts are of followings who are not hot, or of users who were followed once. Read
// returns false if there is no inbox for these followings, or Redis does not answer.
func (b *Boxes) Read(ctx context.Context, s *State, user storage.UserID, followings []storage.UserID, from storage.Micros, n int) (posts []storage.PostAt, floor storage.Micros, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	most := "+inf"
	if from > 0 {
		most = strconv.FormatInt(int64(from), 10)
	}
	of := s.digest(followings)
	got, err := read.EvalSha(ctx, b.Clock.Redis, []string{b.boxKey(user)}, s.number, of, most, n, b.activeSeconds(), int64(renewEvery/time.Second)).StringSlice()
	if err != nil {
		b.fail(err)
		return nil, 0, false
	}
	if len(got) == 0 || !s.epoch.Holds() {
		b.metrics.missed.Inc()
		return nil, 0, false
	}
	end, err := strconv.ParseInt(got[0], 10, 64)
	for i := 1; i+1 < len(got) && err == nil; i += 2 {
		var p storage.PostAt
		p, err = parsePost(got[i], got[i+1])
		posts = append(posts, p)
	}
	if err != nil {
		b.fail(err)
		return nil, 0, false
	}
	b.metrics.pages.Inc()
	return posts, storage.Micros(end), true
}

// Forget removes posts that no longer exist from an inbox. Failures do no harm.
func (b *Boxes) Forget(ctx context.Context, user storage.UserID, gone []storage.PostID) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	b.Clock.Redis.ZRem(ctx, b.boxKey(user), storage.Each(gone, func(id storage.PostID) any { return memberOf(id) })...)
}

// activeSeconds is how long an inbox is kept, as scripts take it.
func (b *Boxes) activeSeconds() int64 {
	_, active := b.Bounds()
	return int64(active / time.Second)
}
