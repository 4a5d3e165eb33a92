// Limit answers the six questions by hand: no GraphQL, no batching, no limits, no
// failures but status 500, one shard; the best SQL known for each question and JSON
// put together byte by byte. It takes the same requests as Kith, gives the same
// answers from the same tables, and so tells what Kith costs.
//
//	go run ./bench/limit -store sqlite:PATH -addr 127.0.0.1:8090
package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"

	_ "github.com/go-sql-driver/mysql"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	_ "modernc.org/sqlite"
)

func main() {
	store := flag.String("store", "", "sqlite:PATH or mysql:DSN, which Kith has filled")
	addr := flag.String("addr", "127.0.0.1:8090", "where to listen")
	flag.Parse()
	if err := run(*store, *addr); err != nil {
		log.Fatal(err)
	}
}

func run(store, addr string) error {
	db, err := open(store)
	if err != nil {
		return err
	}
	handler, err := newHandler(db)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /graphql", handler)
	mux.Handle("GET /metrics", promhttp.Handler())
	log.Printf("listening on %s", listener.Addr())
	return http.Serve(listener, mux)
}

func open(store string) (*sql.DB, error) {
	const conns = 16 // as Kith's default
	scheme, address, _ := strings.Cut(store, ":")
	switch scheme {
	case "sqlite":
		address = "file:" + address + "?_pragma=query_only(1)&_pragma=cache_size(-65536)&_pragma=temp_store(MEMORY)"
	case "mysql":
	default:
		return nil, fmt.Errorf("store %q: it is sqlite:PATH or mysql:DSN", store)
	}
	db, err := sql.Open(scheme, address)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, db.Ping()
}

// request is what is read of a GraphQL request: the operation tells the question.
type request struct {
	Query     string
	Variables struct {
		ID   int64 `json:",string"`
		With int64 `json:",string"`
		To   []id
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
		name, _, _ := strings.Cut(strings.TrimPrefix(q.Query, "query "), "(")
		v := &q.Variables
		switch name {
		case "Q1":
			answer, err = h.user(v.ID)
		case "Q2":
			answer, err = h.followings(v.ID)
		case "Q3":
			answer, err = h.relationships(v.ID, v.To)
		case "Q4":
			answer, err = h.following.common(v.ID, v.With)
		case "Q5r", "Q5c":
			answer, err = h.follower.common(v.ID, v.With)
		case "Q6":
			answer, err = h.suggestions(v.ID)
		default:
			err = errors.New("no such question")
		}
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
