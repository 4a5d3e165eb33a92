package wire_test

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
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
			must.Equal(t, "what is read back", r.Edge(), e)
		}
		must.That(t, r.End() == nil, "something is left")
	})
}

// TestWhatIsCutShortIsRefused: no incomplete beginning of an edge is read as an edge.
func TestWhatIsCutShortIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := wire.AppendEdge(nil, edges().Draw(t, "edge"))
		r := wire.NewDecoder(string(text[:rapid.IntRange(0, len(text)-1).Draw(t, "length")]))
		e := r.Edge()
		must.That(t, !r.More() && r.End() != nil && e == (storage.Edge{}), "read %+v", e)
		must.That(t, r.Byte() == 0 && r.Uvarint() == 0 && r.UserID() == 0 && r.End() != nil, "reading went on")
	})
}

func TestIDsThatCannotBeAreRefused(t *testing.T) {
	for name, text := range map[string][]byte{
		"0":         {0, 1, 1, 0},
		"2^63":      append([]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 1, 1, 0),
		"over 2^64": append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, 1, 1, 0),
	} {
		r := wire.NewDecoder(string(text))
		check.That(t, r.Edge() == (storage.Edge{}) && r.End() != nil, "an id of %s was read", name)
	}
}

func TestRowsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := storage.Row{Side: rapid.SampledFrom(storage.AllSides[:]).Draw(t, "side"), Edge: edges().Draw(t, "edge")}
		if sent.Side.HasItem() {
			sent.Edge.Item = rapid.Int64Range(1, math.MaxInt64).Draw(t, "post")
		}
		text := wire.AppendRow(nil, sent)
		r := wire.NewDecoder(string(text))
		must.That(t, r.Row() == sent && r.End() == nil, "%+v does not come back", sent)
		r = wire.NewDecoder(string(text[:rapid.IntRange(0, len(text)-1).Draw(t, "length")]))
		must.That(t, r.Row() == (storage.Row{}) && r.End() != nil, "a part of it is read as a row")
	})
}

func TestRowsOfUnknownTablesAreRefused(t *testing.T) {
	text := wire.AppendEdge([]byte{byte(len(storage.AllSides))}, storage.Edge{From: 1, To: 2})
	r := wire.NewDecoder(string(text))
	check.That(t, r.Row() == (storage.Row{}) && r.End() != nil, "a row of an unknown table was read")
}

// A user, a post or a mark without attributes takes no byte for them; with attributes it comes back, and no part of it does.
func TestAttributesTakeTheirBytesOnly(t *testing.T) {
	const attributes = `{"motto":"<&>"}`
	user := storage.Profile{User: storage.User{ID: 1, Handle: "ada", Name: "Ada", CreatedAt: 5}, Exists: true}
	post := storage.Post{PostID: storage.PostID{Author: 1, Number: 2}, Text: "x", Media: []storage.Media{{URL: "https://example.org", Kind: storage.Image}}}
	mark := storage.EdgeMark{Special: true, Remark: "x", FirstAt: 1 << 50}
	without := map[string][]byte{"user": wire.AppendWhole(nil, user), "post": wire.AppendPost(nil, post), "mark": wire.AppendMark(nil, mark)}
	user.User.Attributes, post.Attributes, mark.Attributes = attributes, attributes, attributes
	for what, text := range map[string][]byte{"user": wire.AppendWhole(nil, user), "post": wire.AppendPost(nil, post), "mark": wire.AppendMark(nil, mark)} {
		check.That(t, string(text) == string(without[what])+attributes, "%s: %q, without attributes %q", what, text, without[what])
		cut := string(text[:len(text)-1])
		switch what {
		case "user":
			got, err := wire.ParseWhole(1, string(text))
			_, wrong := wire.ParseWhole(1, cut)
			check.That(t, err == nil && got == user && wrong != nil, "%+v, %v, %v", got, err, wrong)
		case "post":
			got, err := wire.ParsePost(post.PostID, string(text))
			_, wrong := wire.ParsePost(post.PostID, cut)
			check.That(t, err == nil && reflect.DeepEqual(got, post) && wrong != nil, "%+v, %v, %v", got, err, wrong)
		case "mark":
			check.Equal(t, "a mark", wire.ParseMark(text), mark)
		}
	}
}
