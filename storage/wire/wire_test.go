package wire_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"kith/storage"
	"kith/storage/wire"
)

func edges() *rapid.Generator[storage.Edge] {
	return rapid.Custom(func(t *rapid.T) storage.Edge {
		return storage.Edge{
			From:       storage.UserID(rapid.Int64Range(1, math.MaxInt64).Draw(t, "from")),
			To:         storage.UserID(rapid.Int64Range(1, math.MaxInt64).Draw(t, "to")),
			Type:       storage.EdgeType(rapid.Byte().Draw(t, "type")),
			UpdateTime: storage.Micros(rapid.Int64().Draw(t, "time")),
		}
	})
}

func TestEdgesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := rapid.SliceOfN(edges(), 0, 5).Draw(t, "edges")
		var text []byte
		for _, e := range sent {
			text = wire.AppendEdge(text, e)
		}
		r := wire.NewDecoder(string(text))
		for _, e := range sent {
			if got := r.Edge(); got != e {
				t.Fatalf("read %+v, written was %+v", got, e)
			}
		}
		if r.End() != nil {
			t.Fatal("something is left")
		}
	})
}

// TestWhatIsCutShortIsRefused: no incomplete beginning of an edge is read as an edge.
func TestWhatIsCutShortIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := wire.AppendEdge(nil, edges().Draw(t, "edge"))
		r := wire.NewDecoder(string(text[:rapid.IntRange(0, len(text)-1).Draw(t, "length")]))
		if e := r.Edge(); r.OK() || r.More() || r.End() == nil || e != (storage.Edge{}) {
			t.Fatalf("read %+v", e)
		}
		if r.Byte() != 0 || r.Uvarint() != 0 || r.UserID() != 0 || r.OK() {
			t.Fatal("reading went on")
		}
	})
}

func TestIDsThatCannotBeAreRefused(t *testing.T) {
	for name, text := range map[string][]byte{
		"0":         {0, 1, 1, 0},
		"2^63":      append([]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 1, 1, 0),
		"over 2^64": append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, 1, 1, 0),
	} {
		if r := wire.NewDecoder(string(text)); r.Edge() != (storage.Edge{}) || r.OK() {
			t.Errorf("an id of %s was read", name)
		}
	}
}

func TestRowsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := storage.Row{Side: rapid.SampledFrom(storage.AllSides[:]).Draw(t, "side"), Edge: edges().Draw(t, "edge")}
		if sent.Side.HasItem() {
			sent.Edge.Post = rapid.Int64Range(1, math.MaxInt64).Draw(t, "post")
		}
		text := wire.AppendRow(nil, sent)
		if r := wire.NewDecoder(string(text)); r.Row() != sent || r.End() != nil {
			t.Fatalf("%+v does not come back", sent)
		}
		if r := wire.NewDecoder(string(text[:rapid.IntRange(0, len(text)-1).Draw(t, "length")])); r.Row() != (storage.Row{}) || r.OK() {
			t.Fatal("a part of it is read as a row")
		}
	})
}

func TestRowsOfUnknownTablesAreRefused(t *testing.T) {
	text := wire.AppendEdge([]byte{byte(len(storage.AllSides))}, storage.Edge{From: 1, To: 2})
	if r := wire.NewDecoder(string(text)); r.Row() != (storage.Row{}) || r.OK() {
		t.Error("a row of an unknown table was read")
	}
}
