package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kith/graphfile"
	"kith/storage"
)

// addedAtOnce is how many rows of records the store is given by one call.
const addedAtOnce = 5000

// errNothingBeside: the follow, the pending request, the post or the user is missing to which a row
// belongs.
var errNothingBeside = errors.New("there is nothing that it belongs to")

// writeBeside writes marks, messages or dismissals where there is none.
func (im *run) writeBeside(ctx context.Context, c *chunk) (totals Report, err error) {
	kind := im.inputs[c.begin.File].beside
	err = addRows(im, c, c.beside, &totals, &totals.Beside, func(rows []storage.Beside) []storage.Result[bool] {
		return im.store.AddBeside(ctx, kind, rows)
	})
	return totals, err
}

// writePosts writes posts where there is none with that number.
func (im *run) writePosts(ctx context.Context, c *chunk) (totals Report, err error) {
	err = addRows(im, c, c.posts, &totals, &totals.Posts, func(posts []storage.PostRow) []storage.Result[bool] {
		return im.store.RestorePosts(ctx, posts)
	})
	return totals, err
}

// writeComments writes comments where there is none with that number, by users whom there are.
func (im *run) writeComments(ctx context.Context, c *chunk) (totals Report, err error) {
	var unknown []storage.UserID
	for _, r := range c.comments {
		if _, known := im.users[r.row.By]; !known {
			unknown = append(unknown, r.row.By)
		}
	}
	slices.Sort(unknown)
	unknown = slices.Compact(unknown)
	for i, r := range im.store.Users(ctx, unknown) {
		if r.Err != nil {
			return totals, fmt.Errorf("read user %d: %w", unknown[i], r.Err)
		}
		im.users[unknown[i]] = r.Found
	}
	var known []recordRow[storage.NewComment]
	for _, r := range c.comments {
		if im.users[r.row.By] {
			known = append(known, r)
			continue
		}
		im.refuse(c, r.line, errNothingBeside, &totals)
	}
	err = addRows(im, c, known, &totals, &totals.Comments, func(comments []storage.NewComment) []storage.Result[bool] {
		return im.store.RestoreComments(ctx, comments)
	})
	return totals, err
}

// addRows adds rows of records and counts those that were written. In a chunk that an earlier run may
// have written, a row that is there counts as written by that run.
func addRows[T any](im *run, c *chunk, rows []recordRow[T], totals *Report, written *int64, add func([]T) []storage.Result[bool]) error {
	for some := range slices.Chunk(rows, addedAtOnce) {
		bare := make([]T, len(some))
		for i, r := range some {
			bare[i] = r.row
		}
		for i, r := range add(bare) {
			switch {
			case errors.Is(r.Err, storage.ErrLimitReached), errors.Is(r.Err, storage.ErrKeyTaken):
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
