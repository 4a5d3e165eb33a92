package oracle

import (
	"context"
	"slices"

	"kith/storage"
)

// Restore implements [storage.Store].
func (s *Store) Restore(ctx context.Context, r storage.Restored) []storage.Result[bool] {
	return slices.Concat(
		restore(ctx, s, r.Posts, s.restorePost),
		restore(ctx, s, r.Comments, s.restoreComment),
		restore(ctx, s, r.Lists, s.restoreList),
		restore(ctx, s, r.Identities, func(l storage.LinkedIdentity) storage.Result[bool] {
			made, err := s.restoreIdentity(l)
			return storage.Result[bool]{Value: made, Found: err == nil, Err: err}
		}),
		restore(ctx, s, r.Moderation, func(e storage.ModerationEntry) storage.Result[bool] {
			return s.restoreModeration(e, r.At)
		}),
		restore(ctx, s, r.Details, s.addDetail),
		restore(ctx, s, r.Annotations, func(a storage.Annotation) storage.Result[bool] { return s.addAnnotation(r.Kind, a) }),
	)
}

func restore[T any](ctx context.Context, s *Store, rows []T, one func(T) storage.Result[bool]) []storage.Result[bool] {
	if err := ctx.Err(); err != nil {
		return refuse(make([]storage.Result[bool], len(rows)), err)
	}
	defer s.write(ctx)()
	return storage.Each(rows, one)
}
