package idset

import (
	"math"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"kith/storage"
)

// pageSlots is how many users a page of the directory numbers. An ordinal is a page's
// number times pageSlots plus a slot.
const (
	pageBits  = 16
	pageSlots = 1 << pageBits
)

// ordinal stands for a user in the sets of one directory.
type ordinal uint32

func (o ordinal) page() uint32 { return uint32(o) >> pageBits }
func (o ordinal) slot() uint16 { return uint16(o) }

// Directory numbers users densely: 0, 1, 2 … Ids made by time are too far apart for bitmaps; these
// numbers are not. A directory belongs to one process and is never stored.
//
// Users who come in ascending order of their ids, as new users do and as a table is read in the
// order of its key, are numbered in that order. A late user is one whose id is below an id that is
// numbered already. It gets a slot on a page of its own kind, and is found by a hash. Sets stay
// right with any number of late users, but their common ids take longer to sort: when
// [Directory.Late] has grown to a good part of Len, begin a new directory.
//
// A directory takes 8 bytes per user, some 40 more for late ones, and never holds more than 2³²
// users. It is safe for concurrent use, and readers do not wait for one another.
type Directory struct {
	serial uint64 // of this process
	view   atomic.Pointer[view]

	mu                 sync.Mutex // held to number users
	ordered, unordered *page      // where the next users are numbered, nil before the first

	lateMu    sync.RWMutex
	late      map[storage.UserID]ordinal
	lateCount atomic.Int64 // len(late)

	remembered remembered
}

// page numbers up to [pageSlots] users. Slots below used are never changed.
type page struct {
	number uint32
	late   bool // ids are in order of arrival, not ascending
	ids    *[pageSlots]storage.UserID
	used   atomic.Int32
}

// users are the ids of the page by slot.
func (p *page) users() []storage.UserID { return p.ids[:p.used.Load()] }

// view is all pages at one moment. Pages grow, views do not change.
type view struct {
	pages  []*page          // by number
	order  []*page          // those without late users, ascending, as their numbers are
	firsts []storage.UserID // the first id of each of order
}

func (v *view) id(o ordinal) storage.UserID { return v.pages[o.page()].ids[o.slot()] }

var serials atomic.Uint64

// NewDirectory returns an empty directory.
func NewDirectory() *Directory {
	d := &Directory{serial: serials.Add(1), late: map[storage.UserID]ordinal{}}
	d.view.Store(&view{})
	return d
}

// Serial is a number that no other directory of the process has.
func (d *Directory) Serial() uint64 { return d.serial }

// Learn numbers users who have no number yet. It is best to give it all users once, in ascending
// order, before the first set is built; sets number their own users. O(n), for ascending ids.
func (d *Directory) Learn(ids []storage.UserID) { d.number(ids, nil) }

// Len is how many users have numbers. O(pages).
func (d *Directory) Len() int {
	n := 0
	for _, p := range slices.Backward(d.view.Load().pages) {
		n += int(p.used.Load())
	}
	return n
}

// Late is how many users came out of order. O(1).
func (d *Directory) Late() int { return int(d.lateCount.Load()) }

// Bytes is the size in memory, estimated for the late users. O(pages).
func (d *Directory) Bytes() int {
	return len(d.view.Load().pages)*(pageSlots*8+64) + d.Late()*40
}

// find returns the ordinal of a user, if there is one. O(log n).
func (d *Directory) find(id storage.UserID) (ordinal, bool) {
	f := d.finder()
	return f.find(id)
}

func (d *Directory) findLate(id storage.UserID) (ordinal, bool) {
	if d.lateCount.Load() == 0 {
		return 0, false
	}
	d.lateMu.RLock()
	defer d.lateMu.RUnlock()
	o, ok := d.late[id]
	return o, ok
}

// number appends the ordinals of the users to a slice and returns it. It numbers users who have no
// number.
func (d *Directory) number(ids []storage.UserID, to []ordinal) []ordinal {
	f := d.finder()
	for i, id := range ids {
		o, ok := f.find(id)
		if !ok {
			return d.numberNew(ids[i:], to)
		}
		to = append(to, o)
	}
	return to
}

// numberNew is number if new users are to be expected.
func (d *Directory) numberNew(ids []storage.UserID, to []ordinal) []ordinal {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.finder()
	for _, id := range ids {
		o, ok := f.find(id)
		if !ok {
			o = d.add(id)
			f.view = d.view.Load()
		}
		to = append(to, o)
	}
	return to
}

// add numbers a user who has no number. The caller holds mu.
func (d *Directory) add(id storage.UserID) ordinal {
	if p := d.ordered; p == nil || id > p.ids[p.used.Load()-1] {
		d.ordered = d.room(d.ordered, id, false)
		return d.ordered.last()
	}
	d.unordered = d.room(d.unordered, id, true)
	o := d.unordered.last()
	d.lateMu.Lock()
	defer d.lateMu.Unlock()
	d.late[id] = o
	d.lateCount.Add(1)
	return o
}

// room puts a user after the last one of a page, or on a new page if that is full, and returns the
// page.
func (d *Directory) room(p *page, id storage.UserID, late bool) *page {
	if p != nil {
		if used := p.used.Load(); used < pageSlots {
			p.ids[used] = id
			p.used.Store(used + 1)
			return p
		}
	}
	v := d.view.Load()
	if len(v.pages) >= math.MaxUint32>>pageBits {
		panic("idset: more than 2^32 users in a directory")
	}
	p = &page{number: uint32(len(v.pages)), late: late, ids: new([pageSlots]storage.UserID)}
	p.ids[0] = id
	p.used.Store(1)
	next := &view{pages: append(slices.Clip(v.pages), p), order: v.order, firsts: v.firsts}
	if !late {
		next.order = append(slices.Clip(v.order), p)
		next.firsts = append(slices.Clip(v.firsts), id)
	}
	d.view.Store(next)
	return p
}

func (p *page) last() ordinal { return ordinal(p.number<<pageBits | uint32(p.used.Load()-1)) }

// finder looks up users. It searches for ascending ids from where the last one was, unless they are late: n of them among N in
// O(n·log(N/n)).
type finder struct {
	dir   *Directory
	view  *view
	at    int // in view.order
	slot  int // in the page there: all users before have smaller ids than the last one looked up
	asked storage.UserID
}

func (d *Directory) finder() finder { return finder{dir: d, view: d.view.Load()} }

func (f *finder) find(id storage.UserID) (ordinal, bool) {
	firsts := f.view.firsts
	if id < f.asked {
		f.at, f.slot = 0, 0
	}
	f.asked = id
	if f.at+1 < len(firsts) && firsts[f.at+1] <= id {
		f.at += sort.Search(len(firsts)-f.at-1, func(i int) bool { return firsts[f.at+1+i] > id })
		f.slot = 0
	}
	if len(firsts) == 0 {
		return f.dir.findLate(id)
	}
	p := f.view.order[f.at]
	users := p.users()
	f.slot = gallop(users, f.slot, id)
	if f.slot < len(users) && users[f.slot] == id {
		return ordinal(p.number<<pageBits | uint32(f.slot)), true
	}
	return f.dir.findLate(id)
}

// gallop returns the first index, not before from, whose element is at least value. O(log of the
// distance).
func gallop[T storage.UserID | ordinal](sorted []T, from int, value T) int {
	low, step := from, 1
	for low+step < len(sorted) && sorted[low+step] < value {
		low += step
		step *= 2
	}
	high := min(low+step, len(sorted))
	for low < high {
		if middle := int(uint(low+high) / 2); sorted[middle] < value {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}
