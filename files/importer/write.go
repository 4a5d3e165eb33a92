package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"kith/replication"
	"kith/storage"
)

// write puts a chunk into the store: its records, or both sides of its edges with their users. Doing it again, after a crash at any
// point, ends with the same rows and returns the same counts.
func (im *Import) write(ctx context.Context, c *chunk) error {
	if c.rows != nil {
		return c.rows.write(ctx, im, c)
	}
	if err := im.ends(ctx, c); err != nil {
		return err
	}
	return im.writeEdges(ctx, c)
}

// ends makes sure that the users whom edges name exist, and drops the edges of users who cannot
// exist. Edges that have ended may be of users who no longer exist.
func (im *Import) ends(ctx context.Context, c *chunk) (err error) {
	in := im.inputs[c.begin.File]
	switch {
	case in.kind.IsPast():
		return nil
	case in.exported:
		err = im.findEnds(ctx, c)
	default:
		err = im.ensureEnds(ctx, c)
	}
	if err == nil && im.refusals > 0 {
		before := len(c.edges)
		c.edges = slices.DeleteFunc(c.edges, func(row edgeRow) bool { return !im.users[row.from] || !im.users[row.to] })
		c.totals.Refused += int64(before - len(c.edges))
	}
	return err
}

// unknownEnds are the users whom edges name and about whom nothing is known yet,
// ascending.
func (im *Import) unknownEnds(c *chunk) []storage.UserID {
	here := map[storage.UserID]bool{}
	for _, row := range c.edges {
		for _, id := range []storage.UserID{row.from, row.to} {
			if _, known := im.users[id]; !known {
				here[id] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(here))
}

// errUnlisted: an edge names a user who was made after its shard was exported, or
// deleted before.
var errUnlisted = errors.New("the users files of the export do not have this user")

// findEnds looks for the users in the store, where the users files have put them.
func (im *Import) findEnds(ctx context.Context, c *chunk) error {
	ids := im.unknownEnds(c)
	for i, result := range storage.UserLookups.Read(ctx, im.store, ids...) {
		if result.Err != nil {
			return fmt.Errorf("read user %d: %w", ids[i], result.Err)
		}
		if im.users[ids[i]] = result.Found; !result.Found {
			im.refuseEnd(c, ids[i], errUnlisted, "")
		}
	}
	return nil
}

// ensureEnds creates the users whom only edges name.
func (im *Import) ensureEnds(ctx context.Context, c *chunk) error {
	users := storage.Each(im.unknownEnds(c), func(id storage.UserID) storage.User {
		return storage.User{ID: id, Handle: id.ImportedHandle(), Name: id.ImportedHandle()}
	})
	results, err := im.createUsers(ctx, c, users, nil)
	if err != nil {
		return err
	}
	for i, result := range results {
		if im.users[users[i].ID] = result.Err == nil; result.Err != nil {
			im.refuseEnd(c, users[i].ID, refusal(result.Err), users[i].Handle)
		}
		if result.Value {
			c.totals.UsersMade++
		}
	}
	return nil
}

// refuseEnd refuses a user whom edges name. What is counted is the edges, also those behind this chunk.
func (im *Import) refuseEnd(c *chunk, id storage.UserID, reason error, text string) {
	im.refusals++
	im.report(Problem{File: im.inputs[c.begin.File].name, Line: c.begin.Line + 1,
		Reason: fmt.Errorf("user %d, named here or soon after: %w", id, reason), Text: text})
}

// createUsers creates users, who are active unless states say otherwise, and reports for each whether this import created it, in this
// run or, if an earlier run was killed, in that one. The only error of a single
// result is one that has a [refusal].
func (im *Import) createUsers(ctx context.Context, c *chunk, users []storage.User, states []storage.UserState) ([]storage.Result[bool], error) {
	if len(users) == 0 {
		return nil, nil
	}
	// These times belong to this chunk only, so that a later run knows which users were made in the
	// chunk that it repeats.
	now := im.at.Start + storage.Micros(c.begin.Ordinal)
	for i, u := range users {
		users[i].CreatedAt, users[i].UpdatedAt = cmp.Or(u.CreatedAt, now), cmp.Or(u.UpdatedAt, now)
	}
	im.toDo += int64(len(users))
	var results []storage.Result[bool]
	atOnce, _ := im.callSize()
	for some := range slices.Chunk(users, atOnce) {
		done := len(results)
		of := states[min(done, len(states)):min(done+len(some), len(states))]
		if err := im.paced(func() { results = append(results, im.store.CreateUsers(ctx, some, of...)...) }); err != nil {
			return nil, err
		}
		im.wrote(len(some))
	}
	for i, result := range results {
		if result.Err != nil && refusal(result.Err) == nil {
			return nil, fmt.Errorf("create user %d: %w", users[i].ID, result.Err)
		}
	}
	if c.begin.Ordinal < im.found.Pending {
		return results, im.claimUsers(ctx, users, results)
	}
	return results, nil
}

// refusal is why a user cannot be made; nil for other errors.
func refusal(err error) error {
	for _, why := range []error{storage.ErrHandleTaken, storage.ErrIDUnusable} {
		if errors.Is(err, why) {
			return why
		}
	}
	return nil
}

// claimUsers corrects the results for users that an earlier run made but did not count: those that
// have a time behind its last checkpoint, or the time that the file says.
func (im *Import) claimUsers(ctx context.Context, users []storage.User, results []storage.Result[bool]) error {
	var ids []storage.UserID
	var indexes []int
	for i, result := range results {
		if result.Err == nil && !result.Value {
			ids = append(ids, users[i].ID)
			indexes = append(indexes, i)
		}
	}
	first, end := im.at.Start+storage.Micros(im.found.Next.Ordinal), im.at.Start+storage.Micros(im.found.Pending)
	for i, result := range storage.UserLookups.Read(ctx, im.store, ids...) {
		if result.Err != nil {
			return fmt.Errorf("read user %d: %w", ids[i], result.Err)
		}
		u, at := result.Value, indexes[i]
		made := u.CreatedAt == users[at].CreatedAt || first <= u.CreatedAt && u.CreatedAt < end
		results[at].Value = result.Found && u.Handle == users[at].Handle && made
	}
	return nil
}

// writeEdges writes the forward table where it has no row yet, then sets the inverse one
// to what the forward one holds now, and propagates the consequences: a block
// ends the follow in return, requests that cross accept each other. So existing rows win on both
// sides, and a half-written chunk is completed.
func (im *Import) writeEdges(ctx context.Context, c *chunk) error {
	side, kind, err := im.inputs[c.begin.File].kind.Row()
	if err != nil {
		return err
	}
	var also []storage.Written
	rows := make([]storage.Edge, 0, len(c.edges))
	edge := func(i int) storage.Edge {
		row := c.edges[i]
		return storage.Edge{From: row.from, To: row.to, Type: kind, UpdateTime: row.time}
	}
	if err := im.apply(ctx, side, len(c.edges), edge, storage.IfAbsent, func(i int, applied storage.Changed) {
		im.count(c, c.edges[i], kind, applied)
		also = append(also, applied.Also...)
		if row := applied.Row; row.UpdateTime > 0 || row.Type != storage.None { // otherwise it was refused: one blocks the other
			rows = append(rows, row)
		}
	}); err != nil {
		return err
	}
	c.edges = nil
	slices.SortFunc(rows, func(a, b storage.Edge) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From))
	})
	if err := im.apply(ctx, side.Replica(), len(rows), func(i int) storage.Edge { return rows[i] }, storage.IfNewer, func(_ int, applied storage.Changed) {
		also = append(also, applied.Also...)
	}); err != nil {
		return err
	}
	return im.propagate(ctx, also)
}

// propagate applies the consequences of rows to their other sides.
func (im *Import) propagate(ctx context.Context, also []storage.Written) error {
	propagator := replication.Propagator{Store: im.store}
	for rows := range slices.Chunk(also, rowsAtOnce) {
		if left := propagator.Propagate(ctx, rows); len(left) > 0 {
			e := left[0].Row.Edge
			return fmt.Errorf("propagate %s from %d to %d: %w", left[0].Row.Side, e.From, e.To, left[0].Err)
		}
	}
	return nil
}

// rowsAtOnce is how many rows are propagated by one call: their chains are kept.
const rowsAtOnce = 5000

const (
	// edgesAtOnce is how many edges a call writes, about: on each shard they are one transaction, for which writers of the
	// same owners wait.
	edgesAtOnce = 50_000
	// callsAtOnce is how many calls write beside each other. More make SQLite wait for itself, and a server no faster.
	callsAtOnce = 2

	// gentleEdges is edgesAtOnce with [Config.MaxLoad]: some 50 ms.
	gentleEdges = 5_000
)

// callSize is how many rows a call writes, about, and how many calls write at a time.
func (im *Import) callSize() (rows, calls int) {
	if im.MaxLoad < 1 {
		return gentleEdges, 1
	}
	return edgesAtOnce, callsAtOnce
}

// paced writes rows, and then pauses as [Config.MaxLoad] has it. It writes nothing once the import has been interrupted, if it can be
// continued.
func (im *Import) paced(write func()) error {
	if im.canStop() {
		return errStopped
	}
	im.pace(write)
	return nil
}

// errStopped ends a chunk half-way: the import was interrupted, and can be continued.
var errStopped = errors.New("stopped")

// apply writes n edges, which are in the order of the tables, and passes on what became of each, one at a time.
func (im *Import) apply(
	ctx context.Context, side storage.Side, n int, edge func(int) storage.Edge, rule storage.Rule, each func(int, storage.Changed),
) error {
	atOnce, calls := im.callSize()
	writing, failed := errgroup.WithContext(ctx)
	writing.SetLimit(calls)
	var mu sync.Mutex
	for from, to := 0, 0; from < n && failed.Err() == nil; from = to {
		edges := make([]storage.Edge, 0, min(n-from, atOnce))
		for to = from; to < n && !isEnd(side, edges, edge(to), atOnce); to++ {
			edges = append(edges, edge(to))
		}
		writing.Go(func() error {
			var results []storage.Result[storage.Changed]
			if err := im.paced(func() { results = im.store.Apply(ctx, side, edges, rule) }); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for i, result := range results {
				if result.Err != nil {
					return fmt.Errorf("write %s from %d to %d: %w", side, edges[i].From, edges[i].To, result.Err)
				}
				each(from+i, result.Value)
			}
			im.edgeRows += int64(len(edges))
			im.wrote(len(edges))
			return nil
		})
	}
	return cmp.Or(writing.Wait(), ctx.Err())
}

// isEnd reports whether a call ends before an edge: after the last edge of an owner, unless that one has too many.
func isEnd(side storage.Side, edges []storage.Edge, next storage.Edge, atOnce int) bool {
	if len(edges) < atOnce {
		return false
	}
	last := edges[len(edges)-1]
	return side.Owner(last.Pair()) != side.Owner(next.Pair()) || len(edges) == 2*atOnce
}

// count counts a line by the row that is stored now.
//
// The time of an untimed line is the line's own, so it also identifies the row's
// origin. A timed row counts as written by an earlier run if it is in the chunk in which that run
// was killed and has the line's values; a row that had these values before the import cannot be
// distinguished from it. A request that was written by that run and has been accepted by one in
// return has other values by now, and counts as existed.
func (im *Import) count(c *chunk, row edgeRow, kind storage.EdgeType, applied storage.Changed) {
	base := im.at.Start - window
	was := applied.Row
	mine := was.Type == kind && was.UpdateTime == row.time && (!row.isTimed() || row.ordinal() < im.found.Pending)
	switch {
	case applied.Changed || mine:
		c.totals.Edges++
	case base <= was.UpdateTime && was.UpdateTime < base+storage.Micros(row.ordinal()):
		c.totals.Duplicates++
	default:
		c.totals.Existed++
	}
}
