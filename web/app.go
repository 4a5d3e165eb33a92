package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
)

// The app is one page for all paths below /app: its script shows the page that the path names. Its
// files are in one folder, whose name a new build changes.
const (
	appPath  = "/app"
	appFiles = "/app/files/"
)

// appPolicy is stricter than [policy]: the app needs no inline styles, no fonts and no data:
// pictures. connect-src covers the WebSocket, and is followed by the origins of identity providers; worker-src is for the layout
// of the picture.
const appPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; worker-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; connect-src 'self'"

// SignIn is an identity provider at which people sign in to the app. The page shows all of it to everybody.
type SignIn struct {
	// Issuer is the provider's URL, at which the app finds its endpoints (OpenID Connect Discovery). They are of its origin.
	Issuer string `json:"issuer"`

	// ClientID is what the provider knows the app as.
	ClientID string `json:"clientId"`

	// Scopes are what the app asks for besides "openid".
	Scopes []string `json:"scopes,omitempty"`
}

// origin is where the app fetches from.
func (s SignIn) origin() (string, error) {
	u, err := url.Parse(s.Issuer)
	if err != nil {
		return "", fmt.Errorf("the issuer of a sign-in: %w", err)
	}
	return u.Scheme + "://" + u.Host, nil
}

// HasApp reports whether assets hold the built app; otherwise /app is a page that says how to build it.
func HasApp(assets fs.FS) bool {
	_, err := fs.Stat(assets, "app/main.js.gz")
	return err == nil
}

// Documents are the texts of all operations that the built app sends, by their hashes; none if it has not been built.
func Documents(assets fs.FS) (map[string]string, error) {
	zipped, err := fs.ReadFile(assets, "app/documents.json.gz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var documents map[string]string
	if err == nil {
		var text []byte
		if text, err = gunzip(zipped); err == nil {
			err = json.Unmarshal(text, &documents)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the app's documents: %w", err)
	}
	return documents, nil
}

// isApp reports whether a path belongs to the app.
func isApp(path string) bool { return path == appPath || strings.HasPrefix(path, appPath+"/") }
