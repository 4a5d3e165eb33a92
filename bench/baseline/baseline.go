// Package baseline answers the six questions, the mixed load and what the web app asks by hand: no GraphQL, no batching, no limits, nothing
// verified, no failures but status 500, one shard. It uses the best SQL known for each question, and puts JSON together byte by byte. It
// takes the same requests as Kith and gives the same answers from the same tables, and so shows what Kith costs. `kith bench baseline` runs
// it.
package baseline

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver of mysql:DSN
	"github.com/prometheus/client_golang/prometheus"
	_ "modernc.org/sqlite" // the driver of sqlite:PATH

	"kith/gateway"
)

// Serve answers on the listener, from a store that Kith has filled, sqlite:PATH or mysql:DSN, until the context is done.
func Serve(ctx context.Context, store string, listener net.Listener) error {
	dbs, err := open(store)
	if err != nil {
		return err
	}
	defer dbs.close()
	handler, err := newHandler(dbs)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /graphql", handler)
	mux.Handle("GET /metrics", gateway.Admin{Metrics: prometheus.DefaultGatherer}.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// databases are pools of connections for reading and for writing, of one database.
type databases struct{ read, write *sql.DB }

func (d databases) close() {
	_ = d.read.Close()
	_ = d.write.Close()
}

// open connects as Kith does by default: as many connections, and SQLite with one writer.
func open(store string) (databases, error) {
	const conns = 16
	scheme, address, _ := strings.Cut(store, ":")
	switch scheme {
	case "sqlite":
		const options = "?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=synchronous(NORMAL)&_pragma=cache_size(-65536)&_pragma=temp_store(MEMORY)"
		address = "file:" + address + options
		read, err := pool(scheme, address+"&_pragma=query_only(1)", conns)
		write, errWrite := pool(scheme, address, 1)
		return databases{read, write}, errors.Join(err, errWrite)
	case "mysql":
		both, err := pool(scheme, address, conns)
		return databases{both, both}, err
	}
	return databases{}, fmt.Errorf("store %q: it is sqlite:PATH or mysql:DSN", store)
}

func pool(driver, address string, conns int) (*sql.DB, error) {
	db, err := sql.Open(driver, address)
	if err == nil {
		db.SetMaxOpenConns(conns)
		db.SetMaxIdleConns(conns)
	}
	return db, err
}

// request is the part of a GraphQL request that is read: the operation names the question.
type request struct {
	Query     string
	Variables struct {
		ID           int64 `json:",string"`
		With         int64 `json:",string"`
		To           []id
		Handle, Name string
	}
}

// id comes as JSON text.
type id int64

func (i *id) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	*i = id(n)
	return err
}

// ServeHTTP finds the question by the operation's name.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q request
	err := json.NewDecoder(r.Body).Decode(&q)
	var answer []byte
	if err == nil {
		answer, err = h.answer(r, &q)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header["Content-Type"] = []string{"application/json"}
	header["Content-Length"] = []string{strconv.Itoa(len(answer))}
	_, _ = w.Write(answer) // the client may be gone
}

func (h *handler) answer(r *http.Request, q *request) ([]byte, error) {
	v := &q.Variables
	_, name, _ := strings.Cut(q.Query, " ")
	if end := strings.IndexAny(name, "( "); end >= 0 {
		name = name[:end]
	}
	switch name {
	case "Q1":
		return h.user(v.ID)
	case "Q2", "GetList":
		return h.followings(v.ID)
	case "Q3", "GetLinks":
		return h.relationships(v.ID, v.To)
	case "Q4":
		return h.common(sqlSharedFollowings, v.ID, v.With)
	case "Q5r", "Q5c", "Q5t":
		return h.common(sqlSharedFollowers, v.ID, v.With)
	case "Q6":
		return h.suggestions(v.ID)
	case "GetNode":
		return h.node(v.ID)
	case "CountLinks":
		return h.count(v.ID)
	case "AddNode":
		return h.writes.addUser(v.ID, v.Handle, v.Name)
	}
	viewer, err := viewerOf(r)
	if err != nil {
		return nil, err
	}
	switch name {
	case "AddLink":
		changed, err := h.writes.setFollow(viewer, v.With, true)
		return appendChanged("follow", changed), err
	case "DeleteLink":
		changed, err := h.writes.setFollow(viewer, v.With, false)
		return appendChanged("unfollow", changed), err
	case "UpdateLink":
		changed, err := h.writes.remark(viewer, v.With, v.Name)
		return appendChanged("setFollowMark", changed), err
	case "UpdateNode":
		return h.writes.rename(viewer, v.Name)
	case "DeleteNode":
		return []byte(`{"data":{"deleteAccount":{"complete":true}}}`), h.writes.deleteUser(viewer)
	}
	if answer, err := h.appAnswer(name, viewer, v.Handle); answer != nil || err != nil {
		return answer, err
	}
	return nil, fmt.Errorf("no such question: %q", name)
}
