package declared

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
)

func write(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "declared.yaml")
	must.OK(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestWhatIsDeclaredIsRead(t *testing.T) {
	f, err := Read(write(t, `
attributes:
  user:
    pronouns: {type: String, maxLength: 40, description: How to speak of the user.}
    verified: {type: Boolean, setBy: operator}
  follow: # nothing
  post:
    price: {type: Float, setBy: owner}
    note: {type: String}
`))
	must.OK(t, err)
	want := Attributes{
		User: map[string]Attribute{"pronouns": {"String", 40, "", "How to speak of the user."}, "verified": {Type: "Boolean", SetBy: Operator}},
		Post: map[string]Attribute{"price": {Type: "Float", SetBy: Owner}, "note": {Type: "String", MaxLength: defaultLength}},
	}
	check.Equal(t, "attributes", fmt.Sprint(f.Attributes), fmt.Sprint(want))
	for _, name := range []string{"", write(t, ""), write(t, "# nothing\n"), write(t, "attributes:\n")} {
		f, err := Read(name)
		check.That(t, err == nil && len(f.Attributes.User) == 0, "%q: %v, %v", name, f, err)
	}
}

func TestKindsAreRead(t *testing.T) {
	f, err := Read(write(t, `
relations:
  subscribes: {number: 100, to: Show, max: 7, seen: everyone, ends: true}
  worksWith: {number: 999, to: User, peace: true}
`))
	must.OK(t, err)
	want := map[string]Kind{
		"SUBSCRIBES": {Number: 100, Name: "subscribes", To: "Show", Max: 7, Public: true, Timed: true},
		"WORKS_WITH": {Number: 999, Name: "worksWith", Max: defaultMax, Peace: true},
	}
	check.Equal(t, "kinds", f.Kinds(), want)
	kind := func(line string) string { return "relations:\n  a: {number: 100}\n  " + line + "\n" }
	for text, want := range map[string]string{
		kind("b: {number: 101, max: 1000000}"):          "",
		kind("B: {number: 101}"):                        "relations.B: a name is",
		kind("b: {number: 99}"):                         "relations.b: the number is 100 to 999",
		kind("b: {number: 1000}"):                       "relations.b: the number is",
		kind("b: {number: 100}"):                        "relations.b: a has the number 100, too",
		"relations: {aB: {number: 100}, a_b: {}}":       "relations.a_b: a name is",
		kind("b: {number: 101, to: show}"):              "relations.b: to is User, or",
		kind("b: {number: 101, max: 1000001}"):          "relations.b: max is 1 to",
		kind("b: {number: 101, seen: friends}"):         "relations.b: seen is owner, ends or everyone",
		kind("b: {number: 101, to: Show, peace: true}"): "relations.b: only users block",
		kind("b: {number: 101, to: Show, seen: ends}"):  "relations.b: only users block",
		kind("b: {number: 101, description: " + strings.Repeat("x", maxDescription+1) + "}"): "relations.b: the description",
		kind("b: {number: 101, unknown: 1}"):                                                 "line 3",
	} {
		_, err := Read(write(t, text))
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Each error is one line with the file, the name or the line, and the reason; what is at a bound is read.
func TestWhatCannotBeRightIsRefused(t *testing.T) {
	many := func(n int) string {
		text := "attributes:\n  user:\n"
		for i := range n {
			text += fmt.Sprintf("    a%d: {type: Int}\n", i)
		}
		return text
	}
	one := func(line string) string { return "attributes:\n  user:\n    " + line + "\n" }
	for text, want := range map[string]string{
		many(maxNames):                                                                    "",
		many(maxNames + 1):                                                                "attributes.user: there are 65 names, 64 is the most",
		"#" + strings.Repeat("x", maxBytes-1):                                             "",
		"#" + strings.Repeat("x", maxBytes):                                               "more than 65536 bytes",
		one("a" + strings.Repeat("b", 39) + ": {type: Int}"):                              "",
		one("a" + strings.Repeat("b", 40) + ": {type: Int}"):                              "up to 39 letters and digits",
		one("Verified: {type: Boolean}"):                                                  "attributes.user.Verified: a name is a small letter",
		one("is_verified: {type: Boolean}"):                                               "a name is a small letter",
		one("__a: {type: Boolean}"):                                                       "a name is a small letter",
		one("a: {type: Bool}"):                                                            "attributes.user.a: the type is one of [String Int Float Boolean DateTime]",
		one("a: {}"):                                                                      "the type is one of",
		one("a: {type: Int, maxLength: 3}"):                                               "only a String has a maxLength",
		one("a: {type: String, maxLength: 4096}"):                                         "",
		one("a: {type: String, maxLength: 4097}"):                                         "maxLength is 1 to 4096",
		one("a: {type: String, maxLength: -1}"):                                           "maxLength is 1 to 4096",
		one("a: {type: Int, setBy: nobody}"):                                              "setBy is owner or, of a user, operator",
		"attributes: {post: {a: {type: Int, setBy: operator}}}":                           "attributes.post.a: setBy is owner or, of a user, operator",
		one("a: {type: Int, description: " + strings.Repeat("x", maxDescription) + "}"):   "",
		one("a: {type: Int, description: " + strings.Repeat("x", maxDescription+1) + "}"): "the description has more than 500 bytes",
		one("a: {typ: Int}"):                                                              "line 3: ",
		"attributes:\n  users:\n    a: {type: Int}\n":                                     "line 2: ",
		one("a: {type: Int}\n    a: {type: Float}"):                                       "line 4: ",
		one("a: {type: [Int]}"):                                                           "line 3: ",
		one("a: {type: Int, maxLength: long}"):                                            "line 3: ",
		"attributes: [":                                                                   "line 1: ",
	} {
		name := write(t, text)
		_, err := Read(name)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), name+": ") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
	}
	_, err := Read(filepath.Join(t.TempDir(), "none.yaml"))
	check.That(t, err != nil && !strings.Contains(err.Error(), "\n"), "%v", err)
}
