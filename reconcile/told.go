package reconcile

import (
	"context"
	"crypto/rand"
	"fmt"

	"kith/replication"
	"kith/storage"
	"kith/storage/events"
)

// Told is the log of what gateways tell each other, for servers that write no binlog: the forward row of a change when it is written,
// and the inverse one when both are (seeds 1 and 2, message pairs). It has no past: a reader that has not listened, or that hears of a
// gap, has lost the rows of that time.
type Told struct {
	hub     *events.Hub
	earlier func() int64
	heard   *events.Subscription // nil: nobody listens
	at      string               // the only position: since nothing was lost
	gaps    int64                // how many of the earlier gaps have come, or were before anybody listened
}

// NewTold makes the log of what a hub is told; earlier is [events.Bus.Earlier] of its bus. One reader reads it.
func NewTold(hub *events.Hub, earlier func() int64) *Told { return &Told{hub: hub, earlier: earlier} }

// Name implements [replication.Log].
func (l *Told) Name() string { return "told" }

// Title implements [replication.Log].
func (l *Told) Title() string { return "what gateways tell each other" }

// Begin implements [replication.Log].
func (l *Told) Begin() string { return "" }

// End implements [replication.Log]: it listens from now on. Rows behind a gap are still to be read.
func (l *Told) End(ctx context.Context) (string, error) {
	if l.heard == nil {
		l.heard = l.hub.Subscribe(ctx)
		l.gaps = l.earlier()
	}
	l.at = rand.Text()
	return l.at, nil
}

// Read implements [replication.Log]. Rows that a gateway wrote before it was first heard are lost.
func (l *Told) Read(ctx context.Context, _ storage.Answerer, after, _ string, take func(replication.Changed) error) error {
	if l.heard == nil || after != l.at {
		return fmt.Errorf("%w: nobody has listened since", replication.ErrLost)
	}
	for e := range l.heard.Events() {
		switch {
		case e.Kind == events.Gap && l.gaps < l.earlier():
			l.gaps++
		case e.Kind == events.Gap:
			l.at = ""
			return fmt.Errorf("%w: gateways have told something that did not arrive", replication.ErrLost)
		case e.Kind == events.RowChanged:
			if err := take(replication.Changed{Change: storage.Change{Rows: []storage.Row{e.Row}}, At: func() (string, error) { return after, nil }}); err != nil {
				return err
			}
		}
	}
	ended := l.heard.Err()
	if l.heard = nil; ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", replication.ErrLost, ended)
}
