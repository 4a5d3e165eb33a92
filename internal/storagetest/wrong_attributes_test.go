package storagetest_test

import (
	"context"
	"encoding/json"
	"errors"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about attributes, and about the first time of a follow.
var attributeMistakes = []mistake{
	{"attributes are replaced as a whole", func(s *oracle.Store) storage.Store { return attributesReplaced{s} }, "attributes/AChangeMergesThem", promiseOnly},
	{"long attributes are left out", func(s *oracle.Store) storage.Store { return attributesLeftOut{s} }, "attributes/TooLongTheyAreRefused", promiseOnly},
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
	{"first follows need no edge", func(s *oracle.Store) storage.Store { return firstOfNothing{s} }, "beside/AFirstFollowNeedsAnEdge", promiseOnly},
}

type attributesReplaced struct{ *oracle.Store }

func (s attributesReplaced) UpdateProfile(ctx context.Context, id storage.UserID, change storage.ProfileChange, at storage.Micros) (storage.User, bool, error) {
	old, _ := storage.UserLookups.Read(ctx, s, id)[0].Value.Attributes.Values()
	for name := range old {
		if _, given := change.Attributes[name]; !given {
			change.Attributes[name] = json.RawMessage("null")
		}
	}
	return s.Store.UpdateProfile(ctx, id, change, at)
}

type attributesLeftOut struct{ *oracle.Store }

func (s attributesLeftOut) SetMark(ctx context.Context, pair storage.Pair, change storage.MarkChange) (storage.EdgeMark, bool, error) {
	mark, changed, err := s.Store.SetMark(ctx, pair, change)
	if errors.Is(err, storage.ErrAttributesTooLong) {
		return s.Store.SetMark(ctx, pair, storage.MarkChange{})
	}
	return mark, changed, err
}

type firstOfNothing struct{ *oracle.Store }

func (s firstOfNothing) Restore(ctx context.Context, r storage.Restored) []storage.Result[bool] {
	results := s.Store.Restore(ctx, r)
	for i := range results {
		results[i].Found = results[i].Found || r.Kind == storage.AnnotationFirst
	}
	return results
}
