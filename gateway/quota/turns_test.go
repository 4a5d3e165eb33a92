package quota

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/check"
	"kith/internal/must"
)

func user(n int64) Party { return Party{User: n} }

// worked lets requests of parties come, one after another, while the only turn is taken, and returns in which order they get it. Each is to cost
// 100, and takes some microseconds.
func worked(t *testing.T, turns *turns, requests []Party, took func(Party) uint64) (order []int64) {
	t.Helper()
	first := turns.begin(t.Context(), user(0), costly, 1)
	must.That(t, first != nil, "the first was refused")
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, who := range requests {
		all.Go(func() {
			own := turns.begin(t.Context(), who, costly, 100)
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
		order := worked(t, newTurns(1, 100), slices.Concat(repeated(1, 20), repeated(2, 2)), equal)
		check.That(t, len(order) == 22 && !slices.Contains(order[4:], 2), "the order was %v", order)
	})
}

// Parties have turns in proportion to what their requests do not take, whatever they are to cost.
func TestTurnsAreSharedByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		order := worked(t, newTurns(1, 100), slices.Concat(repeated(1, 40), repeated(3, 40)), func(who Party) uint64 { return 100 * uint64(who.User) })
		cheap := 0
		for _, who := range order[:40] {
			if who == 1 {
				cheap++
			}
		}
		check.That(t, len(order) == 80 && cheap >= 29 && cheap <= 31, "of 40 turns, %d went to those who take a third: %v", cheap, order)
	})
}

// If too many wait, the one whose turn would come last leaves, not the one who has come last.
func TestWhoSendsMostIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		order := worked(t, newTurns(1, 10), slices.Concat(repeated(1, 15), repeated(2, 3), repeated(3, 1)), equal)
		slices.Sort(order)
		want := []int64{1, 1, 1, 1, 1, 1, 2, 2, 2, 3}
		check.That(t, slices.Equal(order, want), "%v got turns, not %v", order, want)
	})
}

// What is refused of a party that sends many brings none of its others before those who send one.
func TestWhoIsRefusedComesNoEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		order := worked(t, newTurns(1, 10), append(repeated(1, 10), user(2), user(3), user(4), user(5)), equal)
		want := []int64{1, 2, 3, 4, 5, 1, 1, 1, 1, 1}
		check.That(t, slices.Equal(order, want), "the order was %v, not %v", order, want)
	})
}

// Who does not wait any more, takes no turn; and turns do not get lost.
func TestTurnsThatDoNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(2, 10)
		first, second := turns.begin(t.Context(), user(1), costly, 100), turns.begin(t.Context(), user(1), costly, 100)
		first.late.Stop()
		second.late.Stop()
		began := time.Now()
		check.That(t, turns.begin(t.Context(), user(2), costly, 100) == nil && time.Since(began) == patience, "a third turn, or refused after %s", time.Since(began))
		gone, cancel := context.WithTimeout(t.Context(), patience/10)
		defer cancel()
		began = time.Now()
		check.That(t, turns.begin(gone, user(2), costly, 100) == nil && time.Since(began) == patience/10, "a third turn, or refused after %s", time.Since(began))
		next := turns.had(user(2)).end
		check.That(t, next <= turns.now, "requests that were refused have cost their party %d", next-turns.now)
		first.end()
		second.end()
		check.That(t, turns.taken == 0 && turns.costly == 0 && len(turns.waiting) == 0 && turns.spent.Len() == 0, "afterwards: %+v", turns)
	})
}

// A request that costs nothing, and whose turn does not come, has ended as any other.
func TestARefusedRequestWithoutACostHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1, 10)
		first, second := turns.begin(t.Context(), user(1), costly, 2*freeAtOnce), turns.begin(t.Context(), user(1), cheap, 1)
		first.late.Stop()
		second.late.Stop()
		check.That(t, turns.begin(t.Context(), user(1), cheap, 0) == nil, "a third turn")
		first.end()
		second.end()
		check.That(t, turns.begun == 0 && turns.spent.Len() == 0, "%d requests have not ended, and what %d parties had is remembered", turns.begun, turns.spent.Len())
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
	p, ok := l.Admit(ctx)
	must.That(t, ok && p.Execute(ctx, cost), "%+v was refused after %s", who, time.Since(began))
	return time.Since(began)
}

// Requests that wait for a server which does not answer keep no others from their turns, and give none back twice.
func TestATurnEndsBeforeAServerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter()
		l.turns = newTurns(1, 10)
		ctx := asking(t, user(1))
		for range 3 {
			p, _ := l.Admit(ctx)
			began := time.Now()
			check.That(t, p.Execute(ctx, CostlyFrom+1) && time.Since(began) <= longestTurn, "no turn, or only after %s", time.Since(began))
			defer func() {
				p.End()
				check.That(t, l.turns.taken >= 0, "%d turns are taken", l.turns.taken)
			}()
		}
	})
}

// A request that waits for a server gives its turn to others, and goes on ahead of those that come later.
func TestWhoWaitsForAServerHasNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1, 100)
		const requests, server, work = 10, 20 * time.Millisecond, time.Millisecond
		began := time.Now()
		var all sync.WaitGroup
		var working, most atomic.Int32
		for range requests {
			all.Go(func() {
				own := turns.begin(t.Context(), user(1), costly, 5000)
				for range 3 {
					goOn := own.Wait(t.Context())
					again := own.Wait(t.Context()) // for a second server at once
					time.Sleep(server / 2)
					goOn() // it still waits for the other one
					time.Sleep(server / 2)
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
		took := time.Since(began)
		check.That(t, took <= 3*(server+requests*work) && most.Load() == 1, "%d requests took %s, and %d worked at a time", requests, took, most.Load())
		check.That(t, turns.taken == 0 && turns.spent.Len() == 0, "afterwards %d turns are taken: %+v", turns.taken, turns)
	})
}

// Cheap requests take turns, too: one of who has sent few does not wait for the many of who has sent many, or of many who have each sent some, whatever
// they were to cost. Costly ones have half of the turns at most.
func TestCheapRequestsOfWhoSendsFewComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(2, 100)
		const senders = 8
		stop := make(chan struct{})
		var all sync.WaitGroup
		var worked, most [3]atomic.Int32
		send := func(who Party, k kind, took time.Duration) {
			own := turns.begin(t.Context(), who, k, 300)
			if own == nil {
				t.Errorf("%+v was refused", who)
				return
			}
			now := worked[k].Add(1)
			most[k].Store(max(most[k].Load(), now))
			time.Sleep(took)
			worked[k].Add(-1)
			own.end()
		}
		for i := range 4 * senders {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						send(user(int64(1+i%senders)), kind(1+i%2), time.Millisecond)
					}
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		for range 20 {
			for _, who := range []Party{user(100), {}} { // nobody's are a backend's
				began := time.Now()
				send(who, cheap, 100*time.Microsecond)
				waited := time.Since(began)
				check.That(t, waited <= 5*time.Millisecond, "%+v waited for %s", who, waited) // 30 others wait
			}
			time.Sleep(5 * time.Millisecond)
		}
		close(stop)
		all.Wait()
		check.That(t, most[costly].Load() == 2 && turns.taken == 0, "%d costly ones worked at a time; %+v", most[costly].Load(), turns)
	})
}

// Who sends cheap requests all the time does not keep costly ones of others from their turn.
func TestCheapRequestsLetCostlyOnesIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(2, 100)
		stop := make(chan struct{})
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						own := turns.begin(t.Context(), user(1), cheap, 300)
						time.Sleep(time.Millisecond)
						own.end()
					}
				}
			})
		}
		time.Sleep(2 * othersFor) // no request is free any more
		for range 5 {
			began := time.Now()
			own := turns.begin(t.Context(), user(2), costly, 2000)
			if waited := time.Since(began); own == nil || waited > 5*time.Millisecond {
				t.Errorf("it has its turn: %t, after %s", own != nil, waited)
				break
			}
			own.end()
		}
		close(stop)
		all.Wait()
	})
}

// Turns that were kept for free requests are given when none has come for a while, although nobody ends or comes just then.
func TestTurnsAreNotKeptForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1, 100)
		held := turns.begin(t.Context(), user(1), costly, 2000)
		began := time.Now()
		var all sync.WaitGroup
		for range 20 { // the first are free
			all.Go(func() {
				own := turns.begin(t.Context(), user(2), cheap, freeAtOnce/5)
				time.Sleep(100 * time.Microsecond)
				own.end()
			})
		}
		all.Wait()
		check.Most(t, "they took", time.Since(began), 2*othersFor)
		held.end()
	})
}

// Who comes for the first time, again and again, as somebody else, does not keep others from their turn.
func TestNewcomersDoNotStarveOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1, 100)
		first := turns.begin(t.Context(), user(2), costly, 1000)
		turns.charge(user(1), 10_000) // it has used as much as ten others
		var all sync.WaitGroup
		newcomer := func(who int64) {
			all.Go(func() {
				if own := turns.begin(t.Context(), user(who), costly, 1000); own != nil {
					time.Sleep(time.Millisecond)
					own.end()
				}
			})
		}
		served := make(chan time.Duration, 1)
		all.Go(func() {
			began := time.Now()
			own := turns.begin(t.Context(), user(1), costly, 1000)
			served <- time.Since(began)
			own.end()
		})
		for who := int64(10); who < 14; who++ { // four wait at any time
			newcomer(who)
		}
		synctest.Wait()
		first.end()
		for who := int64(14); len(served) == 0; who++ {
			newcomer(who)
			time.Sleep(time.Millisecond)
		}
		check.Most(t, "it waited for", <-served, patience/3)
		all.Wait()
	})
}

// Texts that are not known are parsed in turn: short ones as cheap requests are executed, and what is executed then has a turn of its own kind.
func TestTextsAreParsedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter()
		l.turns = newTurns(1, 10)
		l.working.Add(10)
		held := l.turns.begin(t.Context(), user(1), costly, 1)
		time.AfterFunc(10*time.Millisecond, held.end)
		began := time.Now()
		after := func(who int64, bytes int) (waited time.Duration) {
			check.That(t, l.Parse(asking(t, user(who)), bytes, func() { waited = time.Since(began) }), "it was not parsed")
			return waited
		}
		check.Equal(t, "a short one waited for", after(2, CostlyFrom), 0)
		p, _ := l.Admit(asking(t, user(3)))
		defer p.End()
		p.Parse(asking(t, user(3)), CostlyFrom, func() {})
		if p.turn.kind != free || !p.Execute(asking(t, user(3)), 2*CostlyFrom) || p.turn.kind != costly {
			t.Errorf("what is costly is executed in a turn of kind %d", p.turn.kind)
		}
		p.giveBack()
		check.Equal(t, "a long one was parsed after", after(4, 2*CostlyFrom), 10*time.Millisecond)
	})
}

// What cheap requests have taken counts, and not what they were to cost.
func TestFreeRequestsAreChargedByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1, 10)
		defer turns.begin(t.Context(), user(2), free, 1).end() // while nobody is there, what parties have had is forgotten
		for takes, want := range map[time.Duration]kind{4 * time.Millisecond: cheap, time.Microsecond: free} {
			var got kind
			for range 3 {
				own := turns.begin(t.Context(), user(1000+int64(takes)), cheap, freeAtOnce/5)
				got = own.kind
				time.Sleep(takes)
				own.end()
			}
			check.That(t, got == want, "after two that take %s the third is of kind %d, not %d", takes, got, want)
		}
	})
}

// A cheap request that waits for another one, or for whatever else, keeps its turn from others for a moment only; and none is refused for others.
func TestACheapTurnEndsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter()
		l.turns = newTurns(1, 10)
		for range 200 {
			check.Most(t, "it waited for", executed(t, l, user(1), CostlyFrom), longestCheap)
		}
		l.turns.taken = 1000
		for n := range freeAtOnce/CostlyFrom + 2 {
			want := time.Duration(0)
			if n*CostlyFrom > freeAtOnce {
				want = patience
			}
			check.Equal(t, fmt.Sprint("the wait of request ", n), executed(t, l, user(2), CostlyFrom), want)
		}
	})
}

// A turn may end by itself at the moment at which more work of its request is announced.
func TestATurnEndsWhileItIsCharged(t *testing.T) {
	who := Party{User: 1}
	turns := newTurns(1, 1)
	for range 100 {
		own := turns.begin(t.Context(), who, costly, 1)
		ended := make(chan struct{})
		go func() { defer close(ended); own.end() }()
		own.charge(1)
		<-ended
		must.That(t, own.cost == 2, "%v", own.cost)
	}
}
