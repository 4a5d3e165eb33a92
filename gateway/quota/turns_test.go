package quota

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

func always(n int) func() int { return func() int { return n } }

func user(n int64) Party { return Party{User: n} }

// worked lets requests of parties come, one after another, while the only turn is taken, and returns in which order they get it. Each is to cost
// 100, and takes some microseconds.
func worked(t *testing.T, turns *turns, requests []Party, took func(Party) uint64) (order []int64) {
	t.Helper()
	first := turns.begin(t.Context(), user(0), 1)
	if first == nil {
		t.Fatal("the first was refused")
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, who := range requests {
		all.Go(func() {
			own := turns.begin(t.Context(), who, 100)
			if own == nil {
				return
			}
			mu.Lock()
			order = append(order, who.User)
			mu.Unlock()
			time.Sleep(time.Duration(took(who)) * time.Microsecond)
			own.end()
		})
		synctest.Wait() // it waits
	}
	first.end()
	all.Wait()
	return order
}

func repeated(who int64, n int) []Party { return slices.Repeat([]Party{user(who)}, n) }

func equal(Party) uint64 { return 100 }

// One request of a party does not wait for the many that another has sent before.
func TestAPartyThatComesLaterIsNotLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		order := worked(t, newTurns("", always(1), 100), slices.Concat(repeated(1, 20), repeated(2, 2)), equal)
		if len(order) != 22 || slices.Contains(order[4:], 2) {
			t.Errorf("the order was %v", order)
		}
	})
}

// Parties have turns in proportion to what their requests do not take, whatever they are to cost.
func TestTurnsAreSharedByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		order := worked(t, newTurns("", always(1), 100), slices.Concat(repeated(1, 40), repeated(3, 40)), func(who Party) uint64 { return 100 * uint64(who.User) })
		cheap := 0
		for _, who := range order[:40] {
			if who == 1 {
				cheap++
			}
		}
		if len(order) != 80 || cheap < 29 || cheap > 31 {
			t.Errorf("of 40 turns, %d went to those who take a third: %v", cheap, order)
		}
	})
}

// If too many wait, the one whose turn would come last leaves, not the one who has come last.
func TestWhoSendsMostIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		order := worked(t, newTurns("", always(1), 10), slices.Concat(repeated(1, 15), repeated(2, 3), repeated(3, 1)), equal)
		slices.Sort(order)
		if want := []int64{1, 1, 1, 1, 1, 1, 2, 2, 2, 3}; !slices.Equal(order, want) {
			t.Errorf("%v got turns, not %v", order, want)
		}
	})
}

// Who does not wait any more, takes no turn; and turns do not get lost.
func TestTurnsThatDoNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns("", always(2), 10)
		first, second := turns.begin(t.Context(), user(1), 100), turns.begin(t.Context(), user(1), 100)
		first.late.Stop()
		second.late.Stop()
		began := time.Now()
		if turns.begin(t.Context(), user(2), 100) != nil || time.Since(began) != patience {
			t.Errorf("a third turn, or refused after %s", time.Since(began))
		}
		gone, cancel := context.WithTimeout(t.Context(), patience/10)
		defer cancel()
		if began = time.Now(); turns.begin(gone, user(2), 100) != nil || time.Since(began) != patience/10 {
			t.Errorf("a third turn, or refused after %s", time.Since(began))
		}
		if next := turns.ends[user(2)]; next > turns.now {
			t.Errorf("requests that were refused have cost their party %d", next-turns.now)
		}
		first.end()
		second.end()
		if turns.taken != 0 || len(turns.waiting) != 0 || len(turns.ends) != 0 {
			t.Errorf("afterwards: %+v", turns)
		}
	})
}

type partyKey struct{}

// asking is the context of a request of a party.
func asking(t *testing.T, who Party) context.Context {
	return context.WithValue(t.Context(), partyKey{}, who)
}

func limiter() *Limiter {
	return New(Bounds{Requests: 1000}, func(ctx context.Context) Party { return ctx.Value(partyKey{}).(Party) }, nil)
}

// executed is how long a request of a party waits until it may be executed. It does not end.
func executed(t *testing.T, l *Limiter, who Party, cost uint64) time.Duration {
	t.Helper()
	began, ctx := time.Now(), asking(t, who)
	if p, ok := l.Admit(ctx); !ok || !p.Execute(ctx, cost) {
		t.Fatalf("%+v was refused after %s", who, time.Since(began))
	}
	return time.Since(began)
}

// Requests that wait for a server which does not answer keep no others from their turns, and give none back twice.
func TestATurnEndsBeforeAServerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter()
		l.turns = newTurns("", always(1), 10)
		ctx := asking(t, user(1))
		for range 3 {
			p, _ := l.Admit(ctx)
			if began := time.Now(); !p.Execute(ctx, CostlyFrom+1) || time.Since(began) > longestTurn {
				t.Errorf("no turn, or only after %s", time.Since(began))
			}
			defer func() {
				p.End()
				if l.turns.taken < 0 {
					t.Errorf("%d turns are taken", l.turns.taken)
				}
			}()
		}
	})
}

// A request that waits for a server gives its turn to others, and goes on ahead of those that come later.
func TestWhoWaitsForAServerHasNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns("", always(1), 100)
		const requests, server, work = 10, 20 * time.Millisecond, time.Millisecond
		began := time.Now()
		var all sync.WaitGroup
		var working, most atomic.Int32
		for range requests {
			all.Go(func() {
				own := turns.begin(t.Context(), user(1), 5000)
				for range 3 {
					goOn := own.Wait(t.Context())
					again := own.Wait(t.Context()) // for a second server at once
					time.Sleep(server)
					goOn()
					again()
					if now := working.Add(1); now > most.Load() {
						most.Store(now)
					}
					time.Sleep(work)
					working.Add(-1)
				}
				own.end()
				own.Wait(t.Context())() // what runs on behind an answer takes no turn
			})
		}
		all.Wait()
		if took := time.Since(began); took > 3*(server+requests*work) || most.Load() != 1 {
			t.Errorf("%d requests took %s, and %d worked at a time", requests, took, most.Load())
		}
		if turns.taken != 0 || len(turns.ends) > 0 {
			t.Errorf("afterwards %d turns are taken: %v", turns.taken, turns.ends)
		}
	})
}

// Cheap requests wait for no turns, unless their party has sent so many that it has spent its share. Backends have none.
func TestCheapRequestsOfWhoSendsManyTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter()
		for range l.half {
			for range 2 * freeAtOnce / CostlyFrom { // one after another: nobody else waits
				p, _ := l.Admit(t.Context())
				if ctx := asking(t, user(2)); !p.Execute(ctx, CostlyFrom) {
					t.Fatal("refused")
				}
				p.End()
			}
			executed(t, l, user(1), CostlyFrom+1)
		}
		for _, who := range []Party{user(2), {Address: "192.0.2.1"}, {}} {
			for range freeAtOnce / CostlyFrom {
				if waited := executed(t, l, who, CostlyFrom); waited > 0 {
					t.Errorf("%+v waited for %s", who, waited)
				}
			}
		}
		if waited := executed(t, l, Party{}, CostlyFrom); waited > 0 {
			t.Errorf("a backend waited for %s", waited)
		}
		time.Sleep(time.Second)
		if waited := executed(t, l, user(2), CostlyFrom); waited > 0 {
			t.Errorf("a second later it waited for %s", waited)
		}
		atOnce := func() (n int) {
			for executed(t, l, user(2), CostlyFrom) == 0 {
				n++
			}
			time.Sleep(2 * longestTurn) // all turns end
			return n
		}
		l.spent.Add(user(2), rate.NewLimiter(0, 0)) // it has nothing more
		time.Sleep(longestTurn)
		alone := atOnce()
		if waited := executed(t, l, user(3), CostlyFrom); waited > 0 {
			t.Errorf("another waited for %s", waited)
		}
		if beside := atOnce(); alone != 2*l.half || beside != l.half {
			t.Errorf("who has spent its share has %d at once, and %d beside another", alone, beside)
		}
	})
}
