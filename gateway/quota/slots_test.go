package quota

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"kith/gateway/exchange"
	"kith/internal/check"
	"kith/internal/must"
)

// Of the answers that are made at the same time, one user has a quarter. Whoever waits for a server that does not answer keeps others for
// no longer than work takes, and what its client does not take keeps only its user.
func TestAnswersAreMadeInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Bounds{Connections: 100, AddressConnections: 100, UserConnections: 100, Answers: 8}, func(context.Context) Party { return Party{} }, nil)
		begin := func(who int64, after time.Duration) Turn {
			t.Helper()
			slot, full := l.Enter(exchange.WebSocket, user(who))
			must.That(t, full == nil, "%v", full)
			began := time.Now()
			turn := slot.Turn(t.Context())
			check.Equal(t, fmt.Sprint("the wait of user ", who), time.Since(began), after)
			return turn
		}
		silent := []Turn{begin(1, 0), begin(1, 0), begin(1, longestTurn)}
		for _, who := range []int64{1, 2, 2, 3, 3, 4, 4} {
			begin(who, 0)
		}
		begin(5, longestTurn)
		for _, turn := range silent { // much later
			turn.Made()
			turn.Sent()
		}

		first, second := begin(6, 0), begin(6, 0)
		first.Made()
		second.Made()
		time.AfterFunc(time.Minute, first.Sent)
		last := begin(6, time.Minute)
		last.Sent()
		second.Sent()
		if time.Sleep(longestTurn); !l.answers.TryAcquire(8) {
			t.Error("not all turns have ended")
		}
	})
}
