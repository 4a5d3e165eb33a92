package storagetest

import (
	"fmt"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/contents"
)

// beside: marks, messages and first follows as an import writes them, and as a shard's reader lists
// them.
type beside struct{ *harness }

// add adds rows and returns for each row whether it was found and whether it was added.
func (s beside) add(t *testing.T, kind storage.AnnotationKind, rows ...storage.Annotation) (outcomes []string) {
	t.Helper()
	for i, r := range s.store.Restore(t.Context(), storage.Restored{Annotations: rows, Kind: kind}) {
		must.That(t, r.Err == nil, "row %d: %v", i, r.Err)
		outcomes = append(outcomes, fmt.Sprintf("%v %v", r.Found, r.Value))
	}
	return outcomes
}

const (
	added    = "true true"
	there    = "true false"
	notFound = "false false"
)

func (s beside) AMarkNeedsAFollow(t *testing.T) {
	one, other := marks(s).followed(t), marks(s).followed(t)
	ended := marks(s).followed(t)
	s.change(t, ended.From, storage.EdgeChange{To: ended.To, Type: storage.None, At: at(50)})
	before := s.countsOf(t, one.From).Version
	got := s.add(t, storage.AnnotationMark,
		storage.Annotation{Pair: other, Text: "Ада"}, storage.Annotation{Pair: one, Special: true, Text: "b"},
		storage.Annotation{Pair: ended, Text: "x"}, storage.Annotation{Pair: storage.Pair{From: one.From, To: s.id()}, Text: "x"},
		storage.Annotation{Pair: storage.Pair{From: s.id(), To: s.id()}, Text: "x"}, storage.Annotation{Pair: one, Text: "again"})
	wantList(t, "outcomes", got, []string{added, added, notFound, notFound, notFound, there})
	now := found(t, storage.MarkLookups.Read(t.Context(), s.store, one, other), 2)
	wantList(t, "marks", now, []storage.EdgeMark{{Special: true, Remark: "b"}, {Remark: "Ада"}})
	wantList(t, "specials", s.specialsOf(t, one.From), []storage.UserID{one.To})
	after := s.countsOf(t, one.From).Version
	check.That(t, after > before, "version %d after %d", after, before)
	wantList(t, "outcomes of what is there", s.add(t, storage.AnnotationMark, storage.Annotation{Pair: one, Text: "c"}), []string{there})
	wantEqual(t, "mark", found(t, storage.MarkLookups.Read(t.Context(), s.store, one), 1)[0].Remark, "b")
}

func (s beside) SpecialsHaveTheirLimit(t *testing.T) {
	person, to := s.newUsers(t, 1)[0].ID, s.ids(storage.MaxSpecials+2)
	var follows []storage.Edge
	var rows []storage.Annotation
	for _, id := range to {
		follows = append(follows, follow(storage.Forward, person, id, 1))
		rows = append(rows, storage.Annotation{Pair: storage.Pair{From: person, To: id}, Special: true})
	}
	s.apply(t, storage.Forward, follows...)
	for i, r := range s.store.Restore(t.Context(), storage.Restored{Annotations: rows, Kind: storage.AnnotationMark}) {
		must.That(t, i >= storage.MaxSpecials || r.Err == nil, "%v", r.Err)
		if i >= storage.MaxSpecials {
			wantIs(t, r.Err, storage.ErrLimitReached)
		}
	}
	wantEqual(t, "specials", len(s.specialsOf(t, person)), storage.MaxSpecials)
}

func (s beside) AMessageNeedsAPendingRequest(t *testing.T) {
	users := s.newUsers(t, 3)
	pending := storage.Pair{From: users[0].ID, To: users[1].ID}
	declined := storage.Pair{From: users[0].ID, To: users[2].ID}
	s.apply(t, storage.Requests,
		storage.Edge{From: pending.From, To: pending.To, Type: storage.Pending, UpdateTime: at(1)},
		storage.Edge{From: declined.From, To: declined.To, Type: storage.Declined, UpdateTime: at(1)})
	rows := []storage.Annotation{{Pair: pending, Text: "hello"}, {Pair: declined, Text: "x"}, {Pair: storage.Pair{From: s.id(), To: s.id()}, Text: "x"}}
	wantList(t, "outcomes", s.add(t, storage.AnnotationMessage, rows...), []string{added, notFound, notFound})
	wantList(t, "outcomes again", s.add(t, storage.AnnotationMessage, storage.Annotation{Pair: pending, Text: "other"}), []string{there})
	results := storage.MessageLookups.Read(t.Context(), s.store, pending, declined)
	wantFound(t, results, true, false)
	wantEqual(t, "message", results[0].Value, "hello")
}

// The edge may have ended since.
func (s beside) AFirstFollowNeedsAnEdge(t *testing.T) {
	one, ended, never := marks(s).followed(t), marks(s).followed(t), storage.Pair{From: s.newUsers(t, 1)[0].ID, To: s.id()}
	s.apply(t, storage.Forward, edge(storage.Forward, ended.From, ended.To, storage.None, at(50)))
	row := func(p storage.Pair, n int) storage.Annotation { return storage.Annotation{Pair: p, At: at(n)} }
	got := s.add(t, storage.AnnotationFirst, row(one, -7), row(ended, -7), row(never, -7), row(one, -9))
	wantList(t, "outcomes", got, []string{added, there, notFound, there}) // its end has noted when the follow began
	wantEqual(t, "mark", found(t, storage.MarkLookups.Read(t.Context(), s.store, one), 1)[0], storage.EdgeMark{FirstAt: at(-7)})
	wantMissing(t, storage.MarkLookups.Read(t.Context(), s.store, ended, never), 2)
}

// A shard's reader lists them in key order, page by page, as they are.
func (s beside) EveryRowComesInKeyOrder(t *testing.T) {
	want := map[storage.AnnotationKind][]storage.Annotation{}
	for range 5 {
		person, to := s.newUsers(t, 1)[0].ID, s.ids(7)
		for i, id := range to {
			p := storage.Pair{From: person, To: id}
			s.apply(t, storage.Forward, follow(storage.Forward, p.From, p.To, 1))
			s.apply(t, storage.Requests, storage.Edge{From: p.From, To: p.To, Type: storage.Pending, UpdateTime: at(1)})
			want[storage.AnnotationMark] = append(want[storage.AnnotationMark], storage.Annotation{Pair: p, Special: i%2 == 0, Text: fmt.Sprint("m", i), Attributes: `{"a":1}`})
			want[storage.AnnotationFirst] = append(want[storage.AnnotationFirst], storage.Annotation{Pair: p, At: at(i + 1)})
			if i > 0 { // the first request has no message
				want[storage.AnnotationMessage] = append(want[storage.AnnotationMessage], storage.Annotation{Pair: p, Text: fmt.Sprint("hello ", i)})
			}
		}
	}
	order := func(a, b storage.Annotation) int { return storage.Forward.Compare(a.Pair, b.Pair) }
	for kind, rows := range want {
		for _, outcome := range s.add(t, kind, rows...) {
			wantEqual(t, "outcome", outcome, added)
		}
		slices.SortFunc(rows, order)
		for _, limit := range pageLimits {
			var all []storage.Annotation
			shardReader(s).eachShard(t, func(t *testing.T, _ int, at contents.Moment) {
				page := besideAt(t, at, kind, limit)
				check.That(t, slices.IsSortedFunc(page, order), "not in order: %v", page)
				for _, b := range page {
					if slices.ContainsFunc(rows, func(own storage.Annotation) bool { return own.Pair == b.Pair }) {
						all = append(all, b)
					}
				}
			})
			slices.SortFunc(all, order)
			wantList(t, "rows", all, rows)
		}
	}
}

// besideAt reads all rows of a kind page by page.
func besideAt(t *testing.T, at contents.Moment, kind storage.AnnotationKind, limit int) []storage.Annotation {
	t.Helper()
	return allPages(t, limit, func(last *storage.Annotation) ([]storage.Annotation, error) {
		if last == nil {
			return at.Annotations(t.Context(), kind, storage.Pair{}, limit)
		}
		return at.Annotations(t.Context(), kind, last.Pair, limit)
	})
}
