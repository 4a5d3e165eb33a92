package accounts_test

import (
	"strings"
	"testing"

	"kith/accounts"
	"kith/internal/check"
	"kith/storage"
)

// TestNames: a name shows something, and only what can be seen. Marks of direction are taken out.
func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{ // "" if it is refused
		"Ada": "Ada", " Ada\r\nL. ": "Ada L.", "\u200fעדה\u200f": "עדה", "أحمد\u061c": "أحمد", "A\u200eda": "Ada",
		"می\u200cخواهم": "می\u200cخواهم", "👩\u200d💻": "👩\u200d💻", "❤\ufe0f": "❤\ufe0f", "葛\U000e0100城": "葛\U000e0100城",
		"Zoe\u0301": "Zo\u00e9", "Zoe\u200e\u0301": "Zo\u00e9", "علی\u200cرضا": "علی\u200cرضا", "श्री\u200d": "", "क्\u200dष": "क्\u200dष", "xn--ada": "xn--ada", "A. B.": "A. B.",
		"👩\u200d❤\ufe0f\u200d💋\u200d👨": "👩\u200d❤\ufe0f\u200d💋\u200d👨", "👨🏽\u200d👩🏻\u200d👧": "👨🏽\u200d👩🏻\u200d👧", "🏳\ufe0f\u200d🌈 می\u200cخواهم": "🏳\ufe0f\u200d🌈 می\u200cخواهم",
		"🙂\u200d↔\ufe0f": "🙂\u200d↔\ufe0f", "1\ufe0f\u20e3": "1\ufe0f\u20e3", "ᠨ\u180b": "ᠨ\u180b", "Ada ☎\ufe0e": "Ada ☎\ufe0e",
		"Ada\u200d": "", "\u200cAda": "", "A\u200dda": "", "A\ufe0fda": "", "A\U000e0100da": "", "1\ufe0f": "", "Ada\u2800": "", "A\u2800da": "",
		"م\u200c": "", "دا\u200cرا": "", "ب😀\u200cب": "", "👩\u200d": "", "👩\u200dAda": "", "👩\u200d\u200d💻": "", "❤\ufe0f\ufe0f": "", "می\u200c\u200cخواهم": "",
		"م\u200c ": "", "علی\u200c رضا": "", "عل\u06cc\u0650\u200c\nرضا": "", "ب\u200c2": "", "മോഹന്\u200d ലാല്\u200d": "മോഹന്\u200d ലാല്\u200d", "क्\u200c र": "क्\u200c र",
		"": "", " ": "", "\u200b": "", "\u3164": "", "\u2800": "", "\u200d": "", "\ufe0f": "", "\u200e\u200f\u061c": "", "\u00a0\u2003": "",
		"Ada\u200b": "", "A\u00adda": "", "Ada\u3164": "", "Ada\U000e0041": "", "\ufeffAda": "", "Ada\u2060": "", "Ada\u034f": "", "A\u202eda": "", "A\rda": "",
	} {
		got, err := accounts.CheckName("name", name, 1, 100)
		check.That(t, got == want && (err == nil) == (want != ""), "%q: %q, %v; want %q", name, got, err, want)
		again := accounts.SeenOnly(want)
		check.That(t, again == want, "%q is %q when it is imported", want, again)
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
		got, err := accounts.CheckText("text", text, 1, 100)
		check.That(t, got == want && (err == nil) == (want != ""), "%q: %q, %v; want %q", text, got, err, want)
	}
	got, err := accounts.CheckText("bio", "", 0, 100)
	check.That(t, got == "" && err == nil, "an empty bio: %q, %v", got, err)
}

// TestImportedNames: what is refused is taken out, and what is right stays as it is.
func TestImportedNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Ada\u200b": "Ada", "\u3164": "", "A\U000e0041da\u200d ": "Ada", "👩\u200d💻": "👩\u200d💻", "a\xff\u200bb": "a\xffb", "a\u200b\u202eb": "ab",
		"": "",
	} {
		check.Equal(t, name, accounts.SeenOnly(name), want)
	}
	for address, want := range map[string]string{
		"https://example.org/e\u0301\u2060": "https://example.org/e\u0301", "https://example.org/O'Neil \"2\".png?a=1": "https://example.org/O%27Neil%20%222%22.png?a=1",
		"/faces/7.svg": "/faces/7.svg", "": "",
	} {
		address = accounts.SeenURL(address)
		if checked, err := accounts.CheckProfile(storage.ProfileChange{AvatarURL: &address}); err != nil || *checked.AvatarURL != want {
			t.Errorf("%q: %q, %v, want %q", address, *checked.AvatarURL, err, want)
		}
	}
}
