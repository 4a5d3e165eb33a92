package storagetest

import (
	"slices"

	"pgregory.net/rapid"

	"kith/internal/must"
	"kith/storage"
)

// everything compares every read of all users.
func (p *pair) everything(t *rapid.T) {
	p.compareUsers(t, p.ids)
	p.compareHandles(t, p.handles)
	p.comparePasswords(t, p.ids)
	p.compareLogs(t)
	p.compareCounts(t, p.ids)
	p.compareProfiles(t)
	var pairs []storage.Pair
	p.compareMessages(t)
	var pages []storage.PageQuery
	for _, owner := range p.ids {
		pages = append(pages, storage.PageQuery{Owner: owner, Limit: 100})
		for _, peer := range p.ids {
			pairs = append(pairs, storage.Pair{From: owner, To: peer})
		}
	}
	for _, side := range storage.Sides {
		p.compareEdges(t, side, pairs)
		p.comparePages(t, side, pages)
		p.compareNeighbours(t, side, p.ids)
	}
	p.compareLists(t, storage.Forward)
	p.compareLists(t, storage.Inverse)
}

func (p *pair) compareUsers(t *rapid.T, ids []storage.UserID) {
	compare(t, "users", ids, storage.UserLookups.Read(t.Context(), p.store, ids...), storage.UserLookups.Read(t.Context(), p.reference, ids...), equal)
}

func (p *pair) compareHandles(t *rapid.T, handles []string) {
	compare(t, "handles", handles, storage.HandleLookups.Read(t.Context(), p.store, handles...), storage.HandleLookups.Read(t.Context(), p.reference, handles...), equal)
}

func (p *pair) comparePasswords(t *rapid.T, ids []storage.UserID) {
	compare(t, "passwords", ids, storage.PasswordLookups.Read(t.Context(), p.store, ids...), storage.PasswordLookups.Read(t.Context(), p.reference, ids...), equal)
}

// startLog remembers where the store's logs end.
func (p *pair) startLog(t *rapid.T) {
	log, ok := p.store.(logger)
	if !ok || !log.HasLog() {
		return
	}
	ends, err := endsOf(t.Context(), log, len(p.store.Ping(t.Context())))
	must.OK(t, err)
	p.log, p.ends = log, ends
}

// compareLogs compares the rows logged of each key, in their order.
func (p *pair) compareLogs(t *rapid.T) {
	if p.log == nil {
		return
	}
	got, err := loggedBehind(t.Context(), p.log, p.ends)
	must.OK(t, err)
	want, err := loggedBehind(t.Context(), p.reference, []int64{0})
	must.OK(t, err)
	keys := byKey(want)
	for where, rows := range byKey(got) {
		must.That(t, slices.Equal(rows, keys[where]), "logged at %+v:\ngot  %+v\nwant %+v", where, rows, keys[where])
	}
	must.Equal(t, "rows logged", len(got), len(want))
}

func (p *pair) compareEdges(t *rapid.T, side storage.Side, pairs []storage.Pair) {
	compare(t, side.String(), pairs, storage.EdgeLookups[side].Read(t.Context(), p.store, pairs...), storage.EdgeLookups[side].Read(t.Context(), p.reference, pairs...), equal)
}

func (p *pair) comparePages(t *rapid.T, side storage.Side, queries []storage.PageQuery) {
	compare(t, "pages of "+side.String(), queries,
		storage.PageLookups[side].Read(t.Context(), p.store, queries...), storage.PageLookups[side].Read(t.Context(), p.reference, queries...), slices.Equal)
}

func (p *pair) compareNeighbours(t *rapid.T, side storage.Side, owners []storage.UserID) {
	compare(t, "neighbours of "+side.String(), owners,
		storage.NeighbourLookups[side].Read(t.Context(), p.store, owners...), storage.NeighbourLookups[side].Read(t.Context(), p.reference, owners...), slices.Equal)
	p.comparePacked(t, side, owners)
}

// comparePacked compares those lists that the store has packed.
func (p *pair) comparePacked(t *rapid.T, side storage.Side, owners []storage.UserID) {
	got := storage.PackedLookups[side].Read(t.Context(), p.store, owners...)
	want := storage.NeighbourLookups[side].Read(t.Context(), p.reference, owners...)
	for i := range min(len(got), len(want)) {
		if got[i].Err == nil && !got[i].Found {
			want[i] = storage.Result[[]storage.UserID]{}
		}
	}
	compare(t, "packed neighbours of "+side.String(), owners, got, want, slices.Equal)
}

// compareProfiles compares users with their counts. The version is that of the counts.
func (p *pair) compareProfiles(t *rapid.T) {
	versions := storage.CountLookups.Read(t.Context(), p.store, p.ids...)
	got := storage.ProfileLookups.Read(t.Context(), p.store, p.ids...)
	want := storage.ProfileLookups.Read(t.Context(), p.reference, p.ids...)
	for i := range min(len(want), len(versions)) {
		want[i].Value.Counts.Version = versions[i].Value.Version
	}
	compare(t, "profiles", p.ids, got, want, equal)
}

// compareLists compares whole lists, some of them with a bound that is too low.
func (p *pair) compareLists(t *rapid.T, side storage.Side) {
	var queries []storage.ListQuery
	for i, owner := range p.ids {
		queries = append(queries, storage.ListQuery{Owner: owner, Longest: 100}, storage.ListQuery{Owner: owner, Longest: i % 3, EndedSince: at(i)})
	}
	versions := storage.CountLookups.Read(t.Context(), p.store, p.ids...)
	got := storage.SnapshotLookups[side].Read(t.Context(), p.store, queries...)
	want := storage.SnapshotLookups[side].Read(t.Context(), p.reference, queries...)
	for i := range min(len(want), 2*len(versions)) {
		want[i].Value.Version = versions[i/2].Value.Version
	}
	compare(t, "lists of "+side.String(), queries, got, want, equalLists)
}

// compareMessages compares the messages of all requests.
func (p *pair) compareMessages(t *rapid.T) {
	var requests []storage.Pair
	for _, from := range p.ids {
		for _, to := range p.ids {
			requests = append(requests, storage.Pair{From: from, To: to})
		}
	}
	compare(t, "messages", requests, storage.MessageLookups.Read(t.Context(), p.store, requests...), storage.MessageLookups.Read(t.Context(), p.reference, requests...), equal)
}

// compareCounts compares the counts, and whether the versions have risen since the last time.
func (p *pair) compareCounts(t *rapid.T, ids []storage.UserID) {
	got := storage.CountLookups.Read(t.Context(), p.store, ids...)
	want := storage.CountLookups.Read(t.Context(), p.reference, ids...)
	compare(t, "counts", ids, got, want, func(a, b storage.Counts) bool {
		return a.Following == b.Following && a.Follower == b.Follower && a.Friend == b.Friend
	})
	now := map[storage.UserID][2]int64{}
	for i, id := range ids {
		now[id] = [2]int64{got[i].Value.Version, want[i].Value.Version}
		old, known := p.versions[id]
		if known && (now[id][0] < old[0] || (now[id][0] > old[0]) != (now[id][1] > old[1])) {
			t.Fatalf("user %d: the version was %d and is %d; the reference's was %d and is %d",
				id, old[0], now[id][0], old[1], now[id][1])
		}
	}
	if p.versions == nil {
		p.versions = now
	}
	for id, versions := range now {
		p.versions[id] = versions
	}
}

// compare compares the answers to a look-up. The reference answers without errors.
func compare[K, V any](t *rapid.T, what string, keys []K, got, want []storage.Result[V], equal func(a, b V) bool) {
	t.Helper()
	must.That(t, len(got) == len(want), "%s: %d results for %d keys", what, len(got), len(want))
	for i := range got {
		if got[i].Err != nil || got[i].Found != want[i].Found || (got[i].Found && !equal(got[i].Value, want[i].Value)) {
			t.Fatalf("%s, key %d, %+v:\ngot  %+v\nwant %+v", what, i, keys[i], got[i], want[i])
		}
	}
}

func equal[V comparable](a, b V) bool { return a == b }
