package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/finding"
	"kith/storage/sides"
)

// handle is the shards as one gateway has opened them. Every call takes its time on the way there and back, so that what is read may be
// old when it arrives.
type handle struct {
	*oracle.Store
	of     *gateway
	report func(context.Context, storage.Change)
}

// newShards puts users with odd ids into one database and those with even ids into another, until they move.
func newShards(one bool) *oracle.Store {
	if one {
		return oracle.New()
	}
	on, at := storage.NewShardMap(2), &storage.Assignment{Epochs: make([]int64, 2)}
	at.Assign(storage.BucketRange{Last: storage.Buckets - 1}, 1, 0)
	for user := storage.UserID(1); user <= numberOfUsers; user++ {
		at.Assign(bucketsOf(user, user), int(user%2), 0)
	}
	on.Set(at)
	return oracle.New(oracle.Placed(on))
}

// attempt is what happens to the writes of one step, which are counted from 1.
type attempt struct {
	users         []storage.UserID
	refuse, doubt int           // the write that is refused, and the one whose commit gets no answer
	late          time.Duration // how long after that it is executed
	kills         bool          // the gateway is killed as soon as it has written
	began         time.Time
	mu            sync.Mutex
	writes        int
	at            map[key]int // where its commits are in the history
}

type (
	attemptKey struct{}
	commitKey  struct{}
)

// commit is a write under way.
type commit struct {
	by      *handle
	attempt *attempt
	inDoubt bool

	logsFirst bool             // it is in the log before others can read it
	reports   []storage.Change // for the gateway
}

// committed gets every transaction of the oracle: it is seen from now on.
func (w *world) committed(ctx context.Context, c storage.Change) {
	by, _ := ctx.Value(commitKey{}).(*commit)
	var a *attempt
	if by != nil {
		a = by.attempt
	}
	w.history.add(c, a)
	w.log(c)
	if a != nil && a.kills {
		by.by.of.dead.Store(true)
		w.mu.Lock()
		w.killed = append(w.killed, time.Now())
		w.mu.Unlock()
	}
	if by == nil || by.by.report == nil {
		return
	}
	c.InDoubt = by.inDoubt
	if by.reports = append(by.reports, c); !by.logsFirst {
		by.reportAll(ctx)
	}
}

// reportAll reports what a write has changed, when it is answered.
func (c *commit) reportAll(ctx context.Context) {
	for _, r := range c.reports {
		if !c.by.of.dead.Load() {
			c.by.report(ctx, r)
		}
	}
	c.reports = nil
}

var (
	errRefused = fmt.Errorf("%w: refused", storage.ErrUnavailable)
	errInDoubt = fmt.Errorf("%w: commit in doubt", storage.ErrUnavailable)
)

// anyShard stands for all of them.
const anyShard = -1

// awayFor returns from which shards the gateway gets no answer now.
func (h *handle) awayFor() func(shard int) bool {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	away := h.of.dbAway
	isAway := func(shard int) bool { return h.of.dead.Load() || time.Now().Before(away[shard]) }
	return func(shard int) bool {
		if shard == anyShard {
			return slices.ContainsFunc(storage.Indexes(len(away)), isAway)
		}
		return isAway(shard)
	}
}

// isAway reports whether one of the shards of some users is away, or takes no writes; with none, any.
func (h *handle) isAway(users []storage.UserID) bool {
	isAway := h.awayFor()
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	isEither := func(shard int) bool { return isAway(shard) || h.of.restoring[shard] }
	if len(users) == 0 {
		return isAway(anyShard) || slices.Contains(h.of.restoring[:], true)
	}
	return slices.ContainsFunc(users, func(id storage.UserID) bool { return isEither(h.ShardOf(id)) })
}

// write makes a write in the databases of some users; of all, if there are none.
func (h *handle) write(ctx context.Context, of []storage.UserID, write func(context.Context), what ...any) error {
	h.of.delay(4*time.Millisecond, h.of.name, "to", fmt.Sprint(what...), 0)
	if h.of.await(ctx, of) != nil {
		return errRefused
	}
	c := &commit{by: h}
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	refuse := false
	if c.attempt = a; a != nil {
		a.mu.Lock()
		a.writes++
		refuse, c.inDoubt = a.writes == a.refuse, a.writes == a.doubt
		a.mu.Unlock()
	}
	if refuse || h.isAway(of) {
		return errRefused
	}
	if c.inDoubt {
		h.of.mu.Lock()
		for _, user := range a.users {
			if h.of.doubts[user] = time.Now(); a.late > 0 {
				h.of.late[user] = time.Now()
			}
		}
		if a.late > 0 {
			h.of.executing++
		}
		h.of.mu.Unlock()
	}
	if c.inDoubt && a.late > 0 { // of which nobody hears
		h.of.running.Go(func() {
			time.Sleep(a.late)
			write(context.WithoutCancel(ctx))
			h.of.mu.Lock()
			defer h.of.mu.Unlock()
			h.of.executing--
		})
		doubted := storage.Change{InDoubt: true}
		for _, user := range a.users {
			doubted.AddStanding(user)
		}
		h.report(ctx, doubted)
	} else if shard, is := h.logsFirst(of, what...); is {
		c.logsFirst = true
		ctx := context.WithValue(ctx, commitKey{}, c)
		h.logFirst(shard, func() { write(ctx) })
		c.reportAll(ctx)
	} else {
		write(context.WithValue(ctx, commitKey{}, c))
	}
	h.of.delay(4*time.Millisecond, h.of.name, "from", fmt.Sprint(what...), 0)
	if c.inDoubt || h.of.dead.Load() {
		return errInDoubt
	}
	return nil
}

// writeEach makes a write with a result for each of n things.
func writeEach[T any](ctx context.Context, h *handle, of []storage.UserID, n int, write func(context.Context) []storage.Result[T], what ...any) []storage.Result[T] {
	var results []storage.Result[T]
	if err := h.write(ctx, of, func(ctx context.Context) { results = write(ctx) }, what...); err != nil {
		results = make([]storage.Result[T], n)
		for i := range results {
			results[i].Err = err
		}
	}
	return results
}

// writeOne makes a write with one result.
func writeOne[T any](ctx context.Context, h *handle, of []storage.UserID, write func(context.Context) (T, bool, error), what ...any) (value T, changed bool, err error) {
	var made T
	var is bool
	var failed error
	if err := h.write(ctx, of, func(ctx context.Context) { made, is, failed = write(ctx) }, what...); err != nil {
		return value, false, err
	}
	return made, is, failed
}

func (h *handle) OnCommit(report func(context.Context, storage.Change)) { h.report = report }

func (h *handle) Bundle(ctx context.Context, b *storage.Bundle) {
	what := h.of.sumOf(b)
	h.of.delay(4*time.Millisecond, h.of.name, "ask", what, 0)
	h.answer(ctx, b, h.awayFor())
	h.of.delay(12*time.Millisecond, h.of.name, "answer", what, 0)
}

// answer answers a bundle, but nothing from databases that are away. What asks for nobody in particular asks both.
func (h *handle) answer(ctx context.Context, b *storage.Bundle, isAway func(int) bool) {
	if !isAway(anyShard) {
		h.Store.Bundle(ctx, b)
		return
	}
	self := h.ShardOf
	author := func(id storage.PostID) int { return h.ShardOf(id.Author) }
	from := func(p storage.Pair) int { return h.ShardOf(p.From) }
	var owned storage.Bundle
	refuse := []func(){
		part(b, &owned, isAway, storage.ProfileLookups, self), part(b, &owned, isAway, storage.UserLookups, self), part(b, &owned, isAway, storage.CountLookups, self),
		part(b, &owned, isAway, storage.StateLookups, self), part(b, &owned, isAway, storage.PasswordLookups, self), part(b, &owned, isAway, storage.BlockLookups, self),
		part(b, &owned, isAway, storage.PostLookups, author), part(b, &owned, isAway, storage.DetailLookups, from), part(b, &owned, isAway, storage.MarkLookups, from),
		part(b, &owned, isAway, storage.PostPageLookups, func(q storage.PlaceQuery) int { return h.ShardOf(q.Of.Author) }),
		part(b, &owned, isAway, storage.RowLookups, func(q storage.RowsQuery) int { return h.ShardOf(q.Owner) }),
		part(b, &owned, isAway, storage.RecentPostLookups, func(q storage.ShardQuery[storage.Place]) int { return q.Shard }),
		part(b, &owned, isAway, storage.StateChangeLookups, func(q storage.ShardQuery[storage.StateChange]) int { return q.Shard }),
	}
	for _, side := range storage.AllSides {
		refuse = append(refuse, part(b, &owned, isAway, storage.EdgeLookups[side], func(p storage.Pair) int { return h.ShardOf(side.Owner(p)) }),
			part(b, &owned, isAway, storage.PageLookups[side], func(q storage.PageQuery) int { return h.ShardOf(q.Owner) }))
	}
	h.Store.Bundle(ctx, &owned)
	for _, refuse := range refuse {
		refuse()
	}
	b.Fail(errRefused)
}

// part puts the look-up of a kind into another bundle too, and returns what takes away the answers from databases that are away.
func part[K, V any](from, to *storage.Bundle, isAway func(int) bool, kind *storage.LookupKind[K, V], shard func(K) int) (refuse func()) {
	l := kind.In(from)
	if !l.Open() {
		return func() {}
	}
	kind.Put(to, l)
	return func() {
		for i, k := range l.Keys {
			if isAway(shard(k)) {
				l.Results[i] = storage.Result[V]{Err: errRefused}
			}
		}
	}
}

// sumOf tells apart bundles of one moment, whatever the order of their keys, which may be that of a map.
func (w *world) sumOf(b *storage.Bundle) (sum uint64) {
	sum = keysOf(w, storage.ProfileLookups.In(b)) + keysOf(w, storage.CountLookups.In(b)) + keysOf(w, storage.DetailLookups.In(b)) + keysOf(w, storage.PostLookups.In(b))
	sum += keysOf(w, storage.StateChangeLookups.In(b)) + keysOf(w, storage.RecentPostLookups.In(b)) + keysOf(w, storage.UserIDLookups.In(b))
	sum += keysOf(w, storage.UserLookups.In(b)) + keysOf(w, storage.StateLookups.In(b)) + keysOf(w, storage.BlockLookups.In(b)) + keysOf(w, storage.RowLookups.In(b)) + keysOf(w, storage.PostPageLookups.In(b))
	for _, side := range storage.AllSides {
		sum += keysOf(w, storage.PageLookups[side].In(b), side) + keysOf(w, storage.EdgeLookups[side].In(b), side)
	}
	return sum
}

func keysOf[K comparable, V any](w *world, l *storage.Lookup[K, V], of ...any) (sum uint64) {
	if l != nil {
		for _, k := range l.Keys {
			sum += w.hash(append(of, k)...)
		}
	}
	return sum
}

func (h *handle) AtHand(*storage.Bundle) {}

func (h *handle) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	results := make([]storage.Result[storage.Changed], len(edges))
	owners := storage.Each(edges, func(e storage.Edge) storage.UserID { return side.Owner(e.Pair()) })
	for i := range h.Shards() {
		var of []int
		for k, owner := range owners {
			if h.ShardOf(owner) == i {
				of = append(of, k)
			}
		}
		if len(of) == 0 {
			continue
		}
		own := storage.Chosen(edges, of)
		applied := writeEach(ctx, h, storage.Chosen(owners, of), len(own), func(ctx context.Context) []storage.Result[storage.Changed] {
			return h.Store.Apply(ctx, side, own, rule)
		}, side, own)
		for k, at := range of {
			results[at] = applied[k]
		}
	}
	return results
}

func (h *handle) RepairInverse(ctx context.Context, repairs []sides.Repair) []storage.Result[storage.Changed] {
	return writeEach(ctx, h, nil, len(repairs), func(ctx context.Context) []storage.Result[storage.Changed] {
		return h.Store.RepairInverse(ctx, repairs)
	}, "repair", repairs)
}

func (h *handle) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes []storage.EdgeChange, o storage.ChangeOptions) []storage.Result[storage.Changed] {
	in := []storage.UserID{user}
	for _, c := range changes {
		if o.Inverse && h.ShardOf(c.To) == h.ShardOf(user) {
			in = append(in, c.To)
		}
	}
	return writeEach(ctx, h, in, len(changes), func(ctx context.Context) []storage.Result[storage.Changed] {
		return h.Store.ChangeEdges(ctx, side, user, changes, o)
	}, side, user, storage.Each(changes, func(c storage.EdgeChange) storage.UserID { return c.To }))
}

func (h *handle) UpdateProfile(ctx context.Context, id storage.UserID, change storage.ProfileChange, at storage.Micros) (storage.User, bool, error) {
	return writeOne(ctx, h, []storage.UserID{id}, func(ctx context.Context) (storage.User, bool, error) {
		return h.Store.UpdateProfile(ctx, id, change, at)
	}, "profile", id)
}

func (h *handle) Moderate(ctx context.Context, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
	return writeOne(ctx, h, []storage.UserID{e.User}, func(ctx context.Context) (storage.ModerationEntry, bool, error) { return h.Store.Moderate(ctx, e) }, "moderate", e.User)
}

func (h *handle) Publish(ctx context.Context, n storage.PostRow) (storage.Post, bool, error) {
	return writeOne(ctx, h, []storage.UserID{n.Author}, func(ctx context.Context) (storage.Post, bool, error) { return h.Store.Publish(ctx, n) }, "publish", n.PostID)
}

func (h *handle) DeletePost(ctx context.Context, id storage.PostID) (bool, error) {
	_, changed, err := writeOne(ctx, h, []storage.UserID{id.Author}, func(ctx context.Context) (any, bool, error) {
		changed, err := h.Store.DeletePost(ctx, id)
		return nil, changed, err
	}, "delete", id)
	return changed, err
}

func (h *handle) Register(ctx context.Context, user storage.User, hash string) error {
	_, _, err := writeOne(ctx, h, nil, func(ctx context.Context) (any, bool, error) { return nil, true, h.Store.Register(ctx, user, hash) }, "register", user.ID)
	return err
}

func (h *handle) LinkIdentity(ctx context.Context, who storage.Identity, user storage.UserID, at storage.Micros) error {
	_, _, err := writeOne(ctx, h, nil, func(ctx context.Context) (any, bool, error) {
		return nil, true, h.Store.LinkIdentity(ctx, who, user, at)
	}, "link", who, user)
	return err
}

func (h *handle) SetPassword(ctx context.Context, user storage.UserID, change storage.PasswordChange) (storage.Password, error) {
	now, _, err := writeOne(ctx, h, []storage.UserID{user}, func(ctx context.Context) (storage.Password, bool, error) {
		now, err := h.Store.SetPassword(ctx, user, change)
		return now, true, err
	}, "password", user)
	return now, err
}

func (h *handle) SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
	_, changed, err := writeOne(ctx, h, []storage.UserID{user}, func(ctx context.Context) (any, bool, error) {
		changed, err := h.Store.SetState(ctx, user, state, at)
		return nil, changed, err
	}, "state", user)
	return changed, err
}

func (h *handle) Lease(ctx context.Context, kind, owner string, slots int, now, until storage.Micros) (int, error) {
	if h.awayFor()(0) { // leases are in one of them
		return 0, errRefused
	}
	return h.Store.Lease(ctx, kind, owner, slots, now, until)
}

func (h *handle) Holders(ctx context.Context, kind string) (map[string]storage.Micros, error) {
	if h.awayFor()(0) { // leases are in one of them
		return nil, errRefused
	}
	return h.Store.Holders(ctx, kind)
}

func (h *handle) Release(ctx context.Context, kind, owner string, until storage.Micros) error {
	if h.awayFor()(0) { // leases are in one of them
		return errRefused
	}
	return h.Store.Release(ctx, kind, owner, until)
}

// ReadLog reads a file, also while the database does not answer.
func (h *handle) ReadLog(ctx context.Context, shard int, after int64, limit int) ([]storage.LogEntry, error) {
	h.of.delay(4*time.Millisecond, h.of.name, "log", shard, after)
	return h.Store.ReadLog(ctx, shard, after, limit)
}

// What the engine does not have, and what caches do without.
func (h *handle) HasLog() bool        { return h.of.one }
func (h *handle) HasBinlog() bool     { return !h.of.one }
func (h *handle) UUID() string        { return "sim" }
func (h *handle) Addresses() []string { return make([]string, h.Shards()) }

func (h *handle) Pack(context.Context, storage.Side, storage.UserID) error {
	return errors.ErrUnsupported
}
func (h *handle) Ranked(context.Context, int, finding.Rank, int) ([]finding.Rank, error) {
	return nil, nil
}
