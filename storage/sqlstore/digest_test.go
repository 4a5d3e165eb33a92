package sqlstore

import (
	"maps"
	"math"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sides"
)

// A row that no API writes is digested like others, and is among the rows of its group: damage may have any type, id and time.
func TestADamagedRowIsDigested(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		s := openSmall(t, location, nil)
		for _, side := range packedSides {
			row := side.Pair(150, -9).Edge(255, -3)
			_, err := s.db.Shard(0).Write.ExecContext(t.Context(), s.sql.Text(sqlInsertEdges[side]), 150, -9, 255, -3)
			must.OK(t, err)
			for _, parts := range []int{1, 7} {
				cut, everybody := sides.Cut{Parts: parts}, sides.OwnerRange{UpTo: math.MaxInt64}
				group := cut.Group(row.Pair())
				digests, err := s.Digests(t.Context(), side, 0, everybody, cut, nil)
				check.That(t, err == nil && maps.Equal(digests, map[int]sides.Digest{group: {Rows: 1, Mixed: row.Mix()}}), "%s, %d parts: %v, %v", side, parts, digests, err)
				var read []storage.Edge
				must.OK(t, s.GroupRows(t.Context(), side, 0, everybody, cut, sides.Choose(cut.Groups(), []int{group}), func(e storage.Edge) { read = append(read, e) }))
				check.Equal(t, side.String()+": rows of the group", read, []storage.Edge{row})
			}
		}
	})
}
