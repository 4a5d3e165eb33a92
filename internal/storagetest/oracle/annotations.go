package oracle

import (
	"slices"

	"kith/storage"
	"kith/storage/judge"
)

// allAnnotations is all rows beside edges, in the order of their keys.
func (s *Store) allAnnotations() map[storage.AnnotationKind][]storage.Annotation {
	all := make(map[storage.AnnotationKind][]storage.Annotation)
	for pair, mark := range s.marks {
		all[storage.AnnotationMark] = append(all[storage.AnnotationMark], storage.Annotation{Pair: pair, Special: mark.Special, Text: mark.Remark, Attributes: mark.Attributes})
	}
	for pair, message := range s.messages {
		all[storage.AnnotationMessage] = append(all[storage.AnnotationMessage], storage.Annotation{Pair: pair, Text: message})
	}
	for pair, at := range s.firsts {
		all[storage.AnnotationFirst] = append(all[storage.AnnotationFirst], storage.Annotation{Pair: pair, At: at})
	}
	for _, rows := range all {
		slices.SortFunc(rows, func(a, b storage.Annotation) int { return storage.Forward.Compare(a.Pair, b.Pair) })
	}
	return all
}

func (s *Store) addAnnotation(kind storage.AnnotationKind, row storage.Annotation) storage.Result[bool] {
	switch kind {
	case storage.AnnotationMark:
		return s.addMark(row)
	case storage.AnnotationMessage:
		return s.addMessage(row)
	}
	return s.addFirst(row)
}

func (s *Store) besideChanged(user storage.UserID) {
	s.raiseVersion(user)
	counts := s.counts[user]
	s.change.AddUser(user, storage.Beside)
	s.change.AddCounts(storage.UserChange{User: user, Counts: counts, Before: counts.Version - 1})
}

func (s *Store) addDetail(row storage.RelationRow) (result storage.Result[bool]) {
	_, has := s.details[row.Pair()]
	result.Found = s.row(storage.Relations, row.Pair()) == row.Edge
	if result.Value = result.Found && !has && row.Detail != (storage.Detail{}); result.Value {
		s.details[row.Pair()] = row.Detail
		s.besideChanged(row.From)
	}
	return result
}

func (s *Store) addMark(row storage.Annotation) storage.Result[bool] {
	if edge, _ := s.edge(storage.Forward, row.Pair); edge.Type != storage.Following {
		return storage.Result[bool]{}
	}
	if _, marked := s.marks[row.Pair]; marked {
		return storage.Result[bool]{Found: true}
	}
	change := storage.MarkChange{Special: &row.Special, Remark: &row.Text}
	mark, err := judge.Mark(row.From, storage.EdgeMark{Attributes: row.Attributes}, change, func() (int, error) { return len(s.specials(row.From)), nil })
	if err != nil {
		return storage.Result[bool]{Err: err}
	}
	s.marks[row.Pair] = mark
	s.besideChanged(row.From)
	return storage.Result[bool]{Value: true, Found: true}
}

func (s *Store) addMessage(row storage.Annotation) storage.Result[bool] {
	if s.row(storage.Requests, row.Pair).Type != storage.Pending {
		return storage.Result[bool]{}
	}
	if s.messages[row.Pair] != "" {
		return storage.Result[bool]{Found: true}
	}
	s.messages[row.Pair] = row.Text
	s.besideChanged(row.From)
	return storage.Result[bool]{Value: true, Found: true}
}

func (s *Store) addFirst(row storage.Annotation) storage.Result[bool] {
	if _, known := s.edge(storage.Forward, row.Pair); !known {
		return storage.Result[bool]{}
	}
	if s.firsts[row.Pair] != 0 {
		return storage.Result[bool]{Found: true}
	}
	s.firsts[row.Pair] = row.At
	s.besideChanged(row.From)
	return storage.Result[bool]{Value: true, Found: true}
}
