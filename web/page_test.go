package web_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/webtest"
	"kith/web"
)

// gateway serves the page beside an endpoint with two answers: the schema, for introspection, and
// testdata/answer.json, for any other query.
func gateway(t *testing.T, cfg web.Config) (url string, queries func() []request) {
	t.Helper()
	schema, answer := must.File(t, "testdata/introspection.json"), must.File(t, "testdata/answer.json")
	received := make(chan request, 100)
	mux := http.NewServeMux()
	mux.Handle("/", web.Handler(cfg))
	mux.HandleFunc("POST /graphql", func(w http.ResponseWriter, r *http.Request) {
		var req request
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(req.Query, "__schema") {
			w.Write(schema)
			return
		}
		if strings.Contains(req.Query, "query Names") { // the query of the menu
			check.That(t, cfg.Demo.Users != 0, "the page asks for demo users, and there are none")
			fmt.Fprint(w, `{"data": {"users": []}}`)
			return
		}
		req.Authorization = r.Header.Get("Authorization")
		received <- req
		w.Write(answer)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL, func() []request {
		close(received)
		var all []request
		for q := range received {
			all = append(all, q)
		}
		return all
	}
}

type request struct {
	Query         string
	Authorization string `json:"-"`
}

// The pages that stand in for what has not been built name the Node with which scripts/web.sh builds it.
func TestPagesNameTheNodeThatBuilds(t *testing.T) {
	script := string(must.File(t, "../scripts/web.sh"))
	for _, page := range []string{"plain.html", "app.html"} {
		version := regexp.MustCompile(`Node [\d.]+ or newer`).FindString(strings.Join(strings.Fields(string(must.File(t, "page/"+page))), " "))
		check.That(t, version != "" && strings.Contains(script, "with "+version), "%s asks for %q", page, version)
	}
}

func TestGraphiQLRunsTheExample(t *testing.T) {
	if !web.HasGraphiQL(web.Assets()) {
		testenv.Missing(t, "GraphiQL is not built: make web")
	}
	drive(t, web.Assets(), "graphiql", demo)
	drive(t, web.Assets(), "graphiql", web.Demo{})
}

func TestPlainPageRunsTheExample(t *testing.T) {
	drive(t, fstest.MapFS{}, "plain", demo)
	drive(t, fstest.MapFS{}, "plain", web.Demo{})
}

func drive(t *testing.T, assets fs.FS, page string, demo web.Demo) {
	t.Helper()
	url, queries := gateway(t, web.Config{Assets: assets, Examples: []string{"query First { a }", "query Second { a }"}, Demo: demo})
	authorization := ""
	if demo.Users > 0 {
		authorization = "Bearer token of 1"
	}
	got := webtest.Drive(t, url)
	check.Equal(t, "page", got.Page, page)
	want, answer := compact(t, must.File(t, "testdata/answer.json")), compact(t, got.Answer)
	check.That(t, answer == want, "answer shown:\n%s\nwant:\n%s", answer, want)
	switch sent := queries(); {
	case len(sent) != 1:
		t.Errorf("%d queries sent, want 1: %v", len(sent), sent)
	case !strings.Contains(sent[0].Query, "query First"):
		t.Errorf("query sent: %s", sent[0].Query)
	case sent[0].Authorization != authorization:
		t.Errorf("Authorization sent: %q", sent[0].Authorization)
	}
}

func compact(t *testing.T, b []byte) string {
	t.Helper()
	var v any
	err := json.Unmarshal(b, &v)
	must.That(t, err == nil, "%v in %s", err, b)
	out, err := json.Marshal(v)
	must.OK(t, err)
	return string(out)
}
