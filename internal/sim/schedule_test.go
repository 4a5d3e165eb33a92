package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"kith/storage"
)

const (
	numberOfUsers = 6
	gateways      = 3
	maxShards     = 4
	allShards     = 3 // in step.only
)

// step is something that happens at a time after the beginning.
type step struct {
	at      time.Duration
	what    string
	gateway int
	user    storage.UserID
	other   storage.UserID
	key     string        // of a read
	lasts   time.Duration // of a fault
	only    int           // the database that is away; 3: all; or to which buckets move
	refuse  int           // the write of the step that is refused
	doubt   int           // the write of the step whose commit gets no answer
	late    time.Duration // how long after that it is executed, or after a backup the database is lost
}

func (s step) String() string {
	text := fmt.Sprintf("%9s  gateway %d: %s", s.at, s.gateway, s.what)
	switch {
	case s.what == read:
		text += fmt.Sprintf(" %s of %d", s.key, s.user)
	case s.user != 0:
		text += fmt.Sprintf(" %d → %d", s.user, s.other)
	}
	if slices.Contains([]string{away, move, lost}, s.what) {
		text += fmt.Sprintf(" (%d)", s.only)
	}
	if s.lasts > 0 {
		text += fmt.Sprintf(" for %s", s.lasts)
	}
	if s.refuse > 0 {
		text += fmt.Sprintf(", write %d refused", s.refuse)
	}
	if s.doubt > 0 {
		text += fmt.Sprintf(", commit %d in doubt, executed after %s", s.doubt, s.late)
	}
	return text
}

const (
	follow     = "follow"
	unfollow   = "unfollow"
	mute       = "mute"
	unmute     = "unmute"
	ask        = "ask to be friends"
	accept     = "accept"
	decline    = "decline"
	withdraw   = "withdraw"
	rename     = "rename"
	suspend    = "suspend"
	reinstate  = "reinstate"
	deactivate = "deactivate"
	reactivate = "reactivate"
	publish    = "publish"
	unpublish  = "delete a post"
	register   = "register"
	signOut    = "sign out everywhere"
	write      = "write again and again"
	read       = "read"
	cut        = "Redis' connections end"
	down       = "Redis is away"
	hang       = "Redis hangs"
	stall      = "nothing comes out of Redis"
	lose       = "Redis loses what it has"
	away       = "databases are away"
	repair     = "reconcile full --repair, which nobody hears of"
	move       = "buckets move"
	purge      = "logs are purged"
	lost       = "a database is backed up, lost and restored"
	kill       = "is killed"
	ahead      = "clock is a quarter of an hour ahead, suspend"
)

// weights are how often steps come.
var weights = []struct {
	what   string
	weight int
}{
	{follow, 20}, {unfollow, 12}, {mute, 10}, {unmute, 3}, {ask, 8}, {accept, 6}, {decline, 2}, {withdraw, 2}, {rename, 8}, {suspend, 2}, {reinstate, 2}, {deactivate, 2}, {reactivate, 3},
	{publish, 10}, {unpublish, 2}, {register, 4}, {signOut, 3}, {write, 3}, {read, 100},
	{cut, 1}, {down, 1}, {hang, 1}, {stall, 1}, {lose, 1}, {away, 1}, {repair, 1}, {move, 3}, {lost, 2}, {purge, 1}, {kill, 1}, {ahead, 1},
}

// schedule draws steps.
func schedule(seed uint64, n int) []step {
	r := rand.New(rand.NewPCG(seed, 1))
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	// Each schedule leaves out some kinds of steps: what happens all the time hides what it hides (Groce and others, Swarm Testing, 2012).
	left := map[string]bool{}
	for _, w := range weights {
		left[w.what] = w.what != read && r.IntN(6) == 0 || w.weight < 3 && r.IntN(2) == 0
	}
	steps := make([]step, 0, n)
	at := time.Duration(0)
	// Some users are written and read more than others; most steps come close upon each other.
	user := func() storage.UserID { return storage.UserID(1 + min(r.IntN(numberOfUsers), r.IntN(numberOfUsers))) }
	for range n {
		if at += time.Duration(r.ExpFloat64() * float64(8*time.Millisecond)); r.IntN(40) == 0 {
			at += time.Duration(r.ExpFloat64() * float64(2*time.Second))
		}
		s := step{at: at, gateway: r.IntN(gateways)}
		draw := r.IntN(total)
		for _, w := range weights {
			if draw -= w.weight; draw < 0 {
				s.what = w.what
				break
			}
		}
		if left[s.what] {
			s.what = read
		}
		switch s.what {
		case cut, lose, repair, purge:
		case lost:
			s.lasts = time.Duration(r.ExpFloat64() * float64(30*time.Second))
			s.late = time.Duration(r.ExpFloat64() * float64(5*time.Second))
			s.only = r.IntN(allShards)
		case down, hang, stall, away:
			s.lasts = time.Duration(r.ExpFloat64() * float64(2*time.Second))
			if r.IntN(3) == 0 { // longer than it takes to notice
				s.lasts *= 4
			}
			s.only = r.IntN(allShards + 1)
		case move:
			s.user, s.other = user(), user()
			s.lasts = time.Duration(r.ExpFloat64() * float64(200*time.Millisecond))
			s.only = r.IntN(maxShards)
		case read:
			s.user, s.key = user(), readable[r.IntN(len(readable))]
		default:
			s.user = user()
			s.other = 1 + (s.user+storage.UserID(r.IntN(numberOfUsers-1)))%numberOfUsers
			switch chance := r.IntN(20); {
			case s.what == kill:
			case chance == 0:
				s.refuse = 1 + r.IntN(2)
			case chance == 1:
				s.doubt = 1 + r.IntN(2)
				s.late = max(0, time.Duration((r.Float64()-0.5)*float64(10*time.Second)))
			}
		}
		steps = append(steps, s)
	}
	return steps
}

// shortest leaves out what it can while the rest still fails (Zeller's delta debugging, without complements).
func shortest(steps []step, fails func([]step) bool) []step {
	for size := len(steps) / 2; size > 0; {
		shorter := false
		for from := 0; from < len(steps); {
			rest := append(append([]step(nil), steps[:from]...), steps[min(from+size, len(steps)):]...)
			if fails(rest) {
				steps, shorter = rest, true
			} else {
				from += size
			}
		}
		if !shorter || size > len(steps) {
			size = min(size, len(steps)) / 2
		}
	}
	return steps
}
