package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// A Bundle holds look-ups of several kinds that are known at the same time, with room for their
// answers. Stores are asked in bundles, see [Bundler].
type Bundle struct {
	lookups []asked // ascending by kind
	room    [4]asked
}

// asked is the look-up of a kind, a [Lookup].
type asked struct {
	kind int // its number
	lookup
}

type lookup interface {
	Open() bool
	Fail(error)
	keys() int
	none()
}

// Lookup holds keys of one kind and, once it is answered, a Result for each, at its index. It
// follows the contract of its [LookupKind].
type Lookup[K, V any] struct {
	Keys    []K
	Results []Result[V] // nil: not answered yet
}

// Answerer answers bundles. All reads by keys go through it.
type Answerer interface {
	// Bundle answers every open look-up of a bundle, in as few statements as possible. A failure affects all keys of the same shard.
	Bundle(ctx context.Context, b *Bundle)
}

// Bundler also answers bundles from memory.
type Bundler interface {
	Answerer

	// AtHand answers what it can of a bundle from this process's memory: of each kind, either all
	// keys or none. It does no I/O and does not wait.
	AtHand(b *Bundle)
}

// Open reports whether the look-up has keys but no answers yet.
func (l *Lookup[K, V]) Open() bool { return l != nil && l.Results == nil }

// Fail answers all keys with an error.
func (l *Lookup[K, V]) Fail(err error) {
	l.none()
	for i := range l.Results {
		l.Results[i].Err = err
	}
}

// keys is how many keys there are.
func (l *Lookup[K, V]) keys() int { return len(l.Keys) }

// none answers that nothing is Found.
func (l *Lookup[K, V]) none() { l.Results = make([]Result[V], len(l.Keys)) }

// answer reads the keys. A read that panics counts as failed.
func (l *Lookup[K, V]) answer(ctx context.Context, read func(context.Context, []K) []Result[V]) {
	defer func() {
		if reason := recover(); reason != nil {
			l.Fail(fmt.Errorf("a look-up panicked: %v\n%s", reason, debug.Stack()))
		}
	}()
	l.Results = read(ctx, l.Keys)
}

// Open reports whether a look-up is open.
func (b *Bundle) Open() bool {
	return slices.ContainsFunc(b.lookups, func(l asked) bool { return l.Open() })
}

// Fail answers all open look-ups with an error.
func (b *Bundle) Fail(err error) {
	for _, l := range b.lookups {
		if l.Open() {
			l.Fail(err)
		}
	}
}

// put has the bundle ask for a look-up.
func (b *Bundle) put(kind int, l lookup) {
	if b.lookups == nil {
		b.lookups = b.room[:0]
	}
	at, found := slices.BinarySearchFunc(b.lookups, kind, func(a asked, kind int) int { return cmp.Compare(a.kind, kind) })
	if found {
		b.lookups[at].lookup = l
		return
	}
	b.lookups = slices.Insert(b.lookups, at, asked{kind, l})
}

// with is a bundle, nil at first, with one more look-up.
func (b *Bundle) with(l asked) *Bundle {
	if b == nil {
		b = new(Bundle)
	}
	b.put(l.kind, l.lookup)
	return b
}

// asked is what the bundle asks for.
func (b *Bundle) asked() (asked []Read) {
	for _, l := range b.lookups {
		if l.keys() > 0 {
			asked = append(asked, Read{Lookup: kinds[l.kind].name, Keys: l.keys()})
		}
	}
	return asked
}

// Answering implements [Bundler] for stores by a function for each kind. Kinds without a function are passed on to the store below. If
// there is none, nothing is Found of the kinds that only caches keep.
type Answering struct {
	below Bundler
	by    [maxKinds]func(context.Context, lookup)
	near  [maxKinds]func(lookup) // from memory
}

// Over has another store answer what has no function.
func (a *Answering) Over(below Bundler) { a.below = below }

// AtHand answers what is in memory, here or in the store below.
func (a *Answering) AtHand(b *Bundle) {
	var below *Bundle
	for _, l := range b.lookups {
		switch {
		case !l.Open():
		case a.near[l.kind] != nil:
			a.near[l.kind](l.lookup)
		case a.by[l.kind] != nil:
		case a.below != nil:
			below = below.with(l)
		case kinds[l.kind].cached:
			l.none()
		}
	}
	if below != nil {
		a.below.AtHand(below)
	}
}

// Bundle answers all kinds at the same time. Users and counts are read as profiles if a bundle asks for both, or if they have no
// function.
func (a *Answering) Bundle(ctx context.Context, b *Bundle) {
	reads, below := a.split(b)
	if below != nil {
		reads = append(reads, func(ctx context.Context) { a.below.Bundle(ctx, below) })
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	for i, read := range reads {
		if i+1 < len(reads) {
			beside.Go(func() { read(ctx) })
		} else {
			read(ctx)
		}
	}
}

// split returns what reads the open look-ups of the kinds that have a function, and those that the store below answers; nil: there are
// none. Kinds that have neither are answered.
func (a *Answering) split(b *Bundle) (reads []func(context.Context), below *Bundle) {
	users, counts := a.people(b)
	if users != nil || counts != nil {
		reads = append(reads, func(ctx context.Context) { a.readPeople(ctx, users, counts) })
	}
	for _, l := range b.lookups {
		switch {
		case !l.Open() || l.lookup == lookup(users) || l.lookup == lookup(counts):
		case a.by[l.kind] != nil:
			reads = append(reads, func(ctx context.Context) { a.by[l.kind](ctx, l.lookup) })
		case a.below != nil:
			below = below.with(l)
		case kinds[l.kind].cached:
			l.none()
		default:
			l.Fail(fmt.Errorf("the store does not answer %s", kinds[l.kind].name))
		}
	}
	return reads, below
}

// people are the users and counts that are read as profiles.
func (a *Answering) people(b *Bundle) (users *Lookup[UserID, User], counts *Lookup[UserID, Counts]) {
	users, counts = UserLookups.In(b), CountLookups.In(b)
	switch {
	case a.by[ProfileLookups.number] == nil:
	case users.Open() && counts.Open():
		return users, counts
	case users.Open() && a.by[UserLookups.number] == nil:
		return users, nil
	case counts.Open() && a.by[CountLookups.number] == nil:
		return nil, counts
	}
	return nil, nil
}

func (a *Answering) readPeople(ctx context.Context, users *Lookup[UserID, User], counts *Lookup[UserID, Counts]) {
	var both Lookup[UserID, Profile]
	switch {
	case counts == nil:
		both.Keys = users.Keys
	case users == nil || slices.Equal(users.Keys, counts.Keys):
		both.Keys = counts.Keys
	default:
		both.Keys = slices.Concat(users.Keys, counts.Keys) // a store reads each once
	}
	a.by[ProfileLookups.number](ctx, &both)
	if users != nil {
		users.Results = Each(both.Results[:len(users.Keys)], func(r Result[Profile]) Result[User] {
			return Result[User]{Value: r.Value.User, Found: r.Value.Exists, Err: r.Err}
		})
	}
	if counts != nil {
		counts.Results = Each(both.Results[len(both.Keys)-len(counts.Keys):], func(r Result[Profile]) Result[Counts] {
			return Result[Counts]{Value: r.Value.Counts, Found: r.Value.Counted, Err: r.Err}
		})
	}
}

// LookupKind is a kind of look-up: what it is called, and whose rows it asks for. Kinds by side are one kind for
// each.
type LookupKind[K, V any] struct {
	number int

	// Owner is the user whose rows a key asks for, and the side; nil if it does not ask for relations.
	Owner func(K) (Side, UserID)
}

// SideLookups are kinds at the indexes of their sides.
type SideLookups[K, V any] []*LookupKind[K, V]

// maxKinds is more than there are kinds.
const maxKinds = 96

// kinds are all of them, at their numbers.
var kinds []kind

type kind struct {
	name   string
	cached bool // only caches have it
	ask    func(*Bundle) any
}

// Read has a store answer some keys.
func (k *LookupKind[K, V]) Read(ctx context.Context, from Answerer, keys ...K) []Result[V] {
	if len(keys) == 0 {
		return nil
	}
	var b Bundle
	l := k.Ask(&b, keys...)
	if from.Bundle(ctx, &b); l.Open() {
		l.Fail(errNotAnswered)
	}
	return l.Results
}

// Get has a store answer one key.
func (k *LookupKind[K, V]) Get(ctx context.Context, from Answerer, key K) (V, error) {
	r := k.Read(ctx, from, key)[0]
	return r.Value, r.Err
}

// OneByOne answers keys by a function that answers one.
func OneByOne[K, V any](read func(context.Context, K) (V, error)) func(context.Context, []K) []Result[V] {
	return func(ctx context.Context, keys []K) []Result[V] {
		return Each(keys, func(key K) Result[V] {
			v, err := read(ctx, key)
			return Result[V]{v, err == nil, err}
		})
	}
}

var errNotAnswered = errors.New("the store has left a look-up unanswered")

// In is the look-up of the kind in a bundle, nil if it does not ask for it.
func (k *LookupKind[K, V]) In(b *Bundle) *Lookup[K, V] {
	for _, l := range b.lookups {
		if l.kind == k.number {
			return l.lookup.(*Lookup[K, V])
		}
	}
	return nil
}

// Put has a bundle ask for a look-up, and Ask for some keys.
func (k *LookupKind[K, V]) Put(b *Bundle, l *Lookup[K, V]) { b.put(k.number, l) }

func (k *LookupKind[K, V]) Ask(b *Bundle, keys ...K) *Lookup[K, V] {
	l := &Lookup[K, V]{Keys: keys}
	k.Put(b, l)
	return l
}

// AnsweredBy has a store answer the kind by a function.
func (k *LookupKind[K, V]) AnsweredBy(a *Answering, read func(context.Context, []K) []Result[V]) {
	a.by[k.number] = func(ctx context.Context, l lookup) { l.(*Lookup[K, V]).answer(ctx, read) }
}

// AnsweredBy has a store answer the kinds by a function.
func (s SideLookups[K, V]) AnsweredBy(a *Answering, read func(context.Context, Side, []K) []Result[V]) {
	for side, k := range s {
		k.AnsweredBy(a, func(ctx context.Context, keys []K) []Result[V] { return read(ctx, Side(side), keys) })
	}
}

// AtHandBy has a store answer the kind from memory by a function, which returns nil unless it knows all keys.
func (k *LookupKind[K, V]) AtHandBy(a *Answering, known func([]K) []Result[V]) {
	a.near[k.number] = func(l lookup) {
		of := l.(*Lookup[K, V])
		of.Results = known(of.Keys)
	}
}

// Instead answers what a bundle asks of the kind, before another store answers the rest.
func (k *LookupKind[K, V]) Instead(ctx context.Context, b *Bundle, read func(context.Context, []K) []Result[V]) {
	if l := k.In(b); l.Open() {
		l.answer(ctx, read)
	}
}

// Instead answers what a bundle asks of the kinds, before another store answers the rest.
func (s SideLookups[K, V]) Instead(ctx context.Context, b *Bundle, read func(context.Context, Side, []K) []Result[V]) {
	for side, k := range s {
		k.Instead(ctx, b, func(ctx context.Context, keys []K) []Result[V] { return read(ctx, Side(side), keys) })
	}
}

// EachKind calls visit with the name of each kind, with what returns a bundle's *[Lookup] of it, to which it adds one without keys if there
// is none, and with whether only caches have it.
func EachKind(visit func(name string, ask func(*Bundle) any, cached bool)) {
	for _, k := range kinds {
		visit(k.name, k.ask, k.cached)
	}
}

// NewKind adds a kind. It is for variables of packages.
func NewKind[K, V any](name string, owner func(K) (Side, UserID)) *LookupKind[K, V] {
	k := &LookupKind[K, V]{len(kinds), owner}
	kinds = append(kinds, kind{name: name, ask: func(b *Bundle) any {
		if l := k.In(b); l != nil {
			return l
		}
		return k.Ask(b)
	}})
	return k
}

// OfCaches says that only caches have the kind.
func (k *LookupKind[K, V]) OfCaches() *LookupKind[K, V] {
	kinds[k.number].cached = true
	return k
}

func ofUser(id UserID) (Side, UserID) { return Forward, id }

func ofFirst(p Pair) (Side, UserID) { return Forward, p.From }

func sideUser(_ Side, id UserID) UserID { return id }

// bySide adds a kind for each side.
func bySide[K, V any](sides []Side, name string, owner func(Side, K) UserID) SideLookups[K, V] {
	return Each(sides, func(side Side) *LookupKind[K, V] {
		return NewKind[K, V](name+"."+side.String(), func(key K) (Side, UserID) { return side, owner(side, key) })
	})
}
