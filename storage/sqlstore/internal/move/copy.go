package move

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"kith/internal/sleep"
	"kith/storage"
	"kith/storage/shard"
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

// pages calls each with every page of a table on a shard: only the rows of the plan, with the last
// key that has been read.
func (m *Mover) pages(ctx context.Context, t table, ordinal int, each func(rows []row, upTo row) error) error {
	from := side{m.db, ordinal}
	var after row
	for {
		var upTo row // nil: the end of the table
		err := m.cfg.Load.Do(ctx, func() error {
			all, err := t.page(ctx, from, m.db.IsSQLite(), after, pageRows)
			if err != nil {
				return err
			}
			if len(all) == pageRows {
				upTo = t.key(all[len(all)-1])
			}
			return each(m.ours(t, all), upTo)
		})
		if err != nil || upTo == nil {
			return err
		}
		after = upTo
	}
}

// ours is the rows that are in the buckets of the plan.
func (m *Mover) ours(t table, rows []row) []row {
	return slices.DeleteFunc(rows, func(r row) bool { return !m.wanted(t.bucket(r)) })
}

// copy copies all rows, and in between those that have been written meanwhile.
func (m *Mover) copy(ctx context.Context) error {
	for _, t := range tables {
		m.cfg.Step("copy " + t.name)
		m.phase.Table = t.name
		err := m.pages(ctx, t, m.plan.From, func(rows []row, _ row) error {
			if err := m.put(ctx, change{t, rows, nil}); err != nil {
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

var sqlMark = db.Text{
	MySQL: `
INSERT INTO kith_mover (id, steps)
VALUES (1, 1)
ON DUPLICATE KEY UPDATE steps = steps + 1`,
	SQLite: `
INSERT INTO kith_mover (id, steps)
VALUES (1, 1)
ON CONFLICT (id) DO UPDATE SET steps = steps + 1`,
}

// mark tells whoever reads the binlog that the rows behind it are moved.
func (m *Mover) mark(tx *db.Tx) error {
	_, err := tx.Exec(1, tx.DB.Dialect.Text(sqlMark))
	return err
}

// A change is rows of a table that are to be written, and keys of rows that are to be removed first.
type change struct {
	table
	rows, gone []row
}

// put makes changes on the shards that get the rows, in one transaction on each.
func (m *Mover) put(ctx context.Context, changes ...change) error {
	shares := make(map[int][]change)
	for _, c := range changes {
		byShard := make(map[int]*change)
		of := func(r row) *change {
			to := m.target(c.bucket(r))
			if byShard[to] == nil {
				byShard[to] = &change{table: c.table}
			}
			return byShard[to]
		}
		for _, r := range c.rows {
			share := of(r)
			share.rows = append(share.rows, r)
		}
		for _, r := range c.gone {
			share := of(r)
			share.gone = append(share.gone, r)
		}
		for to, share := range byShard {
			shares[to] = append(shares[to], *share)
		}
	}
	for to, list := range shares {
		err := m.to.Exclusive(ctx, "move", to, func(tx *db.Tx) error {
			if err := errors.Join(m.mark(tx), m.guard(tx)); err != nil {
				return err
			}
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

func (c change) make(tx *db.Tx) error {
	for chunk := range slices.Chunk(c.gone, atOnce) {
		if err := c.remove(tx, chunk); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(c.rows, atOnce) {
		if err := c.write(tx, chunk); err != nil {
			return err
		}
	}
	return nil
}

const (
	// Served by the primary key.
	sqlNoted = `
SELECT position, kind, owner, peer, handle
FROM kith_moved_rows
ORDER BY position LIMIT ?`

	// Served by the primary key.
	sqlForgetNoted = `
DELETE FROM kith_moved_rows
WHERE position IN (?)`
)

// copyNoted copies what has been noted, the oldest part; all of it, if the buckets are closed. What is
// noted while it reads a row is copied later. It reports whether that was all.
func (m *Mover) copyNoted(ctx context.Context, closed bool) (all bool, err error) {
	for {
		var positions []any
		noted := make(map[db.RowKind][]db.MovedRow)
		from := side{m.db, m.plan.From}
		err := from.read(ctx, sqlNoted, []any{notesAtOnce}, func(rows *sql.Rows) error {
			var position int64
			var r db.MovedRow
			err := rows.Scan(&position, &r.Kind, &r.Owner, &r.Peer, &r.Handle)
			positions = append(positions, position)
			noted[r.Kind] = append(noted[r.Kind], r)
			return err
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
			return len(positions) < notesAtOnce, nil // what has come meanwhile is for the next time
		}
	}
}

// changesOf are those that make rows at the other shard what they are now.
func (m *Mover) changesOf(ctx context.Context, kind db.RowKind, noted []db.MovedRow) (changes []change, err error) {
	seen := make(map[db.MovedRow]bool, len(noted))
	var keys []row
	for _, r := range noted {
		if seen[r] || !m.wanted(r.Bucket()) {
			continue
		}
		seen[r] = true
		switch kind {
		case db.HandleRow:
			keys = append(keys, row{r.Handle})
		case db.UserRows, db.Dismissals:
			keys = append(keys, row{int64(r.Owner)})
		default:
			keys = append(keys, row{int64(r.Owner), int64(r.Peer)})
		}
	}
	for _, t := range tables {
		if t.kind != kind {
			continue
		}
		for chunk := range slices.Chunk(keys, atOnce) {
			c, err := m.changeOf(ctx, t, chunk)
			if err != nil {
				return nil, err
			}
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// changeOf copies the rows of some keys, and removes those that are no longer there.
func (m *Mover) changeOf(ctx context.Context, t table, keys []row) (change, error) {
	have, err := t.find(ctx, side{m.db, m.plan.From}, keys)
	if err != nil {
		return change{}, err
	}
	if len(keys[0]) < len(t.keys) {
		return change{t, have, keys}, nil // whole lists: all that is there goes first
	}
	there := make(map[string]bool, len(have))
	for _, r := range have {
		there[t.key(r).text()] = true
	}
	gone := slices.DeleteFunc(slices.Clone(keys), func(k row) bool { return there[k.text()] })
	return change{t, have, gone}, nil
}

// compare sees that both sides have the same rows. Those that differ because they have just been
// written are noted; any other is mended, and counted.
func (m *Mover) compare(ctx context.Context) error {
	for _, t := range tables {
		m.phase.Table = t.name
		var after row
		err := m.pages(ctx, t, m.plan.From, func(rows []row, upTo row) error {
			copied, err := m.window(ctx, t, after, upTo)
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

// window reads the copied rows behind one key and up to another.
func (m *Mover) window(ctx context.Context, t table, after, upTo row) (rows []row, err error) {
	to := side{m.db, m.plan.To}
	for {
		page, err := t.page(ctx, to, m.db.IsSQLite(), after, pageRows)
		if err != nil {
			return nil, err
		}
		last := len(page) < pageRows
		for i, r := range page {
			if upTo != nil && compareKeys(t.key(r), upTo) > 0 {
				page, last = page[:i], true
				break
			}
		}
		if len(page) > 0 {
			after = t.key(page[len(page)-1])
		}
		rows = append(rows, m.ours(t, slices.Clone(page))...)
		if last {
			return rows, nil
		}
	}
}

func compareKeys(a, b row) int {
	for i := range a {
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

// settle compares the rows of a window. Those that differ are read again once what is noted has been
// copied. What differs even then has been written since, and is noted, or a note is missing.
func (m *Mover) settle(ctx context.Context, t table, rows, copied []row) error {
	differ := difference(t, rows, copied)
	m.report.Compared += int64(len(rows) - len(differ))
	if len(differ) == 0 {
		return nil
	}
	if _, err := m.copyNoted(ctx, false); err != nil {
		return err
	}
	var left []row
	for chunk := range slices.Chunk(differ, atOnce) {
		to, err := m.copies(ctx, t, chunk)
		if err != nil {
			return err
		}
		from, err := t.find(ctx, side{m.db, m.plan.From}, chunk)
		if err != nil {
			return err
		}
		left = append(left, difference(t, from, to)...)
	}
	left, err := m.withoutNote(ctx, t, left)
	m.report.Mended += int64(len(left))
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
	shares := make(map[int][]row)
	for _, k := range keys {
		to := m.target(t.bucket(k))
		shares[to] = append(shares[to], k)
	}
	for to, share := range shares {
		found, err := t.find(ctx, side{m.to, to}, share)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

// withoutNote is the keys of rows of which there is no note. It is asked after the rows have been
// read, and nobody else takes notes away.
func (m *Mover) withoutNote(ctx context.Context, t table, keys []row) ([]row, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	noted := make(map[db.MovedRow]bool)
	err := side{m.db, m.plan.From}.read(ctx, sqlNoted, []any{math.MaxInt32}, func(rows *sql.Rows) error {
		var position int64
		var r db.MovedRow
		err := rows.Scan(&position, &r.Kind, &r.Owner, &r.Peer, &r.Handle)
		noted[r] = true
		return err
	})
	return slices.DeleteFunc(keys, func(k row) bool { return noted[t.note(k)] }), err
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

// remove waits until every gateway knows of the move, and removes the rows from where they were.
func (m *Mover) remove(ctx context.Context) error {
	m.enter(Removing)
	if c, ok := find(m.db.Claims()[m.plan.From], m.plan.Buckets); ok {
		left := time.Duration(now()-c.Since) * time.Microsecond
		m.cfg.Step("keep")
		if err := sleep.For(ctx, m.cfg.Keep-left); err != nil {
			return err
		}
	}
	m.cfg.Step("remove")
	if err := m.removeRows(ctx, db.Left); err != nil {
		return err
	}
	m.enter(Done)
	return nil
}

// removeRows removes the plan's rows from the shard that has them no longer, and then its claim.
func (m *Mover) removeRows(ctx context.Context, state db.ClaimState) error {
	for _, t := range slices.Concat(tables, packedTables) {
		m.phase.Table = t.name
		err := m.pages(ctx, t, m.plan.From, func(rows []row, _ row) error {
			for chunk := range slices.Chunk(rows, 10*atOnce) {
				err := m.db.Exclusive(ctx, "move", m.plan.From, func(tx *db.Tx) error {
					if err := errors.Join(m.mark(tx), m.gone(tx, state)); err != nil {
						return err
					}
					for part := range slices.Chunk(chunk, atOnce) {
						keys := make([]row, len(part))
						for i, r := range part {
							keys[i] = t.key(r)
						}
						if err := t.remove(tx, keys); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			m.report.Removed += int64(len(rows))
			m.progress(len(rows))
			return nil
		})
		if err != nil {
			return err
		}
	}
	err := step(ctx, m.db, m.plan.From, func(old []db.Claim) ([]db.Claim, error) {
		return cut(old, m.plan.Buckets, db.Claim{Range: shard.Range{First: 0, Last: -1}}, state)
	})
	if errors.Is(err, errStep) {
		return nil // another has done it
	}
	return err
}

// gone returns an error unless the rows of the plan are to be removed from the shard.
func (m *Mover) gone(tx *db.Tx, state db.ClaimState) error {
	found := false
	err := tx.Read(1, sqlClaimHeld, []any{m.plan.Buckets.First}, func(rows *sql.Rows) error {
		var is db.ClaimState
		var token string
		err := rows.Scan(&is, &token)
		found = is == state
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: the buckets are the shard's again", storage.ErrUnavailable)
	}
	return err
}
