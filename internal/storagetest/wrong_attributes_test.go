package storagetest_test

import (
	"context"
	"encoding/json"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about attributes, and about the first time of a follow.
var attributeMistakes = []mistake{
	{"attributes are replaced as a whole", func(s *oracle.Store, w *double.Store) {
		w.Instead.UpdateProfile = func(ctx context.Context, id storage.UserID, change storage.ProfileChange, at storage.Micros) (storage.User, bool, error) {
			old, _ := storage.UserLookups.Read(ctx, s, id)[0].Value.Attributes.Values()
			for name := range old {
				if _, given := change.Attributes[name]; !given {
					change.Attributes[name] = json.RawMessage("null")
				}
			}
			return s.UpdateProfile(ctx, id, change, at)
		}
	}, "attributes/AChangeMergesThem", promiseOnly},
	{"deleted posts are not listed", momentsWith(func(m *wrongMoment) {
		m.post = func(p storage.PostRow) bool { return !p.Deleted }
	}), "attributes/ADeletedPostHasNone", promiseOnly},
	{"the first time is forgotten", reads(func(ctx context.Context, s *oracle.Store, _ storage.Side, pairs []storage.Pair) []storage.Result[storage.EdgeMark] {
		marks := storage.MarkLookups.Read(ctx, s, pairs...)
		for i, edge := range storage.EdgeLookups[storage.Forward].Read(ctx, s, pairs...) {
			if marks[i].Value.FirstAt > 0 {
				marks[i].Value.FirstAt = edge.Value.UpdateTime
			}
		}
		return marks
	}, storage.MarkLookups), "marks/TheFirstTimeStays", promiseOnly},
	{"first follows need no edge", func(s *oracle.Store, w *double.Store) {
		w.Instead.Restore = func(ctx context.Context, r storage.Restored) []storage.Result[bool] {
			results := s.Restore(ctx, r)
			for i := range results {
				results[i].Found = results[i].Found || r.Kind == storage.AnnotationFirst
			}
			return results
		}
	}, "beside/AFirstFollowNeedsAnEdge", promiseOnly},
}
