package quality

import (
	"compress/gzip"
	"os"
	"strings"
	"testing"

	"kith/internal/must"
	"kith/internal/testenv"
)

// What users of two real graphs follow is found again. SHARED_COUNT is held beside, so that a graph that has become easy is noticed.
func TestRecall(t *testing.T) {
	for name, want := range map[string]struct{ best, sharedLeast, sharedMost float64 }{
		"ego-twitter": {best: 0.70, sharedLeast: 0.54, sharedMost: 0.62},
		"wiki-vote":   {best: 0.26, sharedLeast: 0.14, sharedMost: 0.19},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := os.Open(testenv.Data(t, name+".txt.gz"))
			must.OK(t, err)
			defer file.Close()
			edges, err := gzip.NewReader(file)
			must.OK(t, err)
			r, err := Measure(t.Context(), edges, Config{Users: 1000, Share: 20, Seed: 1})
			if err != nil || r.Users != 1000 {
				t.Fatalf("%+v, %v", r, err)
			}
			t.Logf("%+v", r)
			if r.Best < want.best || r.SharedCount < want.sharedLeast || r.SharedCount > want.sharedMost {
				t.Errorf("recall@20 is %+v, want %+v", r, want)
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	for text, want := range map[string]string{"1 2\nx 3\n": "line 2: an id", "": "nobody follows 10", "1 2\n": "nobody follows 10"} {
		if _, err := Measure(t.Context(), strings.NewReader(text), Config{Users: 1, Share: 20}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
