package move

import (
	"cmp"
	"context"
	"math"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// compare makes sure that both sides have the same rows. A row that differs because it has just
// been written is noted; any other is repaired, and counted. For each page that differs all notes are read, so they are kept few.
func (m *Mover) compare(ctx context.Context) error {
	if err := m.catchUp(ctx); err != nil {
		return err
	}
	for _, t := range tables {
		m.phase.Table = t.Name
		var after row
		err := m.pages(ctx, t, m.plan.From, nil, func(rows []row, upTo row) error {
			copied, err := m.copiesOf(ctx, t, rows, after, upTo)
			after = upTo
			if err != nil {
				return err
			}
			m.progress(len(rows))
			return m.settle(ctx, t, rows, copied)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// copiesOf reads the copies of a page. In another store, which was empty, each is looked up; here all rows behind one key and up to
// another are read, so that rows are found that should not be there.
func (m *Mover) copiesOf(ctx context.Context, t table, rows []row, after, upTo row) ([]row, error) {
	if m.to == m.db {
		return m.window(ctx, t, after, upTo)
	}
	return m.copies(ctx, t, storage.Each(rows, t.key))
}

// window reads the copied rows behind one key and up to another; nil is the end of the table.
func (m *Mover) window(ctx context.Context, t table, after, upTo row) (rows []row, err error) {
	to := side{m.db, m.plan.To}
	for {
		s, end, err := m.spanBehind(ctx, t, to, after) // the shard has owners of its own, too
		if err != nil {
			return nil, err
		}
		last := end == nil || upTo != nil && compareKeys(row{end}, upTo) >= 0
		if upTo != nil && (s.upTo == nil || compareKeys(row{s.upTo}, upTo) > 0) {
			s.upTo = upTo[0]
		}
		for more := true; more; {
			page, err := t.page(ctx, to, m.db.IsSQLite(), s, m.cfg.Page)
			if err != nil {
				return nil, err
			}
			if more = len(page) == m.cfg.Page; more {
				s.after = slices.Clone(t.key(page[len(page)-1]))
			}
			for i, r := range page {
				if upTo != nil && compareKeys(t.key(r), upTo) > 0 {
					page, more = page[:i], false
					break
				}
			}
			rows = append(rows, page...)
		}
		if last {
			return rows, nil
		}
		after = row{end}
	}
}

// compareKeys compares keys, or a key with the first columns of another, by the columns that both have.
func compareKeys(a, b row) int {
	for i := range min(len(a), len(b)) {
		var c int
		switch x := a[i].(type) {
		case int64:
			c = cmp.Compare(x, b[i].(int64))
		case string:
			c = cmp.Compare(x, b[i].(string))
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// settle compares the rows of a window, and copies noted rows. Rows that differ are read again after that. A row that differs even
// then has been written since, and is noted, or its note is missing.
func (m *Mover) settle(ctx context.Context, t table, rows, copied []row) error {
	differ := difference(t, rows, copied)
	m.report.Compared += int64(len(rows) - len(differ))
	if _, err := m.copyNoted(ctx, false); err != nil || len(differ) == 0 {
		return err
	}
	to, err := m.copies(ctx, t, differ)
	if err != nil {
		return err
	}
	from, err := t.find(ctx, side{m.db, m.plan.From}, differ)
	if err != nil {
		return err
	}
	left, err := m.withoutNote(ctx, t, difference(t, from, to))
	m.report.Repaired += int64(len(left))
	for chunk := range slices.Chunk(left, atOnce) {
		c, err := m.changeOf(ctx, t, chunk)
		if err == nil {
			err = m.put(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// copies reads the rows of some keys where they have gone.
func (m *Mover) copies(ctx context.Context, t table, keys []row) (rows []row, err error) {
	for to, share := range m.byShard(t, keys) {
		found, err := t.find(ctx, side{m.to, to}, share)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

// withoutNote is the keys of rows that have no note. It is called after the rows have been read,
// and no other process removes notes.
func (m *Mover) withoutNote(ctx context.Context, t table, keys []row) ([]row, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	missing := make(map[db.MovedRow]bool, len(keys))
	for _, k := range keys {
		missing[t.note(k)] = true
	}
	err := m.notes(ctx, math.MaxInt32, func(_ int64, r db.MovedRow) { delete(missing, r) })
	return slices.DeleteFunc(keys, func(k row) bool { return !missing[t.note(k)] }), err
}

// difference is the keys of rows that are not the same in both lists.
func difference(t table, a, b []row) (keys []row) {
	other := make(map[string]string, len(b))
	for _, r := range b {
		other[t.key(r).text()] = r.text()
	}
	for _, r := range a {
		k := t.key(r).text()
		if other[k] != r.text() {
			keys = append(keys, t.key(r))
		}
		delete(other, k)
	}
	for _, r := range b {
		if _, extra := other[t.key(r).text()]; extra {
			keys = append(keys, t.key(r))
		}
	}
	return keys
}
