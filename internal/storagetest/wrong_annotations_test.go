package storagetest_test

import (
	"context"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about what is stored beside edges.
var besideMistakes = []mistake{
	{"pages of marks begin with an owner", momentsWith(func(m *wrongMoment) {
		m.after = func(p storage.Pair) storage.Pair { return storage.Pair{From: p.From, To: 1<<63 - 1} }
	}), "beside/EveryRowComesInKeyOrder", promiseOnly},
	{"marks need no follow", func(s *oracle.Store, w *double.Store) {
		// It makes a follow when a mark is added.
		w.Instead.Restore = func(ctx context.Context, r storage.Restored) []storage.Result[bool] {
			if r.Kind == storage.AnnotationMark {
				for _, row := range r.Annotations {
					s.Apply(ctx, storage.Forward, []storage.Edge{{From: row.From, To: row.To, Type: storage.Following, UpdateTime: 1e17}}, storage.IfNewer)
				}
			}
			return s.Restore(ctx, r)
		}
	}, "beside/AMarkNeedsAFollow", promiseOnly},
	{"messages are replaced", func(s *oracle.Store, w *double.Store) {
		// It deletes messages before it adds others.
		w.Instead.Restore = func(ctx context.Context, r storage.Restored) []storage.Result[bool] {
			if r.Kind == storage.AnnotationMessage {
				for _, request := range storage.EdgeLookups[storage.Requests].Read(ctx, s, r.Annotations[0].Pair) {
					if request.Value.Type == storage.Pending {
						was := request.Value
						was.Type, was.UpdateTime = storage.None, was.UpdateTime+1
						now := request.Value
						now.UpdateTime += 2
						s.Apply(ctx, storage.Requests, []storage.Edge{was, now}, storage.IfNewer)
					}
				}
			}
			return s.Restore(ctx, r)
		}
	}, "beside/AMessageNeedsAPendingRequest", promiseOnly},
}
