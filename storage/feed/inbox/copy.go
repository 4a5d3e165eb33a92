package inbox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/epoch"
)

// One gateway at a time copies posts into the inboxes of their authors' fans: it holds a lease. The next
// gateway repeats what this one had not finished.

// stretch is the length of time whose posts are copied together, and repeated if a gateway dies.
const stretch = time.Minute

var errLost = errors.New("another gateway has the lease")

// lead calls lead.lua. It returns false if this gateway does not hold the lease.
func (b *Boxes) lead(ctx context.Context, s *State, what ...any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, working)
	defer cancel()
	args := append([]any{b.token, lease.Milliseconds(), s.number}, what...)
	n, err := lead.EvalSha(ctx, b.Clock.Redis, []string{b.leaseKey(), b.stateKey(), b.hotKey()}, args...).Int()
	return n == 1, err
}

// copyNewest copies all posts that may be copied now.
func (b *Boxes) copyNewest(ctx context.Context, s *State) error {
	through := b.Recent.Through()
	if through == 0 {
		return nil // they are being loaded
	}
	upTo := through - storage.Micros(b.Lag.Microseconds())
	if s.Done == 0 { // there is no inbox yet
		return b.record(ctx, s, upTo, nil, func() error { return nil })
	}
	for s.Done < upTo {
		next, err := b.copyStretch(ctx, s, min(upTo, s.Done+storage.Micros(stretch.Microseconds())))
		if err != nil || next == nil {
			return err
		}
		s = next
	}
	return b.sweep(ctx, s)
}

// record stores up to where posts are being copied, and then that they have been copied.
func (b *Boxes) record(ctx context.Context, s *State, upTo storage.Micros, turns []any, copying func() error) error {
	for _, step := range [][]any{append([]any{"doing", int64(upTo)}, turns...), {"done", int64(upTo)}} {
		if step[0] == "done" {
			if err := copying(); err != nil {
				return err
			}
		}
		if mine, err := b.lead(ctx, s, step...); err != nil || !mine {
			return errors.Join(err, errLost)
		}
	}
	return nil
}

// copyStretch copies the posts up to a time, and returns the state after that; nil if all inboxes have to end.
func (b *Boxes) copyStretch(ctx context.Context, s *State, upTo storage.Micros) (*State, error) {
	posts, all := b.Recent.Between(s.Done, upTo)
	if !all {
		b.end()
		return nil, nil
	}
	byAuthor := map[storage.UserID][]storage.PostAt{}
	for _, p := range posts {
		byAuthor[p.Author] = append(byAuthor[p.Author], p)
	}
	next, changes := b.findHot(ctx, s, slices.Sorted(maps.Keys(byAuthor)))
	next.Done = upTo
	err := b.record(ctx, s, upTo, changes, func() error {
		if len(posts) == 0 {
			return nil
		}
		if err := b.copyAll(ctx, next, byAuthor); err != nil {
			return err
		}
		if _, name, err := b.name(ctx); err != nil || name != s.name {
			return errors.Join(err, ErrNotNow)
		}
		b.metrics.posts.Add(float64(len(posts)))
		return nil
	})
	return next, err
}

// findHot finds out who of these authors is hot. It returns what has changed as lead.lua takes it.
func (b *Boxes) findHot(ctx context.Context, s *State, authors []storage.UserID) (next *State, changes []any) {
	hot, _ := b.Bounds()
	next = &State{name: s.name, number: s.number, epoch: s.epoch, turns: maps.Clone(s.turns)}
	for some := range slices.Chunk(authors, b.Batch) {
		for i, r := range storage.CountLookups.Read(ctx, b.Counts, some...) {
			id, n := some[i], r.Value.Follower
			becomesHot, cools := hot > 0 && n >= hot && !s.isHot(id), s.isHot(id) && (2*n < hot || hot == 0)
			if r.Err == nil && (becomesHot || cools) {
				next.turns[id]++
				changes = append(changes, id.String(), next.turns[id])
			}
		}
	}
	return next, changes
}

// fan is a user to whose inbox an author's posts go.
type fan struct {
	author storage.UserID
	user   storage.UserID
	build  string
}

// delivery copies posts to fans, some at a time.
type delivery struct {
	*Boxes
	state   *State
	posts   map[storage.UserID][]storage.PostAt // by author
	waiting []fan
	renewed time.Time
}

// copyAll copies the posts of authors who are not hot. Without posts, it finds those who are no longer
// fans.
func (b *Boxes) copyAll(ctx context.Context, s *State, posts map[storage.UserID][]storage.PostAt) error {
	d := &delivery{Boxes: b, state: s, posts: posts, renewed: time.Now()}
	authors := slices.DeleteFunc(slices.Sorted(maps.Keys(posts)), func(id storage.UserID) bool { return s.isHot(id) && len(posts[id]) > 0 })
	for some := range slices.Chunk(authors, b.Batch) {
		if err := d.copy(ctx, some); err != nil {
			return err
		}
	}
	return d.flush(ctx)
}

// copy copies the posts of some authors to all their fans.
func (d *delivery) copy(ctx context.Context, authors []storage.UserID) error {
	numbers := make([]*redis.StringCmd, len(authors))
	fans := make([]*redis.ScanCmd, len(authors))
	err := d.exec(ctx, func(ctx context.Context, pipe redis.Pipeliner) {
		for i, id := range authors {
			numbers[i], fans[i] = pipe.HGet(ctx, d.fansKey(id), "number"), pipe.HScan(ctx, d.fansKey(id), 0, "", int64(d.Batch))
		}
	})
	if err != nil {
		return err
	}
	for i, id := range authors {
		number, err := numbers[i].Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err == nil && number != d.state.number {
			err = d.leave(ctx, id, nil)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if err := d.each(ctx, id, fans[i]); err != nil {
			return err
		}
	}
	return nil
}

// each takes the fans of an author, from their first batch on.
func (d *delivery) each(ctx context.Context, author storage.UserID, first *redis.ScanCmd) error {
	for scan := first; ; {
		got, cursor, err := scan.Result()
		if err != nil {
			return err
		}
		for i := 0; i+1 < len(got); i += 2 {
			user, err := strconv.ParseInt(got[i], 10, 64)
			if err != nil {
				continue // the number of the inboxes
			}
			if d.waiting = append(d.waiting, fan{author, storage.UserID(user), got[i+1]}); len(d.waiting) == d.Batch {
				if err := d.flush(ctx); err != nil {
					return err
				}
			}
		}
		if cursor == 0 {
			return nil
		}
		err = d.exec(ctx, func(ctx context.Context, pipe redis.Pipeliner) {
			scan = pipe.HScan(ctx, d.fansKey(author), cursor, "", int64(d.Batch))
		})
		if err != nil {
			return err
		}
	}
}

// flush copies to the fans that wait, and removes those whose inbox no longer exists.
func (d *delivery) flush(ctx context.Context) error {
	if len(d.waiting) == 0 {
		return nil
	}
	answers := make([]*redis.Cmd, len(d.waiting))
	err := d.exec(ctx, func(ctx context.Context, pipe redis.Pipeliner) {
		for i, f := range d.waiting {
			args := []any{d.state.number, f.build, Capacity}
			for _, p := range d.posts[f.author] {
				args = append(args, int64(p.CreatedAt), memberOf(p.PostID))
			}
			answers[i] = deliver.EvalSha(ctx, pipe, []string{d.boxKey(f.user)}, args...)
		}
	})
	if err != nil {
		return err
	}
	gone := map[storage.UserID][]any{}
	for i, f := range d.waiting {
		switch n, err := answers[i].Int(); {
		case err != nil:
			return err
		case n == 0:
			gone[f.author] = append(gone[f.author], f.user.String(), f.build)
		case len(d.posts[f.author]) > 0:
			d.metrics.written.Inc()
		}
	}
	d.waiting = d.waiting[:0]
	for author, fans := range gone {
		if err := d.leave(ctx, author, fans); err != nil {
			return err
		}
	}
	return d.renew(ctx)
}

// exec sends commands together.
func (d *delivery) exec(ctx context.Context, add func(context.Context, redis.Pipeliner)) error {
	ctx, cancel := context.WithTimeout(ctx, working)
	defer cancel()
	pipe := d.Clock.Redis.Pipeline()
	add(ctx, pipe)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	return nil
}

func (d *delivery) leave(ctx context.Context, author storage.UserID, fans []any) error {
	ctx, cancel := context.WithTimeout(ctx, working)
	defer cancel()
	return leave.EvalSha(ctx, d.Clock.Redis, []string{d.fansKey(author)}, append([]any{d.state.number}, fans...)...).Err()
}

// renew keeps the lease.
func (d *delivery) renew(ctx context.Context) error {
	if time.Since(d.renewed) < lease/4 {
		return nil
	}
	d.renewed = time.Now()
	if mine, err := d.lead(ctx, d.state, "renew"); err != nil || !mine {
		return errors.Join(err, errLost)
	}
	return nil
}

// sweeps is how far each server has been searched for fans who have no inbox any more.
type sweeps struct {
	mu      sync.Mutex
	cursors map[string]uint64
}

// sweepKeys is how many keys of a server are looked at in a round: the fans of authors who post nothing include for a
// while users whose inboxes have ended.
const sweepKeys = 20

func (b *Boxes) sweep(ctx context.Context, s *State) error {
	found := map[storage.UserID][]storage.PostAt{}
	err := epoch.EachMaster(ctx, b.Clock.Redis, func(ctx context.Context, one *redis.Client) error {
		ctx, cancel := context.WithTimeout(ctx, working)
		defer cancel()
		b.sweeps.mu.Lock()
		defer b.sweeps.mu.Unlock()
		server := one.Options().Addr
		keys, next, err := one.Scan(ctx, b.sweeps.cursors[server], b.fansPrefix()+"*", sweepKeys).Result()
		if err != nil {
			return err
		}
		if b.sweeps.cursors == nil {
			b.sweeps.cursors = map[string]uint64{}
		}
		b.sweeps.cursors[server] = next
		for _, key := range keys {
			if id, err := strconv.ParseInt(key[len(b.fansPrefix()):], 10, 64); err == nil {
				found[storage.UserID(id)] = nil
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.copyAll(ctx, s, found)
}
