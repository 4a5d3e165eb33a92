package move

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// side is one of the two shards, to be read outside of a transaction.
type side struct {
	db      *db.DB
	ordinal int
}

func (s side) read(ctx context.Context, text string, args []any, each func(*sql.Rows) error) error {
	return s.db.Scan(ctx, "move", s.ordinal, text, args, each)
}

// pages calls each with every page of the plan's rows of a table on a shard, behind a key, and how far the table
// has been read with it: a key, or the first columns of one; nil is the end.
func (m *Mover) pages(ctx context.Context, t table, ordinal int, after row, each func(rows []row, upTo row) error) error {
	from := side{m.db, ordinal}
	for {
		var s span
		var end any
		err := m.cfg.Load.Do(ctx, func() (err error) {
			s, end, err = m.spanBehind(ctx, t, from, after)
			return err
		})
		if err != nil {
			return err
		}
		for more := true; more; {
			err := m.cfg.Load.Do(ctx, func() error {
				all, err := t.page(ctx, from, m.db.IsSQLite(), s, m.cfg.Page)
				if err != nil {
					return err
				}
				switch more = len(all) == m.cfg.Page; {
				case more:
					s.after = slices.Clone(t.key(all[len(all)-1]))
				case end != nil:
					s.after = row{end}
				default:
					s.after = nil
				}
				return each(m.ours(t, all), s.after)
			})
			if err != nil {
				return err
			}
		}
		if after = s.after; after == nil {
			return nil
		}
	}
}

// spanBehind is as much of a table, behind a key, as a server reads at a time, and where that ends: nil is the end of the table.
func (m *Mover) spanBehind(ctx context.Context, t table, from side, after row) (s span, end any, err error) {
	s = span{after: after, of: m.of}
	if m.of == nil {
		return s, nil, nil
	}
	end, err = t.bound(ctx, from, m.db.IsSQLite(), after, m.cfg.Page*pagesOfSpan)
	if s.upTo = end; end != nil && len(t.Keys) > 1 && !m.of.Contains(t.bucket(row{end})) {
		s.upTo = end.(int64) - 1 // the last owner may have millions of rows, none of which is moved
	}
	return s, end, err
}

// ours is the rows that are in the buckets of the plan.
func (m *Mover) ours(t table, rows []row) []row {
	return slices.DeleteFunc(rows, func(r row) bool { return !m.wanted(t.bucket(r)) })
}

// copy copies all rows that have not been copied yet, and in between those that have been written meanwhile.
func (m *Mover) copy(ctx context.Context) error {
	copied, err := m.copied(ctx)
	if err != nil {
		return err
	}
	for _, t := range tables {
		m.cfg.Step("copy " + t.Name)
		m.phase.Table = t.Name
		upTo, begun := copied[t.Name]
		if begun && len(upTo) == 0 {
			continue
		}
		err := m.pages(ctx, t, m.plan.From, upTo, func(rows []row, upTo row) error {
			if err := m.copyPage(ctx, t, rows, upTo); err != nil {
				return err
			}
			m.report.Rows += int64(len(rows))
			m.progress(len(rows))
			_, err := m.copyNoted(ctx, false)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Mover) progress(rows int) {
	m.phase.Rows += int64(rows)
	m.phase.Again = m.report.Again
	m.cfg.OnProgress(m.phase)
}

var sqlMark = db.Both(`
INSERT INTO kith_mover (id, steps)
VALUES (1, 1)
ON CONFLICT (id) DO UPDATE SET steps = steps + 1`)

// Served by the primary key.
const sqlSteps = `
SELECT steps
FROM kith_mover
WHERE id = 1`

// mark tells readers of the binlog that the rows behind it are moved.
func (m *Mover) mark(tx *db.Tx) error {
	_, err := tx.Exec(1, tx.DB.Dialect.Text(sqlMark))
	return err
}

// A change is rows of a table that are to be written, and keys of rows that are to be removed first.
type change struct {
	table
	rows, gone []row
}

// byShard divides rows, or keys of rows, by the shard that gets them.
func (m *Mover) byShard(t table, rows []row) map[int][]row {
	shares := make(map[int][]row)
	for _, r := range rows {
		to := m.target(t.bucket(r))
		shares[to] = append(shares[to], r)
	}
	return shares
}

// put makes changes on the shards that get the rows, in one transaction on each.
func (m *Mover) put(ctx context.Context, changes ...change) error {
	shares := make(map[int][]change)
	for _, c := range changes {
		for to, keys := range m.byShard(c.table, c.gone) {
			shares[to] = append(shares[to], change{table: c.table, gone: keys})
		}
		for to, rows := range m.byShard(c.table, c.rows) {
			shares[to] = append(shares[to], change{table: c.table, rows: rows})
		}
	}
	for to, list := range shares {
		err := m.inPart(ctx, to, func(tx *db.Tx) error {
			for _, c := range list {
				if err := c.make(tx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inPart writes to a shard that gets rows, in one transaction. It fails if the shard lacks what this mover has written there: it has been
// restored to before, or a replica that was behind has taken its place.
func (m *Mover) inPart(ctx context.Context, to int, write func(*db.Tx) error) error {
	var steps int64
	err := m.to.Exclusive(ctx, "move", to, func(tx *db.Tx) error {
		err := errors.Join(m.mark(tx), m.guard(tx))
		if err == nil {
			_, err = tx.ReadOne(sqlSteps, nil, &steps)
		}
		if err == nil && steps <= m.steps[to] {
			err = fmt.Errorf("%w: shard %d has lost rows that were copied to it", storage.ErrUnavailable, to)
		}
		if err != nil {
			return err
		}
		return write(tx)
	})
	if err == nil {
		m.steps[to] = steps
	}
	return err
}

func (c change) make(tx *db.Tx) error {
	if err := c.remove(tx, c.gone); err != nil {
		return err
	}
	return c.write(tx, c.rows)
}

const (
	// The oldest notes, and the position of the newest. Served by the primary key.
	sqlNoted = `
SELECT position, kind, owner, peer, handle, (SELECT MAX(position) FROM kith_moved_rows)
FROM kith_moved_rows
ORDER BY position LIMIT ?`

	// Served by the primary key.
	sqlForgetNoted = `
DELETE FROM kith_moved_rows
WHERE position IN (?)`
)

// notes calls each with the oldest notes and their positions.
func (m *Mover) notes(ctx context.Context, most int, each func(position int64, r db.MovedRow)) error {
	return side{m.db, m.plan.From}.read(ctx, sqlNoted, []any{most}, func(rows *sql.Rows) error {
		var position, newest int64
		var r db.MovedRow
		err := rows.Scan(&position, &r.Kind, &r.Owner, &r.Peer, &r.Handle, &newest)
		m.left = newest - position
		each(position, r)
		return err
	})
}

// copyNoted copies the oldest part of the noted rows, or all of them if the buckets are closed. A row that
// is noted while it is read is copied again later. copyNoted reports whether that was all.
func (m *Mover) copyNoted(ctx context.Context, closed bool) (all bool, err error) {
	for {
		var positions []any
		noted := make(map[db.RowKind][]db.MovedRow)
		err := m.notes(ctx, notesAtOnce, func(position int64, r db.MovedRow) {
			positions = append(positions, position)
			noted[r.Kind] = append(noted[r.Kind], r)
		})
		if err != nil || len(positions) == 0 {
			return err == nil, err
		}
		var changes []change
		for kind, list := range noted {
			more, err := m.changesOf(ctx, kind, list)
			if err != nil {
				return false, err
			}
			changes = append(changes, more...)
		}
		if err := m.put(ctx, changes...); err != nil {
			return false, err
		}
		err = m.db.Exclusive(ctx, "move", m.plan.From, func(tx *db.Tx) error {
			if err := m.holds(tx, db.Leaving, db.Closed); err != nil {
				return err // the notes may be of another move
			}
			for chunk := range slices.Chunk(positions, atOnce) {
				if _, err := tx.Exec(len(chunk), db.Listed(sqlForgetNoted, len(chunk)), chunk...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return false, err
		}
		m.report.Again += int64(len(positions))
		m.progress(0)
		if !closed {
			return len(positions) < notesAtOnce, nil // notes that have come meanwhile are for the next time
		}
	}
}

// changesOf are the changes that make rows at the other shard what they are here now.
func (m *Mover) changesOf(ctx context.Context, kind db.RowKind, noted []db.MovedRow) (changes []change, err error) {
	seen := make(map[db.MovedRow]bool, len(noted))
	var keys []row
	for _, r := range noted {
		if seen[r] || !m.wanted(r.Bucket()) {
			continue
		}
		seen[r] = true
		switch {
		case kind.ByText():
			keys = append(keys, row{r.Handle})
		case kind == db.UserRows:
			keys = append(keys, row{int64(r.Owner)})
		default:
			keys = append(keys, row{int64(r.Owner), int64(r.Peer)})
		}
	}
	for _, t := range tables {
		if t.Kind != kind || len(keys) == 0 {
			continue
		}
		c, err := m.changeOf(ctx, t, keys)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// changeOf copies the rows of some keys, and removes those that are no longer there.
func (m *Mover) changeOf(ctx context.Context, t table, keys []row) (change, error) {
	have, err := t.find(ctx, side{m.db, m.plan.From}, keys)
	if err != nil {
		return change{}, err
	}
	if len(keys[0]) < len(t.Keys) {
		return change{t, have, keys}, nil // whole lists: everything that is there is removed first
	}
	there := make(map[string]bool, len(have))
	for _, r := range have {
		there[t.key(r).text()] = true
	}
	gone := slices.DeleteFunc(slices.Clone(keys), func(k row) bool { return there[k.text()] })
	return change{t, have, gone}, nil
}
