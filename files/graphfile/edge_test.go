package graphfile

import (
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// Any edge that a line can hold is read back from the line, to the microsecond.
func TestAnyEdgeSurvivesALine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.Int64Range(1, 1<<63-1)
		seconds := rapid.Map(rapid.Int64Range(0, int64(maxTime/1e6)), func(s int64) int64 { return s * 1e6 })
		times := rapid.OneOf(rapid.Int64Range(0, int64(maxTime)), seconds)
		e := storage.Edge{
			From: storage.UserID(ids.Draw(t, "from")), To: storage.UserID(ids.Draw(t, "to")),
			UpdateTime: storage.Micros(times.Draw(t, "time")),
		}
		line := AppendLine(nil, e)
		got, found, err := ParseLine(line)
		want := (Line{From: e.From, To: e.To, Time: e.UpdateTime, Timed: true})
		must.That(t, err == nil && found && got == want, "%q: %+v, %v, want %+v", line, got, err, want)
	})
}

func TestEachRelationHasARowAndAHead(t *testing.T) {
	for i, r := range Relations() {
		side, kind, err := r.Row()
		back, known := RelationOf(side, kind)
		if err != nil || !known || back != r || r.Rank() != i+1 { // behind users
			t.Errorf("%s: %s %d, %v; back %q, rank %d", r, side, kind, err, back, r.Rank())
		}
		check.Equal(t, "a head that is written and read", ParseHead(AppendHead(nil, r)), r)
	}
	for _, side := range []storage.Side{storage.Forward, storage.Requests} {
		last := map[storage.Side]storage.EdgeType{storage.Forward: storage.Denied, storage.Requests: storage.Removed}[side]
		for kind := storage.None; kind <= last+1; kind++ {
			_, known := RelationOf(side, kind)
			check.That(t, known == (kind <= last), "%s %d: %v", side, kind, known)
		}
	}
	for _, line := range []string{"# who follows whom", "#relation: following", "1 2"} {
		check.Equal(t, line, ParseHead([]byte(line)), "")
	}
}

func TestWritable(t *testing.T) {
	ok := storage.Edge{From: 1, To: 2, UpdateTime: maxTime}
	for _, e := range []storage.Edge{{From: 0, To: 2}, {From: 1, To: -2}, {From: 1, To: 2, UpdateTime: -1}, {From: 1, To: 2, UpdateTime: maxTime + 1}} {
		check.That(t, !Writable(e) && Writable(ok), "%+v: %v", e, Writable(e))
	}
}
