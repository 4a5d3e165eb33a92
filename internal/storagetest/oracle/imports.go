package oracle

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

func (s *Store) findImports(owner storage.UserID) (parts []storage.ImportPart, found bool) {
	for id, all := range s.imports {
		if id.Owner == owner {
			for _, p := range all {
				p.Lines = ""
				parts = append(parts, p)
			}
		}
	}
	slices.SortFunc(parts, storage.ImportPart.Compare)
	return parts, true
}

func (s *Store) findRefused(q storage.RefusedQuery) (parts []storage.ImportPart, found bool) {
	for _, p := range s.imports[q.ImportID] {
		if p.Done && p.Refused > 0 && q.From <= p.Part && p.Part <= q.To {
			parts = append(parts, p)
		}
	}
	return parts, true
}

func (s *Store) findDueImports(q storage.ShardQuery[storage.ImportPart]) (due []storage.ImportPart, found bool) {
	order := func(a, b storage.ImportPart) int {
		return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Part, b.Part))
	}
	for _, parts := range on(s, q.Shard, s.imports, func(id storage.ImportID) storage.UserID { return id.Owner }) {
		for _, p := range parts {
			if p.DueAt <= q.Until && order(p, q.After) > 0 {
				due = append(due, p)
			}
		}
	}
	slices.SortFunc(due, order)
	return due[:min(q.Limit, len(due))], true
}

// AddImport implements [storage.Store].
func (s *Store) AddImport(ctx context.Context, parts []storage.ImportPart) (id storage.ImportID, err error) {
	if err := ctx.Err(); err != nil {
		return id, err
	}
	defer s.write(ctx)()
	id = parts[0].ImportID
	if _, counted := s.counts[id.Owner]; !counted {
		return storage.ImportID{}, fmt.Errorf("import of user %d: %w", id.Owner, storage.ErrUserUnknown)
	}
	var held, done []int64
	for other, parts := range s.imports {
		if other.Owner != id.Owner {
			continue
		}
		held = append(held, other.Number)
		if !slices.ContainsFunc(parts, func(p storage.ImportPart) bool { return !p.Done }) {
			done = append(done, other.Number)
		}
		id.Number = max(id.Number, other.Number+1)
	}
	if len(held) >= storage.MaxImports {
		if len(done) == 0 {
			return storage.ImportID{}, storage.ErrLimitReached
		}
		delete(s.imports, storage.ImportID{Owner: id.Owner, Number: slices.Min(done)})
	}
	s.imports[id] = storage.Each(parts, func(p storage.ImportPart) storage.ImportPart { p.ImportID = id; return p })
	return id, nil
}

// FinishImport implements [storage.Store].
func (s *Store) FinishImport(ctx context.Context, part storage.ImportPart) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	defer s.write(ctx)()
	for i, p := range s.imports[part.ImportID] {
		if p.Part == part.Part && !p.Done {
			p.Made, p.Refused, p.Done, p.Lines, p.DueAt = part.Made, part.Refused, part.Done, part.Lines, part.DueAt
			s.imports[part.ImportID][i] = p
			return true, nil
		}
	}
	return false, nil
}

// DeferImports implements [storage.Store].
func (s *Store) DeferImports(ctx context.Context, owner storage.UserID, until storage.Micros) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer s.write(ctx)()
	for id, parts := range s.imports {
		for i := range parts {
			if id.Owner == owner && !parts[i].Done {
				parts[i].DueAt = max(parts[i].DueAt, until)
			}
		}
	}
	return nil
}

// RemoveImport implements [storage.Store].
func (s *Store) RemoveImport(ctx context.Context, id storage.ImportID) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	defer s.write(ctx)()
	_, there := s.imports[id]
	delete(s.imports, id)
	return there, nil
}
