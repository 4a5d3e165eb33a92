package importer

import (
	"fmt"
	"strings"
	"testing"
)

// An import shows how far it is while one chunk is being written.
func TestProgressWithinAChunk(t *testing.T) {
	var text strings.Builder
	for i := range 2 * edgesAtOnce {
		fmt.Fprintf(&text, "%d %d\n", i+1, i+2)
	}
	var seen []int64
	mustRun(t, newKeeper(), Config{Files: []string{file(t, "long.txt", text.String())}, OnProgress: func(p Progress) {
		if len(seen) == 0 || p.Bytes > seen[len(seen)-1] {
			seen = append(seen, p.Bytes)
		} else if p.Bytes < seen[len(seen)-1] {
			t.Errorf("back from %d to %d bytes", seen[len(seen)-1], p.Bytes)
		}
	}})
	if len(seen) < 6 || seen[len(seen)-1] != int64(text.Len()) {
		t.Errorf("seen: %v of %d", seen, text.Len())
	}
}
