package inbox

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/epoch"
)

// One gateway at a time copies posts into the inboxes of their authors' fans: it holds a lease. The next one repeats what it left.

// stretch is the length of time, in µs, whose posts are copied together, and repeated if a gateway dies.
const stretch = storage.Micros(time.Minute / time.Microsecond)

// step keeps the lease, and records what is done, as step.lua takes it.
func (b *Boxes) step(ctx context.Context, s *State, what ...any) error {
	ctx, cancel := context.WithTimeout(ctx, working)
	defer cancel()
	args := append([]any{b.token, lease.Milliseconds(), s.number}, what...)
	return unlessNow(step.EvalSha(ctx, b.Clock.Redis, []string{b.leaseKey(), b.stateKey(), b.hotKey()}, args...).Bool())
}

func unlessNow(done bool, err error) error {
	if err == nil && !done {
		return ErrNotNow
	}
	return err
}

// copyNewest copies the posts of the next stretch that may be copied now. There may be more of them.
func (b *Boxes) copyNewest(ctx context.Context, s *State) (more bool, err error) {
	now := storage.MicrosOf(time.Now())
	if s.Done > now { // a clock was ahead that has been set right: the posts until then would pass for copied
		b.late = -1
		return true, nil
	}
	upTo := min(b.Recent.Through(), now) - storage.Micros(b.Lag.Microseconds())
	if s.Done >= upTo {
		return false, b.sweep(ctx, s)
	}
	since := cmp.Or(s.Done, upTo) // 0: there is no inbox yet
	upTo = min(upTo, since+stretch)
	posts, all := b.Recent.Between(since, upTo)
	if !all && s.Done > 0 {
		b.late = -1
		return true, nil
	}
	byAuthor := map[storage.UserID][]storage.PostAt{}
	for _, p := range posts {
		byAuthor[p.Author] = append(byAuthor[p.Author], p)
	}
	s, turns := b.turn(ctx, s, slices.Sorted(maps.Keys(byAuthor)))
	maps.DeleteFunc(byAuthor, func(author storage.UserID, _ []storage.PostAt) bool { return s.isHot(author) })
	if err := b.step(ctx, s, append([]any{"doing", int64(upTo)}, turns...)...); err != nil {
		return false, err
	}
	if err := b.deliver(ctx, s, byAuthor); err != nil {
		return false, err
	}
	if _, name, err := b.name(ctx); err != nil || name != s.name { // fans may have been lost meanwhile
		return false, cmp.Or(err, ErrNotNow)
	}
	b.posts.Add(float64(len(posts)))
	return true, b.step(ctx, s, "done", int64(upTo))
}

// turn finds out who of these authors becomes hot, or is no longer, and returns the state after that, and what has changed as step.lua
// takes it.
func (b *Boxes) turn(ctx context.Context, s *State, authors []storage.UserID) (next *State, changes []any) {
	hot, _ := b.Bounds()
	after := *s
	after.turns = maps.Clone(s.turns)
	for some := range slices.Chunk(authors, b.Batch) {
		for i, r := range storage.CountLookups.Read(ctx, b.Counts, some...) {
			id, n := some[i], r.Value.Follower
			becomesHot, cools := hot > 0 && n >= hot && !s.isHot(id), s.isHot(id) && (2*n < hot || hot == 0)
			if r.Err == nil && (becomesHot || cools) {
				after.turns[id]++
				changes = append(changes, id.String(), after.turns[id])
			}
		}
	}
	return &after, changes
}

// fan is an entry among the fans of an author.
type fan struct {
	author storage.UserID
	entry  string
}

// deliver copies posts to the fans of their authors, and removes fans who have no inbox any more. For authors without posts, it only
// does the latter.
func (b *Boxes) deliver(ctx context.Context, s *State, posts map[storage.UserID][]storage.PostAt) error {
	var fans []fan
	for authors := range slices.Chunk(slices.Collect(maps.Keys(posts)), b.Batch) {
		first := make([]*redis.ScanCmd, len(authors)) // most authors have no more fans than that
		err := b.exec(ctx, func(pipe redis.Pipeliner) {
			for i, author := range authors {
				first[i] = pipe.HScan(ctx, b.fansKey(author), 0, "", int64(b.Batch))
			}
		})
		for i, author := range authors {
			page, at, _ := first[i].Result()
			for err == nil {
				for k := 0; k < len(page); k += 2 { // the values are empty
					fans = append(fans, fan{author, page[k]})
				}
				if len(fans) >= b.Batch {
					err, fans = b.deliverTo(ctx, s, fans, posts), fans[:0]
				}
				if at == 0 || err != nil {
					break
				}
				page, at, err = b.Clock.Redis.HScan(ctx, b.fansKey(author), at, "", int64(b.Batch)).Result()
			}
		}
		if err = cmp.Or(err, b.step(ctx, s)); err != nil {
			return err
		}
	}
	return b.deliverTo(ctx, s, fans, posts)
}

// deliverTo is deliver for some fans.
func (b *Boxes) deliverTo(ctx context.Context, s *State, fans []fan, posts map[storage.UserID][]storage.PostAt) error {
	added := make([]*redis.Cmd, len(fans))
	err := b.exec(ctx, func(pipe redis.Pipeliner) {
		for i, f := range fans {
			user, build := unpair(f.entry)
			added[i] = b.add(ctx, pipe, storage.UserID(user), s.build(build), posts[f.author], 0, "", 0)
		}
	})
	if err != nil {
		return err
	}
	err = b.exec(ctx, func(pipe redis.Pipeliner) {
		for i, f := range fans {
			if is, _ := added[i].Bool(); !is {
				pipe.HDel(ctx, b.fansKey(f.author), f.entry)
			} else if len(posts[f.author]) > 0 {
				b.written.Inc()
			}
		}
	})
	return cmp.Or(err, b.step(ctx, s))
}

// exec sends commands together.
func (b *Boxes) exec(ctx context.Context, commands func(redis.Pipeliner)) error {
	ctx, cancel := context.WithTimeout(ctx, working)
	defer cancel()
	pipe := b.Clock.Redis.Pipeline()
	commands(pipe)
	_, err := pipe.Exec(ctx)
	return err
}

// sweepKeys is how many keys of a server are swept in a round: the fans of authors who post nothing include users without an inbox.
const sweepKeys = 20

func (b *Boxes) sweep(ctx context.Context, s *State) error {
	found := map[storage.UserID][]storage.PostAt{}
	err := epoch.EachMaster(ctx, b.Clock.Redis, func(ctx context.Context, one *redis.Client) error {
		b.sweeping.Lock()
		defer b.sweeping.Unlock()
		server := one.Options().Addr
		keys, next, err := one.Scan(ctx, b.swept[server], b.fansPrefix()+"*", sweepKeys).Result()
		b.swept[server] = next
		for _, key := range keys {
			if id, err := strconv.ParseInt(key[len(b.fansPrefix()):], 10, 64); err == nil {
				found[storage.UserID(id)] = nil
			}
		}
		return err
	})
	return cmp.Or(err, b.deliver(ctx, s, found))
}
