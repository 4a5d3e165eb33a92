package web

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

const demoPath = "/demo/token"

// Demo lets a visitor be any user of the demo graph.
type Demo struct {
	// Users is how many there are, with the ids from 1. Defaults to 0: there are none.
	Users int64

	// IsLocal reports whether a request's connection comes from this machine. Others get no tokens.
	IsLocal func(*http.Request) bool

	// Token signs in as one of these users.
	Token func(user int64) (token string, expires time.Time, err error)
}

// mayDemo reports whether a visitor may be a user of the demo graph: the connection comes from this
// machine, and not from a page of another name, by whose DNS a browser here may have been led here.
func (h *handler) mayDemo(r *http.Request) bool {
	return h.demo.Users > 0 && h.demo.IsLocal(r) && h.isOwn(r.Host)
}

// serveDemoToken signs in as the user whom the query names. GraphiQL, the plain page and the app ask here.
func (h *handler) serveDemoToken(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	user, err := strconv.ParseInt(r.URL.Query().Get("user"), 10, 64)
	if err != nil || user < 1 || user > h.demo.Users || !h.mayDemo(r) {
		http.Error(w, "there is no such demo user", http.StatusForbidden)
		return
	}
	token, expires, err := h.demo.Token(user)
	if err != nil {
		http.Error(w, "no token", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"token": token, "expiresAt": expires.UTC()}) // the client may have disconnected
}
