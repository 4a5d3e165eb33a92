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

	// Token signs in as one of these users.
	Token func(user int64) (token string, expires time.Time, err error)
}

// serveDemoToken signs in as the user whom the query names. Tokens are given only to requests whose
// host name can lead nowhere else. GraphiQL, the plain page and the app ask here.
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
	_ = json.NewEncoder(w).Encode(map[string]any{"token": token, "expiresAt": expires.UTC()}) // the client may have disconnected
}
