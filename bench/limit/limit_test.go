package main

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"kith/bench"
	"kith/importer"
	"kith/internal/apitest"
	"kith/internal/testenv"
	"kith/storage/sqlstore"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// The limit is one only if it gives the very answers that Kith gives.
func TestAnswersAreThoseOfTheGateway(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		compare(t, "sqlite:"+filepath.Join(t.TempDir(), "kith.db"))
	})
	t.Run("mariadb", func(t *testing.T) {
		compare(t, "mysql:"+testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0])
	})
}

func compare(t *testing.T, location string) {
	graph := bench.NewGraph(6000, 42) // its celebrities have more fans than are merged here
	graph.Degree = 10
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := importer.Run(t.Context(), store, importer.Config{Files: []string{graphFile(t, graph)}}); err != nil {
		t.Fatal(err)
	}
	gateway := apitest.New(t, store, apitest.Options{}).URL()

	db, err := open(location)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	handler, err := newHandler(db)
	if err != nil {
		t.Fatal(err)
	}
	limit := httptest.NewServer(handler)
	defer limit.Close()

	random := rand.New(rand.NewPCG(1, 2))
	for _, q := range bench.Questions {
		for range 30 {
			arguments := q.Draw(graph, random)
			body := q.AppendBody(nil, arguments)
			want, got := post(t, gateway, body), post(t, limit.URL, body)
			if !bytes.Equal(got, want) {
				t.Fatalf("%s\nthe limit answers %s\nKith              %s", body, got, want)
			}
			if err := q.Check(arguments, got); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func graphFile(t *testing.T, graph *bench.Graph) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "graph.tsv")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := graph.WriteTo(file); err != nil {
		t.Fatal(err)
	}
	return path
}

func post(t *testing.T, url string, body []byte) []byte {
	t.Helper()
	response, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}
