package social

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/properties"
	"kith/storage"
)

// directory has claims on handles, in ascending order, and users. Some users do not exist or cannot be read.
type directory struct {
	claims []storage.HandleOwner
	users  map[storage.UserID]storage.Result[storage.User]

	reads, examined int
	before          int // how many were examined before the last read
	err             error
}

func (d *directory) SearchHandles(_ context.Context, prefix, after string, limit int) (found []storage.HandleOwner, err error) {
	for _, c := range d.claims {
		if strings.HasPrefix(c.Handle, prefix) && c.Handle > after && len(found) < limit {
			found = append(found, c)
		}
	}
	d.reads++
	d.before = d.examined
	d.examined += len(found)
	return found, d.err
}

func (d *directory) Users(_ context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	results := make([]storage.Result[storage.User], len(ids))
	for i, id := range ids {
		results[i] = d.users[id]
	}
	return results
}

// add adds a user with a handle, or a claim whose user was never created.
func (d *directory) add(id storage.UserID, handle, now string, err error) {
	d.claims = append(d.claims, storage.HandleOwner{Handle: handle, User: id})
	d.users[id] = storage.Result[storage.User]{Value: storage.User{ID: id, Handle: now}, Found: now != "", Err: err}
}

// Pages of a search are full, and together list all users whose handles begin with the prefix. Hidden
// users, and claims that are nobody's handle, are left out; users who cannot be read are not.
func TestSearchFindsWhoseHandleBeginsSo(t *testing.T) {
	properties.Check(t, 100, func(t *rapid.T) {
		d := &directory{users: map[storage.UserID]storage.Result[storage.User]{}}
		audience := drawAudience(t)
		budget := Budget(rapid.SampledFrom([]int{0, 1, 4, 10, 1000}).Draw(t, "budget"))
		var want []storage.HandleOwner
		for id := storage.UserID(1); id <= people; id++ {
			handle := fmt.Sprintf("%c%02d", "ab"[rapid.IntRange(0, 1).Draw(t, "prefix")], id)
			now := rapid.SampledFrom([]string{handle, handle, "other", ""}).Draw(t, "handle now")
			err := rapid.SampledFrom([]error{nil, nil, errRead}).Draw(t, "error")
			d.add(id, handle, now, err)
			if handle[0] == 'a' && (now == handle || err != nil) && !audience.Hides(id) {
				want = append(want, d.claims[id-1])
			}
		}
		slices.SortFunc(d.claims, func(a, b storage.HandleOwner) int { return strings.Compare(a.Handle, b.Handle) })

		var got []storage.HandleOwner
		after := ""
		for range 2 * people {
			first := rapid.IntRange(1, 5).Draw(t, "first")
			d.examined = 0
			page, err := SearchHandles(t.Context(), d, audience, budget, "a", after, first)
			if err != nil {
				t.Fatal(err)
			}
			if budget > 0 && d.before >= int(budget) {
				t.Fatalf("it read on behind %d claims, with a budget of %d", d.before, budget)
			}
			got = append(got, page.Owners...)
			if len(page.Owners) > first || !page.More && len(got) != len(want) {
				t.Fatalf("a page of %d: %+v; got %v so far, want %v", first, page, got, want)
			}
			if full := budget == 0 || budget > people; full && page.More != (len(got) < len(want)) || full && page.More && len(page.Owners) < first {
				t.Fatalf("a page of %d: %+v; got %v so far, want %v", first, page, got, want)
			}
			if !page.More {
				break
			}
			after = page.Next
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// One read is enough for a page, and to know whether more users follow, even if a few are hidden.
func TestSearchReadsOnce(t *testing.T) {
	hidden := []storage.UserID{3, 5, 7, 9}
	for _, users := range []storage.UserID{20, 21, 24, 25} {
		d := &directory{users: map[storage.UserID]storage.Result[storage.User]{}}
		for id := range users {
			handle := fmt.Sprintf("a%02d", id)
			d.add(id, handle, handle, nil)
		}
		for _, audience := range []*Audience{nil, NewAudience(0, hiddenUsers(hidden), nil)} {
			d.reads = 0
			shown := int(users) - audience.HidesAtMost()
			page, err := SearchHandles(t.Context(), d, audience, 0, "a", "", 20)
			if err != nil || d.reads != 1 || len(page.Owners) != min(20, shown) || page.More != (shown > 20) {
				t.Errorf("of %d handles %d were found in %d reads, more %t: %v", shown, len(page.Owners), d.reads, page.More, err)
			}
		}
	}
}

func TestSearchFailsWithItsRead(t *testing.T) {
	d := &directory{err: errRead}
	if page, err := SearchHandles(t.Context(), d, nil, 0, "a", "", 1); !errors.Is(err, errRead) {
		t.Errorf("%+v, %v", page, err)
	}
}
