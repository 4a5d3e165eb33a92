package reconcile_test

import (
	"encoding/json"
	"errors"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/reconcile"
	"kith/storage"
)

// Findings name the pair of tables, in text and in JSON.
func TestFindingsNameTheirTables(t *testing.T) {
	there := storage.Edge{From: 3, To: 4, Type: storage.Accepted, UpdateTime: 7}
	related := storage.Edge{From: 3, To: 4, Item: 101, Type: storage.Related, UpdateTime: 7}
	for _, tt := range []struct {
		f          reconcile.Finding
		text, json string
	}{
		{
			reconcile.Finding{Kind: reconcile.WrongTime, Forward: edgeAt(storage.Following, 5), Inverse: edgeAt(storage.Following, 6)},
			"wrong_time   1 → 2: following type 1 at 5, follower type 1 at 6",
			`{"kind":"wrong_time","pair":"following","from":"1","to":"2","following":{"type":1,"updateTime":5},"follower":{"type":1,"updateTime":6}}`,
		},
		{
			reconcile.Finding{Kind: reconcile.Missing, Side: storage.Requests, Forward: there, Inverse: storage.Edge{From: 3, To: 4}},
			"missing      3 → 4: friend_request type 2 at 7, friend_request_inbox has no row",
			`{"kind":"missing","pair":"friend_request","from":"3","to":"4","friendRequest":{"type":2,"updateTime":7},"friendRequestInbox":null}`,
		},
		{
			reconcile.Finding{Kind: reconcile.WrongCount, Side: storage.Inverse, User: 9, Have: 2, Are: 1},
			"wrong_count  user 9: follower says 2, there are 1",
			`{"kind":"wrong_count","count":"follower_count","table":"follower","user":"9","have":2,"are":1}`,
		},
		{
			reconcile.Finding{Kind: reconcile.WrongCount, Friends: true, User: 9, Have: 2, Are: 1},
			"wrong_count  user 9: friend says 2, there are 1",
			`{"kind":"wrong_count","count":"friend_count","user":"9","have":2,"are":1}`,
		},
		{
			reconcile.Finding{Kind: reconcile.WrongCount, Side: storage.FavoriteInbox, User: 9, Post: 101, Have: 2, Are: 1},
			"wrong_count  post 101 of user 9: favorite_inbox says 2, there are 1",
			`{"kind":"wrong_count","count":"favorite_count","table":"favorite_inbox","user":"9","post":"101","have":2,"are":1}`,
		},
		{
			reconcile.Finding{Kind: reconcile.WrongCount, Side: storage.RelationInbox, User: 9, Post: 101, Have: 2, Are: 1},
			"wrong_count  kind 101 of user 9: relation_inbox says 2, there are 1",
			`{"kind":"wrong_count","count":"incoming","table":"relation_inbox","user":"9","relationKind":"101","have":2,"are":1}`,
		},
		{
			reconcile.Finding{Kind: reconcile.Missing, Side: storage.Relations, Forward: related, Inverse: storage.Edge{From: 3, To: 4, Item: 101}},
			"missing      3 → 4 of kind 101: relation type 1 at 7, relation_inbox has no row",
			`{"kind":"missing","pair":"relation","relationKind":"101","from":"3","to":"4","relation":{"type":1,"updateTime":7},"relationInbox":null}`,
		},
		{
			reconcile.Finding{Kind: reconcile.Forbidden, Forward: edgeAt(storage.Following, 5), Inverse: storage.Edge{From: 2, To: 1, Type: storage.Blocking, UpdateTime: 4}},
			"forbidden    1 → 2: following type 1 at 5, follower has a block the other way, type 2 at 4",
			`{"kind":"forbidden","pair":"following","from":"1","to":"2","following":{"type":1,"updateTime":5},"block":{"type":2,"updateTime":4}}`,
		},
		{
			reconcile.Finding{Kind: reconcile.Forbidden, User: 9, Forward: storage.Edge{From: 9, To: 9}},
			"forbidden    user 9: it has the id of a user who was deleted",
			`{"kind":"forbidden","user":"9"}`,
		},
	} {
		check.Equal(t, "the text", tt.f.String(), tt.text)
		var got, want map[string]any
		text, err := json.Marshal(tt.f)
		must.OK(t, errors.Join(err, json.Unmarshal(text, &got), json.Unmarshal([]byte(tt.json), &want)))
		check.Equal(t, "JSON", got, want)
	}
}
