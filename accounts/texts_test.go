package accounts_test

import (
	"strings"
	"testing"

	"kith/accounts"
)

// TestNames: a name shows something, and only what can be seen. Marks of direction are taken out.
func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{ // "" if it is refused
		"Ada": "Ada", " Ada\r\nL. ": "Ada\nL.", "\u200fעדה\u200f": "עדה", "أحمد\u061c": "أحمد", "A\u200eda": "Ada",
		"می\u200cخواهم": "می\u200cخواهم", "👩\u200d💻": "👩\u200d💻", "❤\ufe0f": "❤\ufe0f", "葛\U000e0100城": "葛\U000e0100城",
		"": "", " ": "", "\u200b": "", "\u3164": "", "\u2800": "", "\u200d": "", "\ufe0f": "", "\u200e\u200f\u061c": "", "\u00a0\u2003": "",
		"Ada\u200b": "", "A\u00adda": "", "Ada\u3164": "", "Ada\U000e0041": "", "\ufeffAda": "", "Ada\u2060": "", "Ada\u034f": "", "A\u202eda": "", "A\rda": "",
	} {
		if got, err := accounts.CheckName("name", name, 1, 100); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
}

// TestTexts: what a text may hold that a name may not.
func TestTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"one\r\ntwo\r\n": "one\ntwo", "שלום\u200f!": "שלום\u200f!", "\u061cأهلا": "\u061cأهلا",
		"🏴\U000e0067\U000e0062\U000e007f": "🏴\U000e0067\U000e0062\U000e007f", "a\u200bb": "a\u200bb",
		"\u200b": "", "\u3164 \u200e": "", "a\rb": "", "a\u202eb": "", "a\u2066b": "", "a\x1bb": "", strings.Repeat("a", 101): "",
	} {
		if got, err := accounts.CheckText("text", text, 1, 100); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	if got, err := accounts.CheckText("bio", "", 0, 100); got != "" || err != nil {
		t.Errorf("an empty bio: %q, %v", got, err)
	}
}
