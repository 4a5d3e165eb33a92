package consistency_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/consistency"
	"kith/storage"
	"kith/storage/memory"
)

func mark(from, to storage.UserID, version storage.Micros) consistency.Mark {
	return consistency.Mark{Pair: storage.Pair{From: from, To: to}, Version: version}
}

func TestTokensRoundTripAndMerge(t *testing.T) {
	a := consistency.Token{mark(1, 2, 1_790_000_000_000_000), mark(1, 1<<63-1, 7)}
	b := consistency.Token{mark(1, 2, 5), mark(9, 3, 8)}
	for _, separator := range []string{",", " ", ", ", ",,"} {
		got, err := consistency.Parse(a.String() + separator + b.String())
		want := consistency.Token{mark(1, 2, 1_790_000_000_000_000), mark(9, 3, 8), mark(1, 1<<63-1, 7)}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("joined by %q: %v, %v; want %v", separator, got, err, want)
		}
	}
	if got, err := consistency.Parse(""); err != nil || len(got) != 0 {
		t.Errorf("nothing is %v, %v", got, err)
	}
}

// What clients got before there were requests for friendship is still a token, and is
// spelled like that as ever.
func TestTokensOfTheFirstForm(t *testing.T) {
	const old = "AQECAw" // pair of tables 1, from 1, to 2, version 3
	got, err := consistency.Parse(old)
	if err != nil || !slices.Equal(got, consistency.Token{mark(1, 2, 3)}) || got.String() != old {
		t.Errorf("%v, %v, %s", got, err, got)
	}
}

// A request for friendship and an edge between the same users are two rows.
func TestTokensOfRequests(t *testing.T) {
	request := consistency.Mark{Side: storage.Requests, Pair: storage.Pair{From: 1, To: 2}, Version: 9}
	older := consistency.Mark{Side: storage.Requests, Pair: storage.Pair{From: 1, To: 2}, Version: 8}
	got, err := consistency.Parse(consistency.Token{request, mark(1, 2, 10)}.String() + "," + consistency.Token{older}.String())
	if want := (consistency.Token{mark(1, 2, 10), request}); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

func TestOtherTextsAreNoTokens(t *testing.T) {
	good := consistency.Token{mark(1, 2, 3)}.String()
	many := make(consistency.Token, consistency.MaxMarks+1)
	for i := range many {
		many[i] = mark(1, storage.UserID(i+1), 1)
	}
	for name, text := range map[string]string{
		"not base64": "§", "cut short": good[:len(good)-2], "another table": "AwECAw", "no user": "AQACAw",
		"too many marks": many.String(), "long": strings.Repeat("A", 5000),
	} {
		if got, err := consistency.Parse(text); !errors.Is(err, consistency.ErrMalformed) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestWaitEndsWhenTheRowsAreThere(t *testing.T) {
	store := memory.New()
	token := consistency.Token{mark(1, 2, 10), mark(1, 3, 10)}
	if consistency.Wait(t.Context(), store, token, 20*time.Millisecond) {
		t.Error("nothing is there")
	}
	apply := func(to storage.UserID, at storage.Micros) {
		store.Apply(context.Background(), storage.Inverse, []storage.Edge{{From: 1, To: to, Type: storage.Following, UpdateTime: at}}, storage.IfNewer)
	}
	apply(2, 11) // newer will do
	apply(3, 9)  // older will not
	if consistency.Wait(t.Context(), store, token, 20*time.Millisecond) {
		t.Error("one row is too old")
	}
	go apply(3, 10)
	if !consistency.Wait(t.Context(), store, token, time.Minute) {
		t.Error("both are there")
	}
}

// The mark of a request waits for the inbox, whatever follower holds.
func TestWaitReadsTheTableOfTheMark(t *testing.T) {
	store := memory.New()
	apply := func(side storage.Side) {
		store.Apply(context.Background(), side, []storage.Edge{{From: 1, To: 2, Type: storage.Pending, UpdateTime: 10}}, storage.IfNewer)
	}
	token := consistency.Token{mark(1, 2, 10), {Side: storage.Requests, Pair: storage.Pair{From: 1, To: 2}, Version: 10}}
	apply(storage.Inverse)
	if consistency.Wait(t.Context(), store, token, 20*time.Millisecond) {
		t.Error("the request is not in the inbox")
	}
	go apply(storage.Inbox)
	if !consistency.Wait(t.Context(), store, token, time.Minute) {
		t.Error("both are there")
	}
}
