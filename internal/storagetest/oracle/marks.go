package oracle

import (
	"context"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/judge"
)

// findMarks answers [storage.MarkLookups].
func (s *Store) findMarks(pair storage.Pair) (storage.EdgeMark, bool) {
	if edge, _ := s.edge(storage.Forward, pair); edge.Type != storage.Following {
		return storage.EdgeMark{}, false
	}
	mark := s.mark(pair)
	return mark, mark != storage.EdgeMark{}
}

func (s *Store) mark(pair storage.Pair) storage.EdgeMark {
	mark := s.marks[pair]
	mark.FirstAt = s.firsts[pair]
	return mark
}

// findSpecials answers [storage.SpecialLookups].
func (s *Store) findSpecials(user storage.UserID) ([]storage.UserID, bool) {
	return s.specials(user), true
}

func (s *Store) specials(user storage.UserID) []storage.UserID {
	var list []storage.UserID
	for pair, mark := range s.marks {
		if pair.From == user && mark.Special {
			list = append(list, pair.To)
		}
	}
	slices.Sort(list)
	return list
}

// findMessages answers [storage.MessageLookups].
func (s *Store) findMessages(request storage.Pair) (string, bool) {
	message := s.messages[request]
	return message, message != ""
}

// SetMark implements [storage.Store].
func (s *Store) SetMark(ctx context.Context, pair storage.Pair, change storage.MarkChange) (storage.EdgeMark, bool, error) {
	if err := ctx.Err(); err != nil {
		return storage.EdgeMark{}, false, err
	}
	defer s.write(ctx)()
	if edge, _ := s.edge(storage.Forward, pair); edge.Type != storage.Following {
		return storage.EdgeMark{}, false, fmt.Errorf("mark %d → %d: %w", pair.From, pair.To, storage.ErrNoEdge)
	}
	old := s.mark(pair)
	mark, err := judge.Mark(pair.From, old, change, func() (int, error) { return len(s.specials(pair.From)), nil })
	switch {
	case err != nil:
		return storage.EdgeMark{}, false, err
	case mark == old:
		return mark, false, nil
	}
	s.marks[pair] = mark
	if mark == (storage.EdgeMark{FirstAt: mark.FirstAt}) {
		delete(s.marks, pair)
	}
	s.besideChanged(pair.From)
	return mark, true, nil
}
