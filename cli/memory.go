package cli

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/dustin/go-humanize"

	"kith/storage/sleep"
)

// footprint is how much a gateway takes, in bytes.
type footprint struct {
	machine   uint64 // what it may use at most: of its container, or else of the machine; 0: not known
	container bool
	caches    uint64 // --cache-bytes
	most      uint64 // what is resident at most
	limit     int64  // what Go may take of it
}

const (
	// ownBytes is what a gateway takes besides its caches, including feedBytes: when recent posts were published, three
	// million of them.
	ownBytes  = 150_000_000
	feedBytes = 64 << 20

	// gcPercent is by how much of the live heap the heap grows before it is collected.
	gcPercent = 400

	// sqliteBytes is how much SQLite keeps at most of one file's pages. Go does not count this
	// either.
	sqliteBytes = 128 << 20

	// outside is resident memory that Go does not count: mostly the program itself, of which 35 to 45 MB are used.
	outside = 50_000_000

	// Shares of the memory that are kept for caches if nothing is set. A container is the gateway's alone; a
	// machine is often shared with the database.
	shareOfContainer = 4
	shareOfMachine   = 8
	leastCaches      = 32 << 20
	mostCaches       = 2 << 30 // five million users or lists: what is asked for within ten minutes rarely needs more
)

// footprint is how much a gateway takes on this machine.
func (c *ServeCmd) footprint(settings *Settings) footprint {
	var m footprint
	if limit, err := memlimit.FromCgroup(); err == nil {
		m.machine, m.container = limit, true
	} else if total, err := memlimit.FromSystem(); err == nil {
		m.machine = total
	}
	m = m.with((*uint64)(c.CacheBytes))
	if files, ok := strings.CutPrefix(settings.Store, "sqlite:"); ok {
		m.most += sqliteBytes * uint64(1+strings.Count(files, ";"))
	}
	return m
}

// with is the footprint with the given bytes for caches, nil for a share.
//
// Resident memory is at most 1.3 times what is set. Go keeps to its limit approximately; the remaining twentieth is
// for what it takes beyond the limit while it collects.
func (m footprint) with(caches *uint64) footprint {
	if m.caches = m.share(); caches != nil {
		m.caches = *caches
	}
	set := float64(m.caches) + ownBytes
	m.most = uint64(min(1.3*set, math.MaxInt64))
	m.limit = int64(min(1.25*set-outside, math.MaxInt64/2))
	if m.container {
		m.limit = min(m.limit, int64(m.machine/10*9))
	}
	return m
}

// isTooMuch reports whether the caches that are set may take more than there is.
func (m footprint) isTooMuch() bool {
	return m.machine > 0 && m.caches > m.share() && m.most > m.machine
}

func (m footprint) share() uint64 {
	by := uint64(shareOfMachine)
	if m.container {
		by = shareOfContainer
	}
	return min(max(m.machine/by, leastCaches), mostCaches)
}

// addProcessors lets Go run twice as many goroutines at a time as there are processors, unless the environment says how many. Costly work
// and hashing keep as many busy as there are processors ([runtime.GOMAXPROCS] / 2 turns), and the system shares these. If Go had
// no more, nobody would look for requests that arrive until one of those pauses, up to 10 ms later.
func addProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
	}
}

// tuneGC lets the heap grow further than Go does by default. The live heap of a gateway is small and its
// requests leave much garbage, so that collections would follow one another closely. The memory is bounded by a
// limit, at which Go collects more often: GOMEMLIMIT, which the runtime observes, or, if that is not set, what
// the settings promise, and nine tenths of the container's limit.
func (m footprint) tuneGC() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(m.limit)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// giveBack returns memory to the system once a crowd has gone. Go would keep it: the heap is collected only when it has grown to five times what lives,
// or after two minutes. Until the context is done, giveBack looks every so often whether hardly anything has been allocated since it looked last. If so, it
// gives memory back: at once if since the last time half as much has been allocated as was left then, and otherwise after twice as many such looks
// each time, because what was in use then may not be any more.
func giveBack(ctx context.Context, every time.Duration) {
	read := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	taken := func() (now, allocated uint64) {
		metrics.Read(read)
		return read[0].Value.Uint64() - read[1].Value.Uint64(), read[2].Value.Uint64()
	}
	left, given := taken()
	before, quiet, pause := given, 0, 1
	for sleep.For(ctx, every) == nil {
		_, allocated := taken()
		if allocated-given > left/2 {
			pause = 1
		}
		if quiet++; allocated-before >= max(left/16, 8<<20) {
			quiet = 0
		}
		if quiet >= pause {
			debug.FreeOSMemory()
			left, allocated = taken()
			given, quiet, pause = allocated, 0, 2*pause
		}
		before = allocated
	}
}

// String tells an operator what the process takes.
func (m footprint) String() string {
	if set := os.Getenv("GOMEMLIMIT"); set != "" {
		return fmt.Sprintf("memory: %s for caches; GOMEMLIMIT=%s bounds the whole", humanize.IBytes(m.caches), set)
	}
	most, of := m.most, "machine"
	if m.container {
		most, of = min(most, m.machine), "container"
	}
	text := fmt.Sprintf("memory: %s for caches, at most %s in all", humanize.IBytes(m.caches), humanize.IBytes(most))
	if m.machine > 0 {
		text += fmt.Sprintf(" of the %s that the %s has", humanize.IBytes(m.machine), of)
	}
	if m.isTooMuch() {
		text += ", which is too little: lower --cache-bytes"
	}
	return text
}
