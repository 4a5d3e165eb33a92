package packed

import (
	"testing"

	"kith/storage"
)

// How long it takes to parse the chunks of a million follows, without their times and with them.
//
//	go test ./storage/sqlstore -run '^$' -bench PackedChunks
func BenchmarkPackedChunks(b *testing.B) {
	const n = 1_000_000
	for name, id := range map[string]func(i int64) int64{
		"dense":     func(i int64) int64 { return 1_000_000 + i*5 + i*2654435761%5 },
		"Sonyflake": func(i int64) int64 { return (i*3007+i*2654435761%3007)<<24 | i%2<<16 | i*7%4 + 1 },
	} {
		follows := make([]storage.Position, n)
		for i := range follows {
			follows[i] = storage.Position{Peer: storage.UserID(id(int64(i))), UpdateTime: storage.Micros(1.7e15 + int64(i)*2654435761%1e14)}
		}
		chunks := chunksOf(follows, maxChunk)
		each := func(b *testing.B, parse func(data []byte) error) {
			for b.Loop() {
				for _, c := range chunks {
					if err := parse(c.data); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/follow")
		}
		var peers []storage.UserID
		b.Run(name+"/peers", func(b *testing.B) {
			each(b, func(data []byte) (err error) {
				peers, err = parsePeers(peers[:0], data)
				return err
			})
		})
		b.Run(name+"/peers and times", func(b *testing.B) {
			var all []storage.Position
			each(b, func(data []byte) (err error) {
				all, err = parseChunk(all[:0], data)
				return err
			})
		})
	}
}
