package graphfile

import (
	"encoding/csv"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kith/accounts"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/contents"
)

// texts are texts that users may write, made of characters that CSV might handle wrongly.
func texts(least int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom([]string{`"`, `""`, ",", "\n", "\n\n", "#", `\.`, "'", ";", "=1+1", " ", "\u00a0", "李", "🙂", "\ufeff", "a", "id,handle"}),
			rapid.StringN(0, 5, -1),
		), least, 12).Draw(t, "parts")
		return strings.Join(parts, "")
	})
}

// A record that is written and read again is the same, whatever text users have put in it.
func TestAnyUserSurvivesAFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := storage.UserID(rapid.Int64Range(1, 1<<63-1).Draw(t, "id"))
		u := contents.Account{
			User: storage.User{
				ID: id, Handle: id.ImportedHandle(),
				CreatedAt: storage.Micros(rapid.Int64Range(1, int64(maxTime)-1).Draw(t, "created")),
				Name:      texts(1).Draw(t, "name"), Bio: texts(0).Draw(t, "bio"),
				Website:              rapid.SampledFrom([]string{"", "http://example.org/~ada"}).Draw(t, "website"),
				FollowingsVisibility: storage.Visibility(rapid.IntRange(0, 2).Draw(t, "followings")),
				FollowersVisibility:  storage.Visibility(rapid.IntRange(0, 2).Draw(t, "followers")),
				Undiscoverable:       rapid.Bool().Draw(t, "undiscoverable"),
				Attributes:           anyAttributes().Draw(t, "attributes"),
				Locked:               rapid.Bool().Draw(t, "locked"),
			},
			State: storage.UserState(rapid.IntRange(0, 2).Draw(t, "state")),
		}
		u.User.UpdatedAt = storage.Micros(rapid.Int64Range(int64(u.User.CreatedAt), int64(maxTime)).Draw(t, "updated"))
		checked, err := accounts.CheckProfile(storage.ProfileChange{Name: &u.User.Name, Bio: &u.User.Bio})
		if err != nil {
			t.Skip("no user can write this")
		}
		u.User.Name, u.User.Bio = *checked.Name, *checked.Bio

		record, err := UserFormat.Record(u)
		must.OK(t, err)
		var file strings.Builder
		w := csv.NewWriter(&file)
		must.OK(t, w.WriteAll([][]string{Users.Header(), record, record}))
		r := csv.NewReader(strings.NewReader(file.String()))
		r.Comment = '#'
		records, err := r.ReadAll()
		must.That(t, err == nil && len(records) == 3, "%d records, %v", len(records), err)
		head, _, _ := strings.Cut(file.String(), "\n")
		columns, err := ParseColumns([]byte(head))
		must.OK(t, err)
		for _, record := range records[1:] {
			got, err := columns.User(record)
			must.That(t, err == nil && reflect.DeepEqual(got, u), "%+v, %v, want %+v", got, err, u)
		}
	})
}

// A word or time that is not valid makes the record malformed.
func TestColumnsOfExportsAreChecked(t *testing.T) {
	columns, err := ParseColumns([]byte("id,handle,created_at,followings_visibility,discoverable,state"))
	must.OK(t, err)
	for _, tt := range []struct {
		record string
		wrong  string
	}{
		{"1,ada,,,,", ""},
		{"1,ada,1700000000.000001,nobody,false,deactivated", ""},
		{"1,ada,yesterday,,,", "a time must be"},
		{"1,ada,,friends,,", "followings_visibility is one of everyone, followers, nobody"},
		{"1,ada,,,maybe,", "discoverable is one of false, true"},
		{"1,ada,,,,deleted", "state is one of active, deactivated, deleting"},
		{"1,ada,,,,,", "want id,handle"},
	} {
		u, err := columns.User(strings.Split(tt.record, ","))
		check.Says(t, tt.record, err, tt.wrong)
		check.That(t, tt.record != "1,ada,,,," || !u.User.Undiscoverable && u.State == storage.Active && u.User.CreatedAt == 0, "without values: %+v", u)
	}
}

// What is not seen in names and addresses is taken out, and blanks and quotes of an address are escaped; other users of the file are not
// the worse for them.
func TestNamesOfAnotherProductAreTaken(t *testing.T) {
	for name, want := range map[string]string{
		"Ada\u200b": "Ada", "\u3164": "ada", "A\u200dda": "Ada", "Zoe\u0301": "Zoé", "👩\u200d💻": "👩\u200d💻", "a\ufe0f\U000e0041b": "ab", "": "ada",
	} {
		u, err := DefaultColumns().User([]string{"1", "ada", name, "", "https://example.org/\u2060a 'b'"})
		check.That(t, err == nil && u.User.Name == want && u.User.AvatarURL == "https://example.org/a%20%27b%27", "%q: %+v, %v, want %q", name, u.User, err, want)
	}
	p, err := PostFormat.Read([]string{"1", "7", "k", "1", "", "false", "", `[{"name": "a\u200b.png", "url": "https://example.org/\u200ba b", "kind": "image"}]`, ""})
	want := (storage.Media{Name: "a.png", URL: "https://example.org/a%20b", Kind: storage.Image})
	check.That(t, err == nil && len(p.Media) == 1 && p.Media[0] == want, "%+v, %v, want %+v", p.Media, err, want)
}
