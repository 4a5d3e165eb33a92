package accounts_test

import (
	"strings"
	"testing"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/internal/check"
	"kith/storage"
)

// The address of a picture or a file is an https URL in one form, or, for a picture, the path of a face, and not of anything else on this
// or another server. What is not as it is stored says why.
func TestAddressesHaveOneForm(t *testing.T) {
	t.Parallel()
	long := "https://example.org/" + strings.Repeat("a", 500-len("https://example.org/"))
	for address, want := range map[string]string{
		"https://example.org/a.png": "https://example.org/a.png", "https://example.org": "https://example.org", " https://example.org/ ": "https://example.org/",
		"https://cdn_1.example.org:8443/a%20b/(c),d;e=f@g!.png?x=1&y=[2]#p": "https://cdn_1.example.org:8443/a%20b/(c),d;e=f@g!.png?x=1&y=[2]#p",
		"https://192.0.2.1/a": "https://192.0.2.1/a", "https://[2001:DB8::1]:444/a": "https://[2001:db8::1]:444/a", long: long,
		"https://EXAMPLE.org/A.png": "https://example.org/A.png", "HTTPS://example.org/a": "https://example.org/a",
		"https://example.org/ü.png?q=é#ö": "https://example.org/ü.png?q=é#ö", "https://Bücher.example:8/": "https://bücher.example:8/",
		"https://xn--bcher-kva.example":   "https://bücher.example",
		"https://xn--bucher-q11d.example": "", // it has a Braille blank
		"https://example.org/%c3%bc":      "https://example.org/%c3%bc",
		"https:":                          "", "https:/a": "", "https://": "", "https:///a.png": "", "https://:443/a": "", "https://example.org:/a": "", "https://example.org:port/a": "", "https:example.org/a": "",
		"https://user@example.org/a": "", "https://user:word@example.org/a": "", "https://@example.org/": "", "https://a b.example/": "", "https://a%2fb.example/": "",
		"https://℀.example/": "", "https://example.org\\@evil.example/": "", `https://example.org/"onerror=alert(1)`: "", "https://example.org/'a'": "",
		"https://example.org/a b": "", "https://example.org/a\nb": "", "https://example.org/a\x00": "", "https://example.org/`": "", "https://example.org/%zz": "",
		"http://example.org/a.png": "", "//example.org/faces/1.svg": "", "data:image/svg+xml,x": "", "javascript:alert(1)//https://a": "", long + "a": "",
		"/graphql": "", "faces/1.svg": "", "/faces/042.svg": "", "/faces/-1.svg": "", "/faces/1.svg?x": "", "/faces/../graphql": "", "/faces/1234567890123456789.svg": "",
	} {
		checked, err := accounts.CheckProfile(storage.ProfileChange{AvatarURL: &address})
		media := []storage.Media{{URL: address}}
		failed := accounts.CheckMedia(media)
		if (err == nil) != (want != "") || (failed == nil) != (want != "") || want != "" && (*checked.AvatarURL != want || media[0].URL != want) {
			t.Errorf("%q: %q, %v; %q, %v; want %q", address, *checked.AvatarURL, err, media[0].URL, failed, want)
		}
		for _, err := range []error{err, failed} {
			told, known := apierr.Of(err)
			check.That(t, err == nil || known && told.Code == apierr.CodeBadInput && !strings.Contains(err.Error(), "https://example.org"), "%q: %v", address, err)
		}
		if again, err := accounts.CheckProfile(checked); want != "" && (err != nil || *again.AvatarURL != want) {
			t.Errorf("%q is %q when it is read again, %v", want, *again.AvatarURL, err)
		}
	}
	for address, good := range map[string]bool{"": true, "/faces/0.svg": true, "/faces/42.svg": true} {
		checked, err := accounts.CheckProfile(storage.ProfileChange{AvatarURL: &address})
		check.That(t, (err == nil) == good && *checked.AvatarURL == address, "%q: %v", address, err)
	}
}

// A website may also be without encryption, and is no path.
func TestWebsites(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"": "", "https://example.org/~ada": "https://example.org/~ada", " HTTP://Example.org:8080/ ": "http://example.org:8080/",
		"ftp://example.org": "refused", "http:": "refused", "http://user@example.org/": "refused", `http://example.org/"`: "refused", "/faces/1.svg": "refused",
		"http://example.org/" + strings.Repeat("a", 500): "refused",
	} {
		checked, err := accounts.CheckProfile(storage.ProfileChange{Website: &address})
		if (err != nil) != (want == "refused") || err == nil && *checked.Website != want {
			t.Errorf("%q: %q, %v, want %q", address, *checked.Website, err, want)
		}
	}
}
