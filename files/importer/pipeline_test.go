package importer

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"kith/files/graphfile"
)

// Reading alone, from the file to chunks that are sorted and free of duplicates.
//
//	go test ./importer -bench Read
func BenchmarkRead(b *testing.B) {
	const lines = 1_000_000
	random := rand.New(rand.NewPCG(1, 1))
	for _, order := range []string{"sorted", "shuffled"} {
		var text bytes.Buffer
		for i := range lines {
			from := i / 20
			if order == "shuffled" {
				from = random.IntN(80_000)
			}
			fmt.Fprintf(&text, "%d\t%d\n", 1+from, 1_000_000+random.IntN(80_000))
		}
		path := filepath.Join(b.TempDir(), order)
		if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
			b.Fatal(err)
		}
		b.Run(order, func(b *testing.B) {
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				inputs, err := probeAll([]string{path}, nil, graphfile.Follows)
				if err != nil {
					b.Fatal(err)
				}
				r := &splitter{inputs: inputs, lines: DefaultChunk}
				chunks := make(chan *chunk)
				go func() {
					defer close(chunks)
					if err := r.run(context.Background(), chunks); err != nil {
						b.Error(err)
					}
				}()
				for range chunks {
				}
			}
			b.ReportMetric(lines*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mlines/s")
		})
	}
}
