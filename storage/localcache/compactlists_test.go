package localcache

import (
	"strings"
	"testing"

	"kith/storage"
	"kith/storage/idset"
)

// Compact lists stay within their bytes, whatever comes: the oldest of a few make room. What has
// outlived its time is not found, and what is removed gives its bytes back.
func TestCompactListsAreBounded(t *testing.T) {
	const most = 64 << 10
	l := compactLists{most: most}
	dir := idset.NewDirectory()
	for id := storage.UserID(1); id <= 5000; id++ {
		l.put(id, compactEntry(strings.Repeat("x", int(id)%300)), dir, int64(id))
		if got := l.bytes.Load(); got > most {
			t.Fatalf("%d bytes after %d entries, at most %d are allowed", got, id, most)
		}
	}
	found, young := 0, 0
	for id := storage.UserID(1); id <= 5000; id++ {
		if _, _, ok := l.get(id, 0); ok {
			found++
			if id > 2500 {
				young++
			}
		}
		if _, _, ok := l.get(id, int64(id)); ok {
			t.Fatalf("user %s is found after its time", id)
		}
	}
	if found < most/(300+compactOverhead) || 10*young < 9*found {
		t.Errorf("%d entries are left, %d of them young", found, young)
	}
	for id := storage.UserID(1); id <= 5000; id++ {
		l.remove(id)
	}
	if got := l.bytes.Load(); got != 0 {
		t.Errorf("%d bytes are left of nothing", got)
	}
}

// A list is found with the directory that it was made with, and is dropped when its part gets one of
// another: numbers of two directories must never be mixed up.
func TestCompactListsAreOfOneDirectory(t *testing.T) {
	l := compactLists{most: 1 << 20}
	before, after := idset.NewDirectory(), idset.NewDirectory()
	for id := storage.UserID(1); id <= 1000; id++ {
		l.put(id, "before", before, 1)
	}
	for id := storage.UserID(1); id <= 500; id++ {
		l.put(id, "after", after, 1)
	}
	for id := storage.UserID(1); id <= 1000; id++ {
		e, dir, ok := l.get(id, 0)
		if ok && (e == "before") != (dir == before) {
			t.Fatalf("user %s has %q with the other directory", id, e)
		}
		if id <= 500 && e != "after" {
			t.Fatalf("user %s has %q", id, e)
		}
	}
	l.clear()
	if _, _, ok := l.get(1, 0); ok || l.bytes.Load() != 0 {
		t.Errorf("%d bytes are left", l.bytes.Load())
	}
}
