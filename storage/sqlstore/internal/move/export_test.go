package move

import (
	"context"

	"kith/storage/sqlstore/internal/db"
)

// Note begins a move, so that everything that is written is noted.
func Note(ctx context.Context, d *db.DB, p Plan) error { return newMover(d, p).begin(ctx) }

// Unnoted copies what has been noted, and returns how many rows differ all the same.
func Unnoted(ctx context.Context, d *db.DB, p Plan) (int64, error) {
	m := newMover(d, p)
	for before := int64(-1); before < m.report.Again; {
		before = m.report.Again
		if err := m.copyNoted(ctx, 0); err != nil {
			return 0, err
		}
	}
	err := m.compare(ctx)
	return m.report.Mended, err
}

func newMover(d *db.DB, p Plan) *Mover {
	return &Mover{db: d, plan: p, cfg: Config{OnProgress: func(Progress) {}, Step: func(string) {}}}
}
