package cluster

import (
	"path/filepath"
	"testing"
	"time"

	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/social"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/sqlstore"
)

// In the mode binlog a log shows a request once. If its copy is lost with the copy's shard, and the event with an outage, who asks again writes
// the copy again, and the other user hears of it.
func TestACopyThatIsWrittenAgainIsReported(t *testing.T) {
	t.Parallel()
	store := opened.Store(t, sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db")})
	must.All(t, store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "one"}, {ID: 2, Handle: "two"}}))
	hub := events.NewHub(nil)
	defer hub.Close()
	relations := social.NewRelations(social.Relations{Store: store, Redundancy: logged{events.NewBus(hub, events.BusConfig{})}})
	ask := func() {
		t.Helper()
		_, err := relations.Ask(t.Context(), store, 1, 2, "")
		must.OK(t, err)
	}
	heard := hub.Subscribe(t.Context(), 2)
	ask() // its log reports it
	select {
	case e := <-heard.Events():
		t.Errorf("reported beside the log: %+v", e)
	case <-time.After(10 * time.Millisecond):
	}
	ask()
	if e := <-heard.Events(); e.Side != storage.Inbox || e.Edge.From != 1 || e.Edge.Type != storage.Pending {
		t.Errorf("%+v", e)
	}
}
