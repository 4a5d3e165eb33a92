package accounts_test

import (
	"testing"

	"kith/accounts"
	"kith/storage"
)

// A path as the address of a picture must be that of a face, not of anything else on this or another server.
func TestPicturesAreFacesOrElsewhere(t *testing.T) {
	for url, good := range map[string]bool{
		"": true, "https://example.org/a.png": true, "/faces/0.svg": true, "/faces/42.svg": true,
		"http://example.org/a.png": false, "/faces/042.svg": false, "/faces/-1.svg": false, "/faces/1.svg?x": false, "/faces/../graphql": false,
		"/faces/1234567890123456789.svg": false, "/graphql": false, "//example.org/faces/1.svg": false, "faces/1.svg": false, "data:image/svg+xml,x": false,
	} {
		if _, err := accounts.CheckProfile(storage.ProfileChange{AvatarURL: &url}); (err == nil) != good {
			t.Errorf("%q: %v", url, err)
		}
	}
}
