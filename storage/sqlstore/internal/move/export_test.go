package move

import (
	"context"

	"kith/storage/sqlstore/internal/db"
)

// Note begins a move, so that everything that is written is noted.
func Note(ctx context.Context, d *db.DB, p Plan) error { return newMover(d, p, Config{}).begin(ctx) }

// Unnoted copies the noted rows, and returns how many rows still differ.
func Unnoted(ctx context.Context, d *db.DB, p Plan) (int64, error) {
	m := newMover(d, p, Config{})
	if _, err := m.copyNoted(ctx, true); err != nil {
		return 0, err
	}
	err := m.compare(ctx)
	return m.report.Repaired, err
}
