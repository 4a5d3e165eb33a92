package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kith/graphfile"
	"kith/storage"
)

// besideAtOnce is how many rows beside edges the store is given by one call.
const besideAtOnce = 5000

// errNothingBeside: the follow, the pending request or the user is missing to which a row belongs.
var errNothingBeside = errors.New("there is nothing that it belongs to")

// writeBeside writes marks, messages or dismissals where there is none. In a chunk that an earlier run may
// have written, a row that is there counts as written by that run.
func (im *run) writeBeside(ctx context.Context, c *chunk) (totals Report, err error) {
	in := im.inputs[c.begin.File]
	for rows := range slices.Chunk(c.beside, besideAtOnce) {
		beside := make([]storage.Beside, len(rows))
		for i, row := range rows {
			beside[i] = row.Beside
		}
		for i, r := range im.store.AddBeside(ctx, in.beside, beside) {
			row, refused := rows[i], r.Err
			switch {
			case errors.Is(r.Err, storage.ErrLimitReached):
			case r.Err != nil:
				return totals, fmt.Errorf("write %s from %d to %d: %w", graphfile.BesideKind(in.beside), row.From, row.To, r.Err)
			case !r.Found:
				refused = errNothingBeside
			case r.Value || row.ordinal < im.found.Pending:
				totals.Beside++
			default:
				totals.Existed++
			}
			if refused != nil {
				totals.Refused++
				im.report(Problem{File: in.name, Line: row.line, Reason: refused})
			}
		}
	}
	return totals, nil
}
