package cli

import (
	"bytes"
	"context"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
)

// If nothing is set, caches take a share of the memory, within bounds. Go's limit leaves room for memory
// that it does not count, so that the total stays below what is promised.
func TestFootprint(t *testing.T) {
	const gib = 1 << 30
	zero, large, endless := uint64(0), uint64(4*gib), uint64(math.MaxUint64)
	for name, c := range map[string]struct {
		machine   footprint
		caches    *uint64
		want      uint64
		atMost    int64 // how much Go may use
		atMostAll uint64
	}{
		"a container":        {footprint{machine: gib, container: true}, nil, gib / 4, gib / 10 * 9, 13 * (gib/4 + ownBytes) / 10},
		"a small container":  {footprint{machine: gib / 16, container: true}, nil, leastCaches, gib / 16 / 10 * 9, 13 * (leastCaches + ownBytes) / 10},
		"a machine":          {footprint{machine: 4 * gib}, nil, gib / 2, math.MaxInt64, 13 * (gib/2 + ownBytes) / 10},
		"a large machine":    {footprint{machine: 1024 * gib}, nil, mostCaches, math.MaxInt64, 13 * (mostCaches + ownBytes) / 10},
		"nothing is known":   {footprint{}, nil, leastCaches, math.MaxInt64, 13 * (leastCaches + ownBytes) / 10},
		"nothing is kept":    {footprint{machine: gib}, &zero, 0, math.MaxInt64, 13 * ownBytes / 10},
		"it is set":          {footprint{machine: 4 * gib}, &large, large, math.MaxInt64, 13 * (large + ownBytes) / 10},
		"more than there is": {footprint{machine: gib, container: true}, &endless, endless, gib / 10 * 9, math.MaxInt64},
	} {
		got := c.machine.with(c.caches)
		check.Equal(t, name+": bytes for caches", got.caches, c.want)
		if got.limit <= 0 || got.limit > c.atMost || got.caches < endless && uint64(got.limit)+outside > c.atMostAll {
			t.Errorf("%s: Go may take %d, and all %d", name, got.limit, c.atMostAll)
		}
		if got.isTooMuch() != (name == "it is set" || name == "more than there is") || strings.Contains(got.String(), "lower --cache-bytes") != got.isTooMuch() {
			t.Errorf("%s: %s", name, got)
		}
		d := float64(got.most) - float64(c.atMostAll)
		check.That(t, math.Abs(d) <= 16 || got.caches >= endless, "%s: %d are promised, want %d", name, got.most, c.atMostAll)
	}
}

// What a crowd has taken goes back to the system when it has gone.
func TestMemoryIsGivenBack(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() { giveBack(ctx, 20*time.Millisecond) })
	defer watch.Wait()
	defer end()
	resident := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.Sys - m.HeapReleased
	}
	crowd := make([][]byte, 256)
	for i := range crowd {
		crowd[i] = bytes.Repeat([]byte{1}, 1<<20)
	}
	runtime.KeepAlive(crowd)
	for began := time.Now(); resident() > 128<<20; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d MB are still taken", resident()>>20)
		}
	}
}

func TestBytesHaveUnits(t *testing.T) {
	for text, want := range map[string]Bytes{"0": 0, "268435456": 256 << 20, "256MiB": 256 << 20, "1.5GiB": 3 << 29, "2 GB": 2_000_000_000} {
		var b Bytes
		err := b.UnmarshalText([]byte(text))
		check.That(t, err == nil && b == want, "%q is %d, %v", text, b, err)
	}
	for _, text := range []string{"", "much", "1.5", "-1", "-1MiB", "99999999999999999999", "1e9", "256MiBs"} {
		check.That(t, new(Bytes).UnmarshalText([]byte(text)) != nil, "%q is taken", text)
	}
}
