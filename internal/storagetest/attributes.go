package storagetest

import (
	"encoding/json"
	"strings"
	"testing"

	"kith/internal/must"
	"kith/storage"
	"kith/storage/contents"
)

// attributes: what a product keeps beside users, posts and follows.
type attributes struct{ *harness }

// attributed makes each object with attributes, and returns how to change them and how to read them.
func (s attributes) attributed(t *testing.T, has storage.Attributes) map[string]attributedObject {
	user := person(s.id())
	user.Attributes = has
	answers(t, s.store.CreateUsers(t.Context(), []storage.User{user}), 1)
	n := s.newPost(user.ID, 1)
	n.Attributes = has
	p, _, err := s.store.Publish(t.Context(), n)
	must.That(t, err == nil && p.Attributes == has, "%v %v", p, err)
	pair := storage.Pair{From: user.ID, To: s.id()}
	s.apply(t, storage.Forward, follow(storage.Forward, pair.From, pair.To, 1))
	wantList(t, "outcomes", beside(s).add(t, storage.AnnotationMark, storage.Annotation{Pair: pair, Special: true, Attributes: has}), []string{added})
	relation := storage.Pair{From: user.ID, To: pair.To, Item: oneKind}
	s.apply(t, storage.Relations, relation.Edge(storage.Related, at(1)))
	found(t, s.store.Restore(t.Context(), storage.Restored{Details: []storage.RelationRow{{Edge: relation.Edge(storage.Related, at(1)), Detail: storage.Detail{Attributes: has}}}}), 1)
	detail := func() storage.Attributes {
		return storage.DetailLookups.Read(t.Context(), s.store, relation)[0].Value.Attributes
	}
	return map[string]attributedObject{
		"user": {func(c storage.AttributeChange) (storage.Attributes, bool, error) {
			u, changed, err := s.store.UpdateProfile(t.Context(), user.ID, storage.ProfileChange{Attributes: c}, at(5))
			return u.Attributes, changed, err
		}, func() storage.Attributes {
			wantEqual(t, "attributes of the profile", found(t, storage.ProfileLookups.Read(t.Context(), s.store, user.ID), 1)[0].User, s.userOf(t, user.ID))
			return s.userOf(t, user.ID).Attributes
		}},
		"post": {func(c storage.AttributeChange) (storage.Attributes, bool, error) {
			p, changed, err := s.store.EditPost(t.Context(), n.PostID, storage.PostChange{Attributes: c}, at(5))
			return p.Attributes, changed, err
		}, func() storage.Attributes {
			return found(t, storage.PostLookups.Read(t.Context(), s.store, n.PostID), 1)[0].Attributes
		}},
		"relation": {func(c storage.AttributeChange) (storage.Attributes, bool, error) {
			change := storage.EdgeChange{To: relation.To, Item: relation.Item, Type: storage.Related, At: at(5), Detail: storage.DetailChange{Attributes: c}}
			r := s.store.ChangeEdges(t.Context(), storage.Relations, user.ID, []storage.EdgeChange{change}, storage.ChangeOptions{})[0]
			return detail(), r.Value.Changed, r.Err
		}, detail},
		"mark": {func(c storage.AttributeChange) (storage.Attributes, bool, error) {
			m, changed, err := s.store.SetMark(t.Context(), pair, storage.MarkChange{Attributes: c})
			return m.Attributes, changed, err
		}, func() storage.Attributes {
			return found(t, storage.MarkLookups.Read(t.Context(), s.store, pair), 1)[0].Attributes
		}},
	}
}

type attributedObject struct {
	change func(storage.AttributeChange) (now storage.Attributes, changed bool, err error)
	read   func() storage.Attributes
}

func values(of ...string) storage.AttributeChange {
	c := storage.AttributeChange{}
	for i := 0; i < len(of); i += 2 {
		c[of[i]] = json.RawMessage(of[i+1])
	}
	return c
}

func (s attributes) AChangeMergesThem(t *testing.T) {
	for what, object := range s.attributed(t, `{"b":"<&>","c":1}`) {
		for _, step := range []struct {
			change storage.AttributeChange
			want   storage.Attributes
		}{
			{values(), `{"b":"<&>","c":1}`},
			{values("c", "1"), `{"b":"<&>","c":1}`},
			{values("c", "2", "a", "true"), `{"a":true,"b":"<&>","c":2}`},
			{values("a", "null", "none", "null"), `{"b":"<&>","c":2}`},
			{values("b", `"友"`), `{"b":"友","c":2}`},
			{values("b", "null", "c", "null"), ""},
			{values("x", "0.5"), `{"x":0.5}`},
		} {
			before := object.read()
			now, changed, err := object.change(step.change)
			wantIs(t, err, nil)
			wantEqual(t, what+" reported", now, step.want)
			wantEqual(t, what+" changed", changed, before != step.want)
			wantEqual(t, what, object.read(), step.want)
		}
	}
}

func (s attributes) TooLongTheyAreRefused(t *testing.T) {
	longest := `"` + strings.Repeat("x", storage.MaxAttributes-len(`{"a":""}`)) + `"`
	for what, object := range s.attributed(t, `{"a":1}`) {
		_, _, err := object.change(values("a", longest, "b", "1"))
		wantIs(t, err, storage.ErrAttributesTooLong)
		wantEqual(t, what, object.read(), `{"a":1}`)
		now, changed, err := object.change(values("a", longest))
		wantIs(t, err, nil)
		wantEqual(t, what+" changed", changed, true)
		wantEqual(t, what+" bytes", len(now), storage.MaxAttributes)
		wantEqual(t, what, object.read(), now)
	}
}

// What is deleted keeps none.
func (s attributes) ADeletedPostHasNone(t *testing.T) {
	n := s.newPost(s.newUsers(t, 1)[0].ID, 1)
	n.Attributes = `{"a":1}`
	_, _, err := s.store.Publish(t.Context(), n)
	must.OK(t, err)
	_, err = s.store.DeletePost(t.Context(), n.PostID)
	must.OK(t, err)
	rows := 0
	shardReader(s).eachShard(t, func(t *testing.T, _ int, at contents.Moment) {
		page, err := at.Posts(t.Context(), storage.PostID{Author: n.Author - 1}, 10)
		wantIs(t, err, nil)
		for _, row := range page {
			if row.PostID == n.PostID {
				rows++
				wantEqual(t, "attributes", row.Attributes, "")
			}
		}
	})
	wantEqual(t, "rows of the post", rows, 1)
}
