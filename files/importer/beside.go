package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/files/graphfile"
	"kith/storage"
)

// addedAtOnce is how many rows of records are passed to the store in one call.
const addedAtOnce = 5000

// errNothingBeside: the follow, the pending request, the post or the user to which a row belongs
// does not exist.
var errNothingBeside = errors.New("there is nothing that it belongs to")

// writeBeside writes those marks, messages or dismissals that do not exist yet.
func (im *run) writeBeside(ctx context.Context, c *chunk) (totals Report, err error) {
	kind := im.inputs[c.begin.File].beside
	err = addRows(im, c, c.beside, &totals, &totals.Beside, func(rows []storage.Beside) []storage.Result[bool] {
		return im.store.AddBeside(ctx, kind, rows)
	})
	return totals, err
}

// writePosts writes those posts whose numbers do not exist yet.
func (im *run) writePosts(ctx context.Context, c *chunk) (totals Report, err error) {
	now := storage.MicrosOf(time.Now())
	for _, p := range c.posts {
		if p.row.At > now && !p.row.Deleted {
			totals.FuturePosts++
		}
	}
	err = addRows(im, c, c.posts, &totals, &totals.Posts, func(posts []storage.PostRow) []storage.Result[bool] {
		return im.store.RestorePosts(ctx, posts)
	})
	return totals, err
}

// writeComments writes those comments, by users who exist, whose numbers do not exist yet.
func (im *run) writeComments(ctx context.Context, c *chunk) (totals Report, err error) {
	known, err := ofUsers(ctx, im, c, c.comments, &totals, func(c storage.NewComment) []storage.UserID { return []storage.UserID{c.By} })
	if err != nil {
		return totals, err
	}
	err = addRows(im, c, known, &totals, &totals.Comments, func(comments []storage.NewComment) []storage.Result[bool] {
		return im.store.RestoreComments(ctx, comments)
	})
	return totals, err
}

// writeFavorites writes both sides of favorites, unless the user already has a row for the post.
// Favorites that were ended may be of users who no longer exist.
func (im *run) writeFavorites(ctx context.Context, c *chunk) (totals Report, err error) {
	known, err := ofUsers(ctx, im, c, c.favorites, &totals, func(e storage.Edge) []storage.UserID {
		if e.Type == storage.None {
			return nil
		}
		return []storage.UserID{e.From, e.To}
	})
	if err != nil {
		return totals, err
	}
	err = addRows(im, c, known, &totals, &totals.Favorites, func(rows []storage.Edge) []storage.Result[bool] {
		results, stored := make([]storage.Result[bool], len(rows)), make([]storage.Edge, 0, len(rows))
		var from []int // the indexes in rows
		for i, r := range im.store.Apply(ctx, storage.Favorites, rows, storage.IfAbsent) {
			results[i] = storage.Result[bool]{Value: r.Value.Changed, Found: r.Err == nil, Err: r.Err}
			if r.Err == nil {
				stored, from = append(stored, r.Value.Row), append(from, i)
			}
		}
		for i, r := range im.store.Apply(ctx, storage.FavoriteInbox, stored, storage.IfNewer) {
			if r.Err != nil {
				results[from[i]] = storage.Result[bool]{Err: r.Err}
			}
		}
		return results
	})
	return totals, err
}

// writeIdentities links identities of users who exist.
func (im *run) writeIdentities(ctx context.Context, c *chunk) (totals Report, err error) {
	known, err := ofUsers(ctx, im, c, c.identities, &totals, func(l storage.LinkedIdentity) []storage.UserID { return []storage.UserID{l.User} })
	if err != nil {
		return totals, err
	}
	err = addRows(im, c, known, &totals, &totals.Identities, func(rows []storage.LinkedIdentity) []storage.Result[bool] {
		return im.store.RestoreIdentities(ctx, rows)
	})
	return totals, err
}

// ofUsers are those of some rows whose users exist. It refuses the others.
func ofUsers[T any](ctx context.Context, im *run, c *chunk, rows []recordRow[T], totals *Report, users func(T) []storage.UserID) (known []recordRow[T], err error) {
	var unknown []storage.UserID
	for _, r := range rows {
		for _, id := range users(r.row) {
			if _, known := im.users[id]; !known {
				unknown = append(unknown, id)
			}
		}
	}
	slices.Sort(unknown)
	unknown = slices.Compact(unknown)
	for i, r := range im.store.Users(ctx, unknown) {
		if r.Err != nil {
			return nil, fmt.Errorf("read user %d: %w", unknown[i], r.Err)
		}
		im.users[unknown[i]] = r.Found
	}
	for _, r := range rows {
		if slices.ContainsFunc(users(r.row), func(id storage.UserID) bool { return !im.users[id] }) {
			im.refuse(c, r.line, errNothingBeside, totals)
			continue
		}
		known = append(known, r)
	}
	return known, nil
}

// addRows adds rows of records and counts those that were written. In a chunk that an earlier run may
// have written, an existing row counts as written by that run.
func addRows[T any](im *run, c *chunk, rows []recordRow[T], totals *Report, written *int64, add func([]T) []storage.Result[bool]) error {
	for some := range slices.Chunk(rows, addedAtOnce) {
		bare := make([]T, len(some))
		for i, r := range some {
			bare[i] = r.row
		}
		for i, r := range add(bare) {
			switch {
			case errors.Is(r.Err, storage.ErrLimitReached), errors.Is(r.Err, storage.ErrKeyTaken), errors.Is(r.Err, storage.ErrIdentityTaken):
				im.refuse(c, some[i].line, r.Err, totals)
			case r.Err != nil:
				return fmt.Errorf("write line %d of %s: %w", some[i].line, im.inputs[c.begin.File].name, r.Err)
			case !r.Found:
				im.refuse(c, some[i].line, errNothingBeside, totals)
			case r.Value || some[i].ordinal < im.found.Pending:
				*written++
			default:
				totals.Existed++
			}
		}
		im.wrote(len(some))
	}
	return nil
}

func (im *run) refuse(c *chunk, line int64, reason error, totals *Report) {
	totals.Refused++
	im.report(Problem{File: im.inputs[c.begin.File].name, Line: line, Reason: reason})
}

// besideOf reads a row of the kind that a file is of.
func (in *input) besideOf(record []string) (storage.Beside, error) {
	return graphfile.ParseBeside(in.beside, record)
}
