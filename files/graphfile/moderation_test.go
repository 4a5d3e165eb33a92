package graphfile

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// An entry that is written and read again is the same.
func TestAnyEntrySurvivesAFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, at := rapid.Int64Range(1, 1<<63-1), rapid.Int64Range(1, int64(maxTime))
		e := storage.ModerationEntry{
			Owner: storage.UserID(id.Draw(t, "owner")), At: storage.Micros(at.Draw(t, "at")), User: storage.UserID(id.Draw(t, "user")),
			Action: storage.ModerationAction(rapid.IntRange(1, 4).Draw(t, "action")), By: "https://id.example.org op|\"1\",é ", Reason: "spam, \"and\"\nworse",
		}
		if e.Action == storage.Suspended {
			e.Until = storage.Micros(at.Draw(t, "until"))
		} else if e.Action >= storage.PostRemoved {
			e.Number = id.Draw(t, "number")
		}
		record, err := ModerationFormat.Record(e)
		must.OK(t, err)
		got, err := ModerationFormat.Read(record)
		must.That(t, err == nil && got == e, "%+v, %v, want %+v", got, err, e)
	})
}

func TestDamagedEntriesAreRefused(t *testing.T) {
	suspension := []string{"1", "5", "1", "suspended", "op", "spam", "9", ""}
	e, err := ModerationFormat.Read(suspension)
	must.That(t, err == nil && e.Until == 9_000_000, "%v %v", e, err)
	for column, texts := range map[int][]string{
		0: {"0", ""}, 1: {"", "soon"}, 2: {"0"}, 3: {"", "banned", "reinstated", "post removed"}, 4: {"", "a\nb", "caf\xe9", strings.Repeat("o", maxOperatorText+1)},
		5: {"", " ", strings.Repeat("r", storage.MaxReasonLength+1)}, 6: {"", "soon"}, 7: {"0", "1"},
	} {
		for _, text := range texts {
			record := append([]string(nil), suspension...)
			record[column] = text
			e, err := ModerationFormat.Read(record)
			check.That(t, err != nil, "%q is read as %+v", record, e)
		}
	}
}
