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

// rows are those of a chunk of records.
type rows interface {
	// reader adds records one by one. A record that it refuses is malformed.
	reader(c *chunk) func(record []string, line, ordinal int64) error

	// write writes the rows that the store does not have.
	write(ctx context.Context, im *Import, c *chunk) error
}

// newRows are the rows of a chunk of a file of records. A row is of the future if it is dated later than the start of the import,
// which an import that is continued keeps.
func (in *input) newRows(things map[int64]bool, start storage.Micros) rows {
	switch in.kind {
	case graphfile.Users:
		return &userRows{columns: in.columns, file: in.name}
	case graphfile.Posts:
		return &recordRows[storage.PostRow, storage.PostID]{
			format: graphfile.PostFormat, key: func(p storage.PostRow) storage.PostID { return p.PostID },
			read: func(p *storage.PostRow, _ int64, r *Report) {
				if p.At > start && !p.Deleted {
					r.FuturePosts++
				}
			},
			restore: as(func(rows []storage.PostRow) storage.Restored { return storage.Restored{Posts: rows} }), written: func(r *Report) *int64 { return &r.Posts },
		}
	case graphfile.Comments:
		return &recordRows[storage.Comment, storage.CommentID]{
			format: graphfile.CommentFormat, key: func(c storage.Comment) storage.CommentID { return c.CommentID },
			users:   func(c storage.Comment) []storage.UserID { return []storage.UserID{c.By} },
			restore: as(func(rows []storage.Comment) storage.Restored { return storage.Restored{Comments: rows} }), written: func(r *Report) *int64 { return &r.Comments },
		}
	case graphfile.Favorites:
		return &recordRows[storage.Edge, storage.Pair]{
			format: graphfile.FavoriteFormat, key: storage.Edge.Pair, users: favoriteUsers,
			restore: func(ctx context.Context, s storage.Store, rows []storage.Edge) []storage.Result[bool] {
				return restoreItems(ctx, s, storage.Favorites, rows)
			},
			written: func(r *Report) *int64 { return &r.Favorites },
		}
	case graphfile.Lists:
		return &recordRows[storage.UserList, storage.ListID]{
			format: graphfile.ListFormat, key: func(l storage.UserList) storage.ListID { return l.ListID },
			restore: as(func(rows []storage.UserList) storage.Restored { return storage.Restored{Lists: rows} }), written: func(r *Report) *int64 { return &r.Beside },
		}
	case graphfile.Related:
		return &recordRows[storage.RelationRow, storage.Pair]{
			format: graphfile.RelationFormat(things), key: func(r storage.RelationRow) storage.Pair { return r.Pair() }, users: relationUsers,
			restore: restoreRelations, written: func(r *Report) *int64 { return &r.Relations },
		}
	case graphfile.Identities:
		return &recordRows[storage.LinkedIdentity, storage.Identity]{
			format: graphfile.IdentityFormat, key: func(l storage.LinkedIdentity) storage.Identity { return l.Identity },
			users:   func(l storage.LinkedIdentity) []storage.UserID { return []storage.UserID{l.User} },
			restore: as(func(rows []storage.LinkedIdentity) storage.Restored { return storage.Restored{Identities: rows} }), written: func(r *Report) *int64 { return &r.Identities },
		}
	case graphfile.Moderation:
		return &recordRows[storage.ModerationEntry, storage.Place]{
			format: graphfile.ModerationFormat, key: storage.ModerationEntry.Place,
			read: func(e *storage.ModerationEntry, ordinal int64, _ *Report) {
				if e.At > start { // otherwise all later entries of its owner would be of the future, too
					e.At = start + 1 + storage.Micros(ordinal) // in their order, and the same if it is read again
				}
			},
			restore: as(func(rows []storage.ModerationEntry) storage.Restored {
				return storage.Restored{Moderation: rows, At: storage.MicrosOf(time.Now())} // gateways look for changes by their times
			}),
			written: func(r *Report) *int64 { return &r.Beside },
		}
	}
	kind, _ := in.kind.Annotation()
	return &recordRows[storage.Annotation, storage.Pair]{
		format: graphfile.AnnotationFormat(kind), key: func(b storage.Annotation) storage.Pair { return b.Pair },
		restore: as(func(rows []storage.Annotation) storage.Restored {
			return storage.Restored{Annotations: rows, Kind: kind}
		}),
		written: func(r *Report) *int64 { return &r.Beside },
	}
}

// recordRows are rows of a kind of records besides users, each once.
type recordRows[T any, K comparable] struct {
	format  graphfile.Format[T]
	key     func(T) K
	read    func(row *T, ordinal int64, r *Report) // changes a row, and counts what is told of it whether it is written or not; may be nil
	users   func(T) []storage.UserID               // who have to exist; nil: the store looks itself
	restore func(context.Context, storage.Store, []T) []storage.Result[bool]
	written func(*Report) *int64 // where the rows are counted

	list []recordRow[T]
}

type recordRow[T any] struct {
	row     T
	line    int64
	ordinal int64 // of the record, from 0, over all files
}

// reader implements rows. If a key comes twice, the first record is kept.
func (r *recordRows[T, K]) reader(c *chunk) func(record []string, line, ordinal int64) error {
	here := make(map[K]bool)
	return func(record []string, line, ordinal int64) error {
		row, err := r.format.Read(record)
		switch {
		case err != nil:
			return err
		case here[r.key(row)]:
			c.totals.Duplicates++
			return nil
		}
		here[r.key(row)] = true
		if r.read != nil {
			r.read(&row, ordinal, &c.totals)
		}
		r.list = append(r.list, recordRow[T]{row, line, ordinal})
		return nil
	}
}

// addedAtOnce is how many rows of records are passed to the store in one call.
const addedAtOnce = 5000

// errNothingBeside: the follow, the pending request, the post or the user to which a row belongs
// does not exist.
var errNothingBeside = errors.New("there is nothing that it belongs to")

// write implements rows. In a chunk that an earlier run may have written, an existing row counts as written by that run.
func (r *recordRows[T, K]) write(ctx context.Context, im *Import, c *chunk) error {
	if r.users != nil {
		if err := r.dropUnknown(ctx, im, c); err != nil {
			return err
		}
	}
	im.toDo += int64(len(r.list))
	for some := range slices.Chunk(r.list, addedAtOnce) {
		bare := storage.Each(some, func(row recordRow[T]) T { return row.row })
		var results []storage.Result[bool]
		if err := im.paced(func() { results = r.restore(ctx, im.store, bare) }); err != nil {
			return err
		}
		for i, result := range results {
			switch err := result.Err; {
			case errors.Is(err, storage.ErrLimitReached), errors.Is(err, storage.ErrKeyTaken):
				im.refuse(c, some[i].line, err)
			case err != nil:
				return fmt.Errorf("write line %d of %s: %w", some[i].line, im.inputs[c.begin.File].name, err)
			case !result.Found:
				im.refuse(c, some[i].line, errNothingBeside)
			case result.Value || some[i].ordinal < im.found.Pending:
				*r.written(&c.totals)++
			default:
				c.totals.Existed++
			}
		}
		im.wrote(len(some))
	}
	return nil
}

// dropUnknown refuses the rows whose users do not exist.
func (r *recordRows[T, K]) dropUnknown(ctx context.Context, im *Import, c *chunk) error {
	var unknown []storage.UserID
	for _, row := range r.list {
		for _, id := range r.users(row.row) {
			if _, known := im.users[id]; !known {
				unknown = append(unknown, id)
			}
		}
	}
	unknown = storage.Distinct(unknown)
	for i, result := range storage.UserLookups.Read(ctx, im.store, unknown...) {
		if result.Err != nil {
			return fmt.Errorf("read user %d: %w", unknown[i], result.Err)
		}
		im.users[unknown[i]] = result.Found
	}
	r.list = slices.DeleteFunc(r.list, func(row recordRow[T]) bool {
		missing := slices.ContainsFunc(r.users(row.row), func(id storage.UserID) bool { return !im.users[id] })
		if missing {
			im.refuse(c, row.line, errNothingBeside)
		}
		return missing
	})
	return nil
}

func (im *Import) refuse(c *chunk, line int64, reason error) {
	c.totals.Refused++
	im.report(Problem{File: im.inputs[c.begin.File].name, Line: line, Reason: reason})
}

// favoriteUsers: a favorite that was ended may be of users who no longer exist.
func favoriteUsers(e storage.Edge) []storage.UserID {
	if e.Type == storage.None {
		return nil
	}
	return []storage.UserID{e.From, e.To}
}

// relationUsers: what a relation leads to may be a thing, and one that has ended may be of users who no longer exist.
func relationUsers(r storage.RelationRow) []storage.UserID {
	if r.Type == storage.None {
		return nil
	}
	if r.To > storage.MaxUserID {
		return []storage.UserID{r.From}
	}
	return []storage.UserID{r.From, r.To}
}

// as restores rows as one of the fields of what a store restores.
func as[T any](field func([]T) storage.Restored) func(context.Context, storage.Store, []T) []storage.Result[bool] {
	return func(ctx context.Context, s storage.Store, rows []T) []storage.Result[bool] {
		return s.Restore(ctx, field(rows))
	}
}

// restoreRelations writes both sides of relations, and their details, unless the user already has a row for the other end and kind.
func restoreRelations(ctx context.Context, s storage.Store, rows []storage.RelationRow) []storage.Result[bool] {
	results := restoreItems(ctx, s, storage.Relations, storage.Each(rows, func(r storage.RelationRow) storage.Edge { return r.Edge }))
	var made []int // perhaps before the import was killed
	var details []storage.RelationRow
	for i, r := range results {
		if r.Found && rows[i].Detail != (storage.Detail{}) {
			made, details = append(made, i), append(details, rows[i])
		}
	}
	for i, r := range s.Restore(ctx, storage.Restored{Details: details}) {
		if r.Err != nil {
			results[made[i]] = storage.Result[bool]{Err: r.Err}
		}
	}
	return results
}

// restoreItems writes both sides of edges that name an item, unless the user already has a row for it.
func restoreItems(ctx context.Context, s storage.Store, side storage.Side, rows []storage.Edge) []storage.Result[bool] {
	results, stored := make([]storage.Result[bool], len(rows)), make([]storage.Edge, 0, len(rows))
	var from []int // the indexes in rows
	for i, r := range s.Apply(ctx, side, rows, storage.IfAbsent) {
		results[i] = storage.Result[bool]{Value: r.Value.Changed, Found: r.Err == nil, Err: r.Err}
		if r.Err == nil {
			stored, from = append(stored, r.Value.Row), append(from, i)
		}
	}
	for i, r := range s.Apply(ctx, side.Replica(), stored, storage.IfNewer) {
		if r.Err != nil {
			results[from[i]] = storage.Result[bool]{Err: r.Err}
		}
	}
	return results
}
