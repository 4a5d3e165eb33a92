package importer_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"kith/demo"
	"kith/importer"
	"kith/storage/sqlstore"
)

func TestScratch(t *testing.T) {
	ctx := context.Background()
	for _, chunk := range []int{25000, 100000, 300000} {
		s, err := sqlstore.Open(ctx, sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), strconv.Itoa(chunk)+".db")})
		if err != nil {
			t.Fatal(err)
		}
		r, err := importer.Run(ctx, s, importer.Config{Files: []string{os.Getenv("FILE")}, Chunk: chunk, OnProgress: func(p importer.Progress) {}})
		t.Logf("chunk %d: %+v %.0f/s %v", chunk, r, r.EdgesPerSecond(), err)
		s.Close()
	}
	s, _ := sqlstore.Open(ctx, sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "demo.db")})
	at := time.Now()
	err := demo.Load(ctx, s)
	t.Log("demo", time.Since(at), err)
	at = time.Now()
	err = demo.Load(ctx, s)
	t.Log("demo again", time.Since(at), err)
	s.Close()
}
