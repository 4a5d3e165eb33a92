package graphfile

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kith/accounts"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// written changes a text that rapid draws into one that a user can have written, or skips it.
func written(t *rapid.T, what string, least, most int) string {
	check := accounts.CheckText
	if what == "name" || what == "url" {
		check = accounts.CheckName
	}
	text, err := check(what, texts(0).Draw(t, what), least, most)
	if err != nil {
		t.Skip("no user can write this")
	}
	return text
}

// unescaped leaves out what no address has as it is.
var unescaped = strings.NewReplacer("%", "", "\n", "", "\t", "")

// throughFile returns a record as it is read back from a file of its kind.
func throughFile(t *rapid.T, kind Kind, record []string) []string {
	var file strings.Builder
	must.OK(t, csv.NewWriter(&file).WriteAll([][]string{kind.Header(), record}))
	head, _, _ := strings.Cut(file.String(), "\n")
	now, ok := ParseHeader([]byte(head))
	must.That(t, ok && now == kind, "the header %q is of %v, %v, want %v", head, now, ok, kind)
	records, err := csv.NewReader(strings.NewReader(file.String())).ReadAll()
	must.OK(t, err)
	return records[1]
}

// A post that is written and read again is the same, whatever its author has put in it.
func TestAnyPostSurvivesAFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids, times := rapid.Int64Range(1, 1<<63-1), rapid.Int64Range(0, int64(maxTime))
		p := storage.PostRow{EditedAt: storage.Micros(times.Draw(t, "edited")), Deleted: rapid.Bool().Draw(t, "deleted")}
		p.Author, p.Number = storage.UserID(ids.Draw(t, "author")), ids.Draw(t, "post")
		p.Key, p.At = rapid.StringMatching(`[!-~]{1,64}`).Draw(t, "key"), storage.Micros(times.Draw(t, "at"))
		if !p.Deleted {
			p.Text = written(t, "text", 0, storage.MaxPostLength)
			for range rapid.IntRange(0, storage.MaxMedia).Draw(t, "files") {
				p.Media = append(p.Media, storage.Media{
					Name: written(t, "name", 0, storage.MaxMediaNameLength), URL: accounts.SeenURL("https://example.org/" + unescaped.Replace(written(t, "url", 0, 100))),
					Kind: storage.MediaKind(rapid.IntRange(int(storage.Image), int(storage.Cover)).Draw(t, "kind")),
				})
			}
		}
		record, err := PostFormat.Record(p)
		must.OK(t, err)
		got, err := PostFormat.Read(throughFile(t, Posts, record))
		must.That(t, err == nil && reflect.DeepEqual(got, p), "%+v, %v, want %+v", got, err, p)
	})
}

func TestAnyCommentSurvivesAFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.Int64Range(1, 1<<63-1)
		c := storage.Comment{
			CommentID: storage.CommentID{Author: storage.UserID(ids.Draw(t, "author")), Number: ids.Draw(t, "comment")}, Post: ids.Draw(t, "post"),
			By: storage.UserID(ids.Draw(t, "by")), Text: written(t, "text", 1, storage.MaxCommentLength),
		}
		c.Key, c.CreatedAt = rapid.StringMatching(`[!-~]{1,64}`).Draw(t, "key"), storage.Micros(rapid.Int64Range(0, int64(maxTime)).Draw(t, "at"))
		record, err := CommentFormat.Record(c)
		must.OK(t, err)
		got, err := CommentFormat.Read(throughFile(t, Comments, record))
		must.That(t, err == nil && got == c, "%+v, %v, want %+v", got, err, c)
	})
}

// Every field has a bound. A value at the bound is accepted, and a value above it is not.
func TestFieldsOfPostsHaveBounds(t *testing.T) {
	long := func(n int) string { return strings.Repeat("👩", n) }
	files := func(n int, name, url, kind string) string {
		list := make([]mediaText, n)
		for i := range list {
			list[i] = mediaText{name, "https://" + url, kind}
		}
		text, err := json.Marshal(list)
		must.OK(t, err)
		return string(text)
	}
	good := []string{"1", "2", "k", "3", "", "false", "text", "", ""}
	with := func(field int, value string) []string {
		record := append([]string(nil), good...)
		record[field] = value
		return record
	}
	escaped := strings.NewReplacer("👩", `\ud83d\udc69`).Replace(files(9, long(100), long(492), "cover"))
	for _, tt := range []struct {
		record []string
		wrong  string // a part of the message; empty if there is no error
	}{
		{good, ""},
		{good[:8], "want author,post,key"},
		{with(0, "0"), "an id must be"},
		{with(1, "-2"), "an id must be"},
		{with(2, ""), "clientKey has 1 to 64"},
		{with(2, strings.Repeat("~", 64)), ""},
		{with(2, strings.Repeat("~", 65)), "clientKey has 1 to 64"},
		{with(2, "ü"), "clientKey has 1 to 64"},
		{with(3, ""), "a time must be"},
		{with(4, "x"), "a time must be"},
		{with(4, "1700000000.5"), ""},
		{with(5, ""), "deleted is one of false, true"},
		{with(5, "true"), "neither text, media nor attributes"},
		{with(6, long(2000)), ""},
		{with(6, long(2001)), "text has 0 to 2000 characters"},
		{with(6, "\x1b[2J"), "text holds characters"},
		{with(7, "[]"), ""},
		{with(7, files(9, long(100), long(492), "cover")), ""},
		{with(7, escaped), ""},
		{with(7, files(10, "", "a", "image")), "at most 9 files"},
		{with(7, files(1, long(101), "a", "image")), "name has 0 to 100"},
		{with(7, files(1, "", long(493), "image")), "url has 1 to 500"},
		{with(7, files(1, "", "a", "gif")), "one of image, video, audio, cover"},
		{with(7, `[{"name":"","url":"http://a","kind":"image"}]`), "begins with https://"},
		{with(7, `[{"size":1}]`), "JSON array"},
		{with(7, "[] []"), "JSON array"},
		{with(7, "["+strings.Repeat(" ", maxMediaText)+"]"), "up to 65536 bytes"},
	} {
		_, err := PostFormat.Read(tt.record)
		check.Says(t, fmt.Sprintf("%.80q", tt.record), err, tt.wrong)
	}
	for text, wrong := range map[string]string{long(500): "", long(501): "to 500 characters", "\u200b": "", " ": "text has 1 to 500"} {
		_, err := CommentFormat.Read([]string{"1", "2", "3", "4", "k", "5", text})
		check.Says(t, fmt.Sprintf("%.20q", text), err, wrong)
	}
	for field, wrong := range map[int]string{0: "an id", 1: "an id", 2: "an id", 3: "an id", 4: "clientKey", 5: "a time"} {
		record := []string{"1", "2", "3", "4", "k", "5", "text"}
		record[field] = "ü"
		_, err := CommentFormat.Read(record)
		check.That(t, err != nil && strings.Contains(err.Error(), wrong), "field %d: %v, want %q", field, err, wrong)
	}
}

// Rows that no file can hold are errors, and are not written in another form.
func TestDamagedPostsAreNotWritten(t *testing.T) {
	good := storage.PostRow{PostID: storage.PostID{Author: 1, Number: 2}, Key: "k"}
	for _, damage := range []func(*storage.PostRow){
		func(p *storage.PostRow) { p.Author = 0 }, func(p *storage.PostRow) { p.Number = -1 }, func(p *storage.PostRow) { p.At = -1 },
		func(p *storage.PostRow) { p.EditedAt = maxTime + 1 }, func(p *storage.PostRow) { p.Media = []storage.Media{{Kind: 9}} },
	} {
		p := good
		damage(&p)
		record, err := PostFormat.Record(p)
		check.That(t, err != nil, "%+v: %q", p, record)
	}
	record, err := CommentFormat.Record(storage.Comment{CommentID: storage.CommentID{Author: good.Author, Number: 3}, Post: good.Number})
	check.That(t, err != nil, "a comment by nobody: %q", record)
}

func TestAnyFavoriteSurvivesAFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.Int64Range(1, 1<<63-1)
		e := storage.Edge{
			From: storage.UserID(ids.Draw(t, "user")), To: storage.UserID(ids.Draw(t, "author")), Item: ids.Draw(t, "post"),
			Type: storage.EdgeType(rapid.IntRange(0, 2).Draw(t, "type")), UpdateTime: storage.Micros(rapid.Int64Range(0, int64(maxTime)).Draw(t, "at")),
		}
		record, err := FavoriteFormat.Record(e)
		must.OK(t, err)
		got, err := FavoriteFormat.Read(throughFile(t, Favorites, record))
		must.That(t, err == nil && got == e, "%+v, %v, want %+v", got, err, e)
	})
}

func TestFavoritesHaveBounds(t *testing.T) {
	good := []string{"1", "9223372036854775807", "3", "253402300799.999999", "true"}
	_, err := FavoriteFormat.Read(good)
	check.That(t, err == nil, "%v", err)
	for column, bad := range []string{"0", "9223372036854775808", "-3", "253402300800000", ""} {
		record := append([]string(nil), good...)
		record[column] = bad
		e, err := FavoriteFormat.Read(record)
		check.That(t, err != nil, "%q is read as %+v", record, e)
	}
	_, err = FavoriteFormat.Read(good[:4])
	check.That(t, err != nil, "a record without a column is read")
	for _, e := range []storage.Edge{{From: 1, To: 2, Type: 1}, {From: 1, To: 2, Item: 3, Type: 3}, {To: 2, Item: 3, Type: 1}, {From: 1, To: 2, Item: 3, UpdateTime: -1}} {
		record, err := FavoriteFormat.Record(e)
		check.That(t, err != nil, "%+v is written as %q", e, record)
	}
}
