package graphfile

import (
	"encoding/csv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// An identity that is written and read again is the same, whatever a provider calls its users.
func TestAnyIdentitySurvivesAFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := storage.LinkedIdentity{
			Identity: storage.Identity{Issuer: rapid.String().Draw(t, "issuer"), Subject: rapid.String().Draw(t, "subject")},
			User:     storage.UserID(rapid.Int64Range(1, 1<<63-1).Draw(t, "user")), At: storage.Micros(rapid.Int64Range(0, int64(maxTime)).Draw(t, "at")),
		}
		if !l.Valid() {
			t.Skip("no provider can write this")
		}
		record, err := IdentityFormat.Record(l)
		must.OK(t, err)
		var file strings.Builder
		must.OK(t, csv.NewWriter(&file).WriteAll([][]string{Identities.Header(), record}))
		in := csv.NewReader(strings.NewReader(file.String()))
		in.Comment = '#'
		records, err := in.ReadAll()
		must.That(t, err == nil && len(records) == 2, "%v, %v", records, err)
		got, err := IdentityFormat.Read(records[1])
		must.That(t, err == nil && got == l, "%+v, %v, want %+v", got, err, l)
	})
}

func TestDamagedIdentitiesAreNotWritten(t *testing.T) {
	good := storage.LinkedIdentity{Identity: storage.Identity{Issuer: "https://id.example.org", Subject: "x"}, User: 1}
	_, err := IdentityFormat.Record(good)
	must.OK(t, err)
	for name, change := range map[string]func(*storage.LinkedIdentity){
		"no user": func(l *storage.LinkedIdentity) { l.User = 0 }, "no subject": func(l *storage.LinkedIdentity) { l.Subject = "" },
		"no time": func(l *storage.LinkedIdentity) { l.At = -1 }, "two lines": func(l *storage.LinkedIdentity) { l.Subject = "a\r\nb" },
	} {
		bad := good
		if change(&bad); bad == good {
			t.Fatal(name)
		}
		_, err := IdentityFormat.Record(bad)
		check.That(t, err != nil, "%s: it is written", name)
	}
}
