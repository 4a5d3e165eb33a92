package localcache

import (
	"sync"
	"sync/atomic"

	"kith/storage"
	"kith/storage/idset"
)

// compactLists keeps entries of users, far smaller than those of the cache, whose own overhead
// would be larger than they are. When it is full, it drops those of a few that are the oldest.
type compactLists struct {
	most  int64 // bytes
	bytes atomic.Int64
	parts [64]compactPart
}

// compactPart holds some of the users. Its lists are all of one directory: when another one comes,
// it drops those of the one before.
type compactPart struct {
	mu      sync.RWMutex
	dir     *idset.Directory
	entries map[storage.UserID]datedEntry
}

type datedEntry struct {
	compactEntry
	until int64 // in seconds
}

// compactOverhead is what an entry takes besides its bytes: its share of a map that is half to fully
// used, and what the allocator rounds up.
const compactOverhead = 56

func (e datedEntry) size() int64 { return int64(len(e.compactEntry)) + compactOverhead }

func (l *compactLists) part(id storage.UserID) *compactPart {
	return &l.parts[uint64(id)*0x9e3779b97f4a7c15>>58] // ids made by time end alike, with the machine
}

// get returns an entry that is younger than its lifetime, and the directory of its list.
func (l *compactLists) get(id storage.UserID, now int64) (compactEntry, *idset.Directory, bool) {
	p := l.part(id)
	p.mu.RLock()
	e, ok := p.entries[id]
	dir := p.dir
	p.mu.RUnlock()
	return e.compactEntry, dir, ok && e.until > now
}

func (l *compactLists) put(id storage.UserID, e compactEntry, dir *idset.Directory, until int64) {
	p := l.part(id)
	next := datedEntry{e, until}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir != dir {
		l.empty(p)
		p.dir, p.entries = dir, map[storage.UserID]datedEntry{}
	}
	if before, there := p.entries[id]; there {
		l.bytes.Add(-before.size())
	}
	p.entries[id] = next
	for more := l.bytes.Add(next.size()) > l.most; more && len(p.entries) > 0; more = l.bytes.Load() > l.most {
		l.drop(p)
	}
}

// drop removes the oldest of a few entries of a part. A map is gone through from a random place.
func (l *compactLists) drop(p *compactPart) {
	const few = 5
	var oldest storage.UserID
	var entry datedEntry
	seen := 0
	for id, e := range p.entries {
		if seen == 0 || e.until < entry.until {
			oldest, entry = id, e
		}
		if seen++; seen == few {
			break
		}
	}
	delete(p.entries, oldest)
	l.bytes.Add(-entry.size())
}

func (l *compactLists) remove(id storage.UserID) {
	p := l.part(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, there := p.entries[id]; there {
		delete(p.entries, id)
		l.bytes.Add(-e.size())
	}
}

func (l *compactLists) clear() {
	for i := range l.parts {
		p := &l.parts[i]
		p.mu.Lock()
		l.empty(p)
		p.mu.Unlock()
	}
}

// empty drops the entries of a part, which the caller has locked.
func (l *compactLists) empty(p *compactPart) {
	for _, e := range p.entries {
		l.bytes.Add(-e.size())
	}
	p.dir, p.entries = nil, nil
}
