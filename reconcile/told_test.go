package reconcile_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/reconcile"
	"kith/replication"
	"kith/storage"
	"kith/storage/events"
)

// What gateways have told before somebody listens is no loss when they are first heard, however many they are. That the connection was cut is
// one, even if nothing has been told since.
func TestToldOfSeveralGateways(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	bus := func() (*events.Hub, *events.Bus) {
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
		t.Cleanup(func() { client.Close() })
		hub := events.NewHub(nil)
		b, hears := events.NewBus(hub, events.BusConfig{Redis: client}), make(chan bool, 10)
		go b.Run(t.Context())
		b.OnHearing(func(is bool) { hears <- is })
		for !<-hears {
		}
		return hub, b
	}
	var gateways []*events.Bus
	first, _ := bus()
	heard := first.Subscribe(t.Context())
	tell := func() {
		for i, b := range gateways {
			b.Publish(t.Context(), []storage.Row{{Side: storage.Forward, Edge: storage.Edge{From: storage.UserID(1 + i), To: 9, Type: storage.Following, UpdateTime: 7}}})
		}
	}
	for range 3 {
		_, b := bus()
		gateways = append(gateways, b)
	}
	tell()
	for rows := 0; rows < len(gateways); {
		if e := <-heard.Events(); e.Kind == events.RowChanged {
			rows++
		}
	}

	hub, b := bus()
	log := reconcile.NewTold(hub, b.Earlier)
	told := make(chan storage.Row, 10)
	// read reads until something is lost.
	read := func() <-chan error {
		at, err := log.End(t.Context())
		must.OK(t, err)
		lost := make(chan error, 1)
		go func() {
			lost <- log.Read(t.Context(), nil, at, "", func(c replication.Changed) error {
				for _, row := range c.Rows {
					told <- row
				}
				return nil
			})
		}()
		return lost
	}
	lost := read()
	cut := func() {
		t.Helper()
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer client.Close()
		must.OK(t, client.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err())
		select {
		case err := <-lost:
			check.Is(t, "a cut", err, replication.ErrLost)
		case <-time.After(30 * time.Second):
			t.Fatal("a cut is no loss")
		}
		lost = read()
	}
	cut()
	tell()
	for range gateways {
		select {
		case <-told:
		case err := <-lost:
			t.Fatal(err)
		}
	}
	cut()
}
