package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/must"
)

func TestBenchQuality(t *testing.T) {
	file := filepath.Join(t.TempDir(), "graph.tsv.gz")
	edges, err := benchCommand(t, "generate", "--users", "300", "-")
	must.OK(t, err)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, err = zip.Write([]byte(edges))
	must.OK(t, errors.Join(err, zip.Close(), os.WriteFile(file, zipped.Bytes(), 0o600)))
	out, err := benchCommand(t, "quality", "--users", "50", file)
	if err != nil || !strings.HasPrefix(out, "recall@20 of 50 users: SHARED_COUNT 0.") || !strings.Contains(out, ", BEST 0.") {
		t.Errorf("%q, %v", out, err)
	}
	if again, err := benchCommand(t, "quality", "--users", "50", file); err != nil || again != out {
		t.Errorf("%q, then %q, %v", out, again, err)
	}
	if other, err := benchCommand(t, "quality", "--users", "50", "--seed", "2", "--output=json", file); err != nil || !strings.Contains(other, `"Users": 50`) {
		t.Errorf("%q, %v", other, err)
	}
	for _, wrong := range [][]string{{"--users", "0"}, {"--share", "0"}, {"--share", "100"}} {
		if _, err := benchCommand(t, append(append([]string{"quality"}, wrong...), file)...); err == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}
