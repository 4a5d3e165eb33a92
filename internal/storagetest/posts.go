package storagetest

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// posts: what users publish.
type posts struct{ *harness }

// A post has a text or media.
func (s posts) AnEditLeavesSomething(t *testing.T) {
	n := s.newPost(s.newUsers(t, 1)[0].ID, 1)
	n.Text, n.Media = "text", []storage.Media{{URL: "https://example.org/a.jpg"}}
	post, _, err := s.store.Publish(t.Context(), n)
	wantIs(t, err, nil)
	nothing, none := "", []storage.Media{}
	_, _, err = s.store.EditPost(t.Context(), post.PostID, storage.PostChange{Text: &nothing, Media: &none}, at(5))
	wantIs(t, err, storage.ErrPostEmpty)
	_, changed, err := s.store.EditPost(t.Context(), post.PostID, storage.PostChange{Text: &nothing}, at(5))
	wantIs(t, err, nil)
	wantEqual(t, "changed", changed, true)
	_, _, err = s.store.EditPost(t.Context(), post.PostID, storage.PostChange{Media: &none}, at(6))
	wantIs(t, err, storage.ErrPostEmpty)
	wantEqual(t, "media", len(found(t, storage.PostLookups.Read(t.Context(), s.store, post.PostID), 1)[0].Media), 1)
}

func (s posts) EveryFieldComesBack(t *testing.T) {
	author := s.newUsers(t, 1)[0].ID
	longest := storage.PostRow{PostID: storage.PostID{Author: author, Number: math.MaxInt64}, Key: strings.Repeat("~", storage.MaxClientKeyLength), Text: strings.Repeat("👩", storage.MaxPostLength), At: at(1)}
	for range storage.MaxMedia {
		longest.Media = append(longest.Media, storage.Media{
			Name: strings.Repeat("ё", storage.MaxMediaNameLength), URL: "https://" + strings.Repeat(`<&"\`, storage.MaxMediaURLLength/4-2), Kind: storage.Cover,
		})
	}
	longest.Media[0].Kind = storage.Image
	shortest := storage.PostRow{PostID: storage.PostID{Author: author, Number: s.number()}, Key: "1", At: at(2)}
	for _, n := range []storage.PostRow{longest, shortest} {
		want := storage.Post{PostID: n.PostID, Text: n.Text, Media: n.Media, CreatedAt: n.At, Counts: storage.PostCounts{Version: 1}}
		s.publish(t, n, want, true)
		s.wantPost(t, want)
	}
	wantMissing(t, storage.PostLookups.Read(t.Context(), s.store, storage.PostID{Author: author, Number: s.number()}, storage.PostID{Author: s.id(), Number: shortest.Number}), 2)
}

func (s posts) ManyAreRead(t *testing.T) {
	users := idsOf(s.newUsers(t, 7))
	var ids []storage.PostID
	for i := range many / 10 {
		ids = append(ids, s.post(t, users[i%len(users)], i).PostID)
	}
	for len(ids) < many {
		ids = append(ids, ids[len(ids)/3])
	}
	for i, p := range found(t, storage.PostLookups.Read(t.Context(), s.store, ids...), many) {
		wantEqual(t, "post", p.PostID, ids[i])
	}
}

// The repeated call has another number and another time.
func (s posts) PublishedAgainItIsTheSame(t *testing.T) {
	users := idsOf(s.newUsers(t, 2))
	first := s.newPost(users[0], 1)
	p, _, err := s.store.Publish(t.Context(), first)
	wantIs(t, err, nil)
	counts := s.countsOf(t, users[0])
	again := s.newPost(users[0], 2)
	again.Key = first.Key
	s.publish(t, again, p, false)
	wantEqual(t, "counts", s.countsOf(t, users[0]), counts)
	wantMissing(t, storage.PostLookups.Read(t.Context(), s.store, again.PostID), 1)

	others := s.newPost(users[1], 3)
	others.Key = first.Key
	p, published, err := s.store.Publish(t.Context(), others)
	check.That(t, err == nil && published && p.PostID == others.PostID, "another author's: %+v, %v, %v", p, published, err)
}

func (s posts) PagesRunNewestFirst(t *testing.T) {
	users := idsOf(s.newUsers(t, 2))
	var all []storage.Post
	for i := range 30 {
		all = append(all, s.post(t, users[0], i/3)) // three at the same time
		s.post(t, users[1], i)
	}
	one, media := all[7].PostID, []storage.Media{{URL: "https://example.org/a"}, {URL: "https://example.org/b"}}
	_, _, err := s.store.EditPost(t.Context(), one, storage.PostChange{Attributes: values("a", "1"), Media: &media}, at(50))
	wantIs(t, err, nil)
	s.comment(t, one, users[1], 51)
	s.apply(t, storage.FavoriteInbox, storage.Pair{From: users[1], To: one.Author, Item: one.Number}.Edge(storage.Favorited, at(52)))
	all[7] = found(t, storage.PostLookups.Read(t.Context(), s.store, one), 1)[0]
	newestFirst(all)
	for _, limit := range []int{1, 7, 30, 31} {
		var got []storage.Post
		var after storage.Place
		for len(got) <= len(all) {
			page := s.page(t, storage.PlaceQuery{Of: storage.PostID{Author: users[0]}, After: after, Limit: limit})
			got = append(got, page...)
			if len(page) < limit {
				break
			}
			after = page[limit-1].Place()
		}
		wantPosts(t, got, all)
	}
	gone := all[10]
	changed, err := s.store.DeletePost(t.Context(), gone.PostID)
	must.That(t, err == nil && changed, "%v %v", changed, err)
	wantPosts(t, s.page(t, storage.PlaceQuery{Of: storage.PostID{Author: users[0]}, After: gone.Place(), Limit: 100}), all[11:])
	wantPosts(t, s.page(t, storage.PlaceQuery{Of: storage.PostID{Author: s.id()}, Limit: 3}), nil)
}

func (s posts) TheLatestAreOfAllAuthors(t *testing.T) {
	var all []storage.Post
	for i, author := range idsOf(s.newUsers(t, 12)) {
		all = append(all, s.post(t, author, 1_000_000+i), s.post(t, author, 2_000_000-i/2))
	}
	rich, media := all[5].PostID, []storage.Media{{Name: "a.jpg", URL: "https://example.org/a.jpg", Kind: storage.Image}, {Name: "b.jpg", URL: "https://example.org/b.jpg", Kind: storage.Image}}
	_, _, err := s.store.EditPost(t.Context(), rich, storage.PostChange{Media: &media, Attributes: storage.AttributeChange{"tone": json.RawMessage("1")}}, at(3_000_000))
	wantIs(t, err, nil)
	s.comment(t, rich, s.id(), 1)
	s.apply(t, storage.FavoriteInbox, storage.Pair{From: s.id(), To: rich.Author, Item: rich.Number}.Edge(storage.Favorited, at(1)))
	for i := range all {
		all[i] = storage.PostLookups.Read(t.Context(), s.store, all[i].PostID)[0].Value
	}
	newestFirst(all)
	var got []storage.Post
	for after := (storage.Place{}); len(got) < len(all); {
		page := found(t, storage.LatestPostLookups.Read(t.Context(), s.store, storage.PlaceQuery{After: after, Limit: 5}), 1)[0]
		must.That(t, (len(page) == 5 || len(got)+len(page) >= len(all)) && len(page) <= 5, "%d posts", len(page))
		got = append(got, page...)
		after = got[len(got)-1].Place()
	}
	wantPosts(t, got[:len(all)], all)
}

func (s posts) TheRecentOnesOfEachShardAreListed(t *testing.T) {
	var all []storage.PostAt
	for i, author := range idsOf(s.newUsers(t, 12)) {
		for n := range 3 {
			if p := s.post(t, author, 3_000_000+10*(i/2)+n/2); i > 0 || n > 0 {
				all = append(all, p.At())
			} else {
				s.delete(t, p.PostID, true)
			}
		}
	}
	since := at(3_000_011)
	all = slices.DeleteFunc(all, func(p storage.PostAt) bool { return p.CreatedAt < since })
	newestFirst := func(a, b storage.PostAt) int { return a.Place().Compare(b.Place()) }
	var got []storage.PostAt
	for shard := range s.store.Shards() {
		var after storage.Place
		for {
			page := found(t, storage.RecentPostLookups.Read(t.Context(), s.store, storage.ShardQuery[storage.Place]{Shard: shard, After: after, Until: since, Limit: 4}), 1)[0]
			must.That(t, len(got) <= len(all) && len(page) <= 4 && slices.IsSortedFunc(page, newestFirst), "%v", page)
			if got = append(got, page...); len(page) < 4 {
				break
			}
			after = page[3].Place()
		}
	}
	slices.SortFunc(got, newestFirst)
	slices.SortFunc(all, newestFirst)
	wantList(t, "posts", got, all)
}

func (s posts) TheLastOfEachAuthorIsFound(t *testing.T) {
	users := idsOf(s.newUsers(t, 4))
	for _, n := range []int{4, 2, 9, 5} {
		s.post(t, users[0], n)
	}
	s.post(t, users[1], 6)
	s.delete(t, s.post(t, users[0], 5).PostID, true)
	s.delete(t, s.post(t, users[2], 3).PostID, true)
	asked := append(slices.Clone(users), users[0], s.id())
	for upTo, want := range map[int][]int{4: {4, 0, 0, 0, 4, 0}, 5: {5, 0, 0, 0, 5, 0}, 8: {5, 6, 0, 0, 5, 0}, 1: {0, 0, 0, 0, 0, 0}} {
		for i, r := range storage.LastPostLookups.Read(t.Context(), s.store, storage.LastQuery{UpTo: at(upTo)}.Of(asked)...) {
			check.That(t, r.Err == nil && r.Found == (want[i] > 0) && (!r.Found || r.Value == at(want[i])), "user %d of them up to %d: %+v, want %d", i, upTo, r, want[i])
		}
	}
}

func (s posts) TheyAreCounted(t *testing.T) {
	author := s.newUsers(t, 1)[0].ID
	before := s.countsOf(t, author)
	var first storage.PostID
	for i := range 3 {
		first = s.post(t, author, i).PostID
	}
	s.delete(t, first, true)
	s.delete(t, first, false)
	got := s.countsOf(t, author)
	wantEqual(t, "posts", got.Posts, 2)
	wantEqual(t, "changes", got.Version-before.Version, 4)
	got.Posts, got.Version = before.Posts, before.Version
	wantEqual(t, "other counts", got, before)
}

func (s posts) OnlyWhatIsGivenIsEdited(t *testing.T) {
	want := s.post(t, s.newUsers(t, 1)[0].ID, 1)
	text, media, empty := "changed", []storage.Media{{Name: "a", URL: "https://a", Kind: storage.Video}}, []storage.Media{}
	for i, step := range []struct {
		change storage.PostChange
		text   string
		media  []storage.Media
		same   bool
	}{
		{storage.PostChange{Text: &text}, text, want.Media, false},
		{storage.PostChange{Text: &text}, text, want.Media, true},
		{storage.PostChange{Media: &media}, text, media, false},
		{storage.PostChange{}, text, media, true},
		{storage.PostChange{Text: &text, Media: &empty}, text, nil, false},
	} {
		want.Text, want.Media = step.text, step.media
		if !step.same {
			want.EditedAt = at(10 + i)
			want.Counts.Version++
		}
		got, changed, err := s.store.EditPost(t.Context(), want.PostID, step.change, at(10+i))
		wantIs(t, err, nil)
		wantEqual(t, "changed", changed, !step.same)
		wantPosts(t, []storage.Post{got}, []storage.Post{want})
		s.wantPost(t, want)
	}
}

func (s posts) WhatIsDeletedIsGone(t *testing.T) {
	author := s.newUsers(t, 1)[0].ID
	kept, n := s.post(t, author, 1), s.newPost(author, 9_000_000)
	p, _, err := s.store.Publish(t.Context(), n)
	wantIs(t, err, nil)
	s.delete(t, p.PostID, true)
	wantMissing(t, storage.PostLookups.Read(t.Context(), s.store, p.PostID), 1)
	wantPosts(t, s.page(t, storage.PlaceQuery{Of: storage.PostID{Author: author}, Limit: 10}), []storage.Post{kept})
	latest, err := storage.LatestPostLookups.Get(t.Context(), s.store, storage.PlaceQuery{After: storage.Place{}, Limit: 1})
	check.That(t, err == nil && (len(latest) == 0 || latest[0].PostID != p.PostID), "%+v, %v", latest, err)
	text := "back"
	_, changed, err := s.store.EditPost(t.Context(), p.PostID, storage.PostChange{Text: &text}, at(9))
	wantIs(t, err, storage.ErrPostUnknown)
	wantEqual(t, "changed", changed, false)
	n.Number = s.number()
	_, published, err := s.store.Publish(t.Context(), n)
	wantIs(t, err, storage.ErrPostUnknown)
	wantEqual(t, "published", published, false)
	s.delete(t, storage.PostID{Author: s.id(), Number: 7}, false)
}

func (s posts) NobodyPublishesNothing(t *testing.T) {
	deleting := s.newUsers(t, 1)[0].ID
	s.setState(t, deleting, storage.Deleting, 1, true)
	follower := s.id() // the follower has counts
	s.apply(t, storage.Forward, follow(storage.Forward, follower, deleting, 1))
	for _, id := range []storage.UserID{s.id(), deleting, follower} {
		n := s.newPost(id, 1)
		_, _, err := s.store.Publish(t.Context(), n)
		wantIs(t, err, storage.ErrUserUnknown)
		wantMissing(t, storage.PostLookups.Read(t.Context(), s.store, n.PostID), 1)
	}
}

func (s posts) OneKeyIsPublishedOnce(t *testing.T) {
	author := s.newUsers(t, 1)[0].ID
	var made atomic.Int64
	together(func(worker int) {
		for i := range 20 {
			n := s.newPost(author, i)
			n.Key = fmt.Sprint(i)
			_, published, err := s.store.Publish(t.Context(), n)
			check.That(t, err == nil, "%v", err)
			if published {
				made.Add(1)
			}
		}
	})
	wantEqual(t, "published", made.Load(), 20)
	wantEqual(t, "counted", s.countsOf(t, author).Posts, 20)
	wantEqual(t, "posts", len(s.page(t, storage.PlaceQuery{Of: storage.PostID{Author: author}, Limit: 100})), 20)
}

// number is a number that no other post or comment has.
func (h *harness) number() int64 { return int64(h.id()) }

// newPost is the n-th post in time.
func (h *harness) newPost(author storage.UserID, n int) storage.PostRow {
	number := h.number()
	return storage.PostRow{
		PostID: storage.PostID{Author: author, Number: number}, Key: fmt.Sprint(number), Text: fmt.Sprintf("post %d", n),
		Media: []storage.Media{{Name: "n", URL: "https://u", Kind: storage.Image}}, At: at(n),
	}
}

// post publishes the n-th post in time.
func (h *harness) post(t *testing.T, author storage.UserID, n int) storage.Post {
	t.Helper()
	p, published, err := h.store.Publish(t.Context(), h.newPost(author, n))
	must.That(t, err == nil && published, "%v, %v", published, err)
	return p
}

func (s posts) publish(t *testing.T, n storage.PostRow, want storage.Post, new bool) {
	t.Helper()
	p, published, err := s.store.Publish(t.Context(), n)
	wantIs(t, err, nil)
	wantEqual(t, "published", published, new)
	wantPosts(t, []storage.Post{p}, []storage.Post{want})
}

func (s posts) delete(t *testing.T, id storage.PostID, want bool) {
	t.Helper()
	changed, err := s.store.DeletePost(t.Context(), id)
	wantIs(t, err, nil)
	wantEqual(t, "deleted", changed, want)
}

func (h *harness) wantPost(t *testing.T, want storage.Post) {
	t.Helper()
	wantPosts(t, found(t, storage.PostLookups.Read(t.Context(), h.store, want.PostID), 1), []storage.Post{want})
}

func (s posts) page(t *testing.T, q storage.PlaceQuery) []storage.Post {
	t.Helper()
	return found(t, storage.PostPageLookups.Read(t.Context(), s.store, q), 1)[0]
}

func newestFirst(all []storage.Post) {
	slices.SortFunc(all, func(a, b storage.Post) int { return a.Place().Compare(b.Place()) })
}

// wantPosts checks posts with their order. No media and an empty list of them are the same.
func wantPosts(t *testing.T, got, want []storage.Post) {
	t.Helper()
	same := func(a, b storage.Post) bool {
		media := slices.Equal(a.Media, b.Media)
		a.Media, b.Media = nil, nil
		return media && reflect.DeepEqual(a, b)
	}
	check.That(t, slices.EqualFunc(got, want, same), "got  %+v\nwant %+v", got, want)
}
