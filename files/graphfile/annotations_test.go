package graphfile

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kith/accounts"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// A row that is written and read again is the same, whatever text users have put in it.
func TestAnyRowBesideEdgesSurvivesAFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := storage.AnnotationKind(rapid.IntRange(0, len(storage.AnnotationKinds)-1).Draw(t, "kind"))
		ids := rapid.Int64Range(1, 1<<63-1)
		row := storage.Annotation{Pair: storage.Pair{From: storage.UserID(ids.Draw(t, "from")), To: storage.UserID(ids.Draw(t, "to"))}}
		switch kind {
		case storage.AnnotationMark:
			row.Special, row.Text = rapid.Bool().Draw(t, "special"), texts(0).Draw(t, "remark")
			row.Attributes = anyAttributes().Draw(t, "attributes")
		case storage.AnnotationMessage:
			row.Text = texts(1).Draw(t, "message")
		case storage.AnnotationFirst:
			row.At = storage.Micros(rapid.Int64Range(0, int64(maxTime)).Draw(t, "at"))
		}
		text, err := accounts.CheckText("text", row.Text, 0, storage.MaxRemarkLength)
		if row.Text = text; err != nil || kind < storage.AnnotationFirst && row == (storage.Annotation{Pair: row.Pair}) {
			t.Skip("no user can write this")
		}
		record, err := AnnotationFormat(kind).Record(row)
		must.OK(t, err)
		var file strings.Builder
		must.OK(t, csv.NewWriter(&file).WriteAll([][]string{AnnotationKind(kind).Header(), record}))
		head, _, _ := strings.Cut(file.String(), "\n")
		now, ok := ParseHeader([]byte(head))
		must.That(t, ok && now == AnnotationKind(kind), "the header %q is of %v, %v, want %v", head, now, ok, kind)
		records, err := csv.NewReader(strings.NewReader(file.String())).ReadAll()
		must.OK(t, err)
		got, err := AnnotationFormat(kind).Read(records[1])
		must.That(t, err == nil && got == row, "%+v, %v, want %+v", got, err, row)
	})
}

// anyAttributes are as stores keep them; a third of the objects has none.
func anyAttributes() *rapid.Generator[storage.Attributes] {
	return rapid.Custom(func(t *rapid.T) storage.Attributes {
		change := storage.AttributeChange{}
		for name, text := range rapid.MapOfN(rapid.StringMatching(`[a-z][A-Za-z0-9]{0,9}`), texts(0), 0, 2).Draw(t, "values") {
			change[name], _ = json.Marshal(text)
		}
		attributes, err := change.Apply("")
		if err != nil {
			t.Skip("too long")
		}
		return attributes
	})
}

func TestRowsBesideEdgesAreChecked(t *testing.T) {
	long := func(n int) string { return strings.Repeat("é", n) }
	for _, tt := range []struct {
		kind   storage.AnnotationKind
		record []string
		wrong  string
	}{
		{storage.AnnotationMark, []string{"1", "2", "True", long(100), ""}, ""},
		{storage.AnnotationMark, []string{"1", "2", "false", long(101), ""}, "remark has 0 to 100 characters"},
		{storage.AnnotationMark, []string{"1", "2", "false", " ", ""}, "says nothing"},
		{storage.AnnotationMark, []string{"1", "2", "yes", "", ""}, "special is one of false, true"},
		{storage.AnnotationMark, []string{"1", "0", "true", "", ""}, "an id must be"},
		{storage.AnnotationMark, []string{"-1", "2", "true", "", ""}, "an id must be"},
		{storage.AnnotationMark, []string{"1", "2", "true", ""}, "want from,to,special,remark,attributes"},
		{storage.AnnotationMark, []string{"1", "2", "false", "", `{ "b": 1, "a": "<" }`}, ""},
		{storage.AnnotationMark, []string{"1", "2", "false", "", "{}"}, "says nothing"},
		{storage.AnnotationMark, []string{"1", "2", "true", "", `[1]`}, "attributes must be a JSON object"},
		{storage.AnnotationMark, []string{"1", "2", "true", "", `null`}, "attributes must be a JSON object"},
		{storage.AnnotationMark, []string{"1", "2", "true", "", `{"a":1`}, "attributes must be a JSON object"},
		{storage.AnnotationMark, []string{"1", "2", "true", "", `{"a":"` + strings.Repeat("x", storage.MaxAttributes-len(`{"a":""}`)) + `"}`}, ""},
		{storage.AnnotationMark, []string{"1", "2", "true", "", `{"a":"` + strings.Repeat("x", storage.MaxAttributes) + `"}`}, "too long"},
		{storage.AnnotationMark, []string{"1", "2", "true", "", `{"a":"\ud83d\ude00","a":"é"}`}, ""},
		{storage.AnnotationMark, []string{"1", "2", "true", "", "{\"a\":\"caf\xe9\"}"}, "attributes must be a JSON object"},
		{storage.AnnotationMark, []string{"1", "2", "true", "", `{"a":"\ud83d"}`}, "attributes must be a JSON object"},
		{storage.AnnotationFirst, []string{"1", "2", "1700000000.5"}, ""},
		{storage.AnnotationFirst, []string{"1", "2", ""}, "a time must be"},
		{storage.AnnotationMessage, []string{"1", "2", long(300)}, ""},
		{storage.AnnotationMessage, []string{"1", "2", long(301)}, "message has 0 to 300 characters"},
		{storage.AnnotationMessage, []string{"1", "2", "\x1b[2J"}, "message holds characters"},
		{storage.AnnotationMessage, []string{"1", "2", ""}, "says nothing"},
	} {
		_, err := AnnotationFormat(tt.kind).Read(tt.record)
		check.Says(t, tt.record, err, tt.wrong)
	}
	for _, line := range []string{"from,to", "from,to,remark,special,attributes", "from,to,special,remark", "id,handle", "1,2,3", `"from,to`} {
		kind, ok := ParseHeader([]byte(line))
		check.That(t, !ok, "%q is the header of %v", line, kind)
	}
}
