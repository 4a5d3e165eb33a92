package sqlstore

import (
	"cmp"
	"context"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Restore implements [storage.Store].
func (s *Store) Restore(ctx context.Context, r storage.Restored) []storage.Result[bool] {
	postAuthor := func(p storage.PostRow) storage.UserID { return p.Author }
	commentAuthor := func(c storage.Comment) storage.UserID { return c.Author }
	listOwner := func(l storage.UserList) storage.UserID { return l.Owner }
	relationOwner := func(r storage.RelationRow) storage.UserID { return r.From }
	from := func(a storage.Annotation) storage.UserID { return a.From }
	add := [...]func(*besideAdder, storage.Annotation) (found, added bool, err error){
		storage.AnnotationMark: (*besideAdder).mark, storage.AnnotationMessage: (*besideAdder).message, storage.AnnotationFirst: (*besideAdder).first,
	}[r.Kind]
	return slices.Concat(
		addByOwner(ctx, s, "posts.restore", r.Posts, postAuthor, (*writer).restorePosts),
		addByOwner(ctx, s, "comments.restore", r.Comments, commentAuthor, (*writer).restoreComments),
		addByOwner(ctx, s, "lists", r.Lists, listOwner, (*writer).restoreLists),
		s.restoreIdentities(ctx, r.Identities),
		s.restoreModeration(ctx, r.Moderation, r.At),
		addByOwner(ctx, s, "beside", r.Details, relationOwner, addingBeside((*besideAdder).detail)),
		addByOwner(ctx, s, "beside", r.Annotations, from, addingBeside(add)),
	)
}

// addedAtOnce is how many rows one transaction writes.
const addedAtOnce = 200

// addByOwner adds rows that are on the shards of their owners: rows of different shards at once, and
// rows of one shard in the order of their owners, who are locked.
func addByOwner[T any](ctx context.Context, s *Store, what string, rows []T, ownerOf func(T) storage.UserID,
	add func(w *writer, owner storage.UserID, rows []T) ([]storage.Result[bool], error),
) []storage.Result[bool] {
	shardOf := func(row T) int { return s.shards.Of(ownerOf(row)) }
	return byShard(ctx, s, rows, len(rows), shardOf, func(p db.Part, rows []T, results []storage.Result[bool]) {
		slices.SortStableFunc(p.At, func(i, j int) int { return cmp.Compare(ownerOf(rows[i]), ownerOf(rows[j])) })
		for at := range slices.Chunk(p.At, addedAtOnce) {
			added, err := transactOf(ctx, s, what, p.Shard, func(w *writer) (all []storage.Result[bool], err error) {
				for owner, some := range runs(storage.Chosen(rows, at), ownerOf) {
					if err := w.hasUser(owner); err != nil {
						return nil, err
					}
					added, err := add(w, owner, some)
					if err != nil {
						return nil, err
					}
					all = append(all, added...)
				}
				return all, nil
			})
			place(results, at, added, err)
		}
	})
}
