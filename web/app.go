package web

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The app is one page, whatever its path below /app: the script in it shows the page that the path
// names. Its files are in one folder, below a name that a new build changes.
const (
	appPath  = "/app"
	appFiles = "/app/files/"
	demoPath = "/app/demo-token"
)

// appPolicy is stricter than [policy]: the app needs no style of its own making in the page, no
// font and no data: picture. connect-src covers the WebSocket, worker-src the layout of the
// picture.
const appPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// HasApp reports whether assets hold the built app; otherwise /app is a page that says how to build it.
func HasApp(assets fs.FS) bool {
	_, err := fs.Stat(assets, "app/main.js.gz")
	return err == nil
}

// isApp reports whether a path is the app's.
func isApp(path string) bool { return path == appPath || strings.HasPrefix(path, appPath+"/") }

// openApp makes the app's page, and finds its files.
func (h *handler) openApp(cfg Config, own *folder) (err error) {
	data := pageData{Config: cfg, Page: own.prefix}
	if HasApp(cfg.Assets) {
		built, err := newFolder(sub(cfg.Assets, "app"), appFiles)
		if err != nil {
			return err
		}
		h.folders = append(h.folders, built)
		data.Built = built.prefix
	}
	if h.ownApp, err = render("app.html", data); err != nil {
		return err
	}
	data.Demo.Users = 0
	h.app, err = render("app.html", data)
	return err
}

// Demo lets whoever looks be any user of the demo graph.
type Demo struct {
	// Users is how many there are, with the ids from 1. Defaults to 0: there are none.
	Users int64

	// Token signs in as one of them.
	Token func(user int64) (token string, expires time.Time, err error)
}

// serveDemoToken signs in as the user whom the query names. Tokens are for those only who asked by a
// name that can lead nowhere else. Every page asks here, with and without the app.
func (h *handler) serveDemoToken(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	user, err := strconv.ParseInt(r.URL.Query().Get("user"), 10, 64)
	if err != nil || user < 1 || user > h.demo.Users || !h.isOwn(r.Host) {
		http.Error(w, "there is no such demo user", http.StatusForbidden)
		return
	}
	token, expires, err := h.demo.Token(user)
	if err != nil {
		http.Error(w, "no token", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"token": token, "expiresAt": expires.UTC()}) // the client may be gone
}
