package resolvers_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// Only a backend links identities, and only to existing users.
func TestLinkIdentity(t *testing.T) {
	t.Parallel()
	api, store := withUsers(t, 2, apitest.Options{})
	who := storage.Identity{Issuer: "https://id.example.org", Subject: "auth0|64b1"}
	link := func(by *apitest.API, user, subject string) apitest.Answer {
		return by.Ask(`mutation($user: ID!, $issuer: String!, $subject: String!) { linkIdentity(userId: $user, issuer: $issuer, subject: $subject) { user { id } } }`,
			apitest.Vars{"user": user, "issuer": who.Issuer, "subject": subject})
	}
	for range 2 {
		link(api.Admin(), "1", who.Subject).Whole()
	}
	check.Equal(t, "the owner", storage.IdentityLookups.Read(t.Context(), store, who)[0].Value, 1)
	for _, c := range []struct {
		by            *apitest.API
		user, subject string
		code          string
	}{
		{api.Admin(), "2", who.Subject, "BAD_USER_INPUT"},
		{api.Admin(), "3", "x", "NOT_FOUND"}, {api.Admin(), "2", "", "BAD_USER_INPUT"},
	} {
		link(c.by, c.user, c.subject).FailsAt(c.code, "linkIdentity")
	}
	link(api.Admin(), "3", "x").RefusedFor("USER_NOT_FOUND", "userId")
	link(api, "1", "x").Refused("BAD_USER_INPUT") // the field does not exist for others
	link(api.As(1), "1", "x").Refused("BAD_USER_INPUT")
	link(api.Admin(), "2", strings.Repeat("x", storage.MaxIdentityText)).Whole()
	link(api.Admin(), "2", strings.Repeat("x", storage.MaxIdentityText+1)).Refused("BAD_USER_INPUT")
}

// Users see and unlink their own identities, unless they could then no longer sign in. Backends unlink any.
func TestIdentitiesOfTheViewer(t *testing.T) {
	t.Parallel()
	api, store := withUsers(t, 2, apitest.Options{})
	for i, subject := range []string{"b", "a"} {
		must.OK(t, store.LinkIdentity(t.Context(), storage.Identity{Issuer: "https://id.example.org", Subject: subject}, 1, storage.Micros(1+i)))
	}
	const list = `{ viewer { identities { issuer subject linkedAt } } }`
	api.As(1).Ask(list, nil).Is(`{"viewer": {"identities": [{"issuer": "https://id.example.org", "subject": "b", "linkedAt": "1970-01-01T00:00:00.000001Z"},
		{"issuer": "https://id.example.org", "subject": "a", "linkedAt": "1970-01-01T00:00:00.000002Z"}]}}`)
	api.Ask(list, nil).Is(`{"viewer": null}`)
	api.As(2).Ask(`{ viewer { identities { subject } } }`, nil).Is(`{"viewer": {"identities": []}}`)

	unlink := func(by *apitest.API, subject string) apitest.Answer {
		return by.Ask(`mutation($subject: String!) { unlinkIdentity(issuer: "https://id.example.org", subject: $subject) { changed } }`, apitest.Vars{"subject": subject})
	}
	unlink(api, "a").FailsAt("UNAUTHENTICATED", "unlinkIdentity")
	unlink(api.As(2), "a").Is(`{"unlinkIdentity": {"changed": false}}`)
	unlink(api.As(1), "a").Is(`{"unlinkIdentity": {"changed": true}}`)
	unlink(api.As(1), "a").Is(`{"unlinkIdentity": {"changed": false}}`)
	unlink(api.As(1), "b").FailsAt("FORBIDDEN", "unlinkIdentity")
	unlink(api.Admin(), "b").Is(`{"unlinkIdentity": {"changed": true}}`)
	unlink(api.Admin(), "b").Is(`{"unlinkIdentity": {"changed": false}}`)
	api.Admin().Ask(`mutation { unlinkIdentity(issuer: "x", subject: "b") { viewer { id } } }`, nil).Is(`{"unlinkIdentity": {"viewer": {"id": "viewer_1"}}}`)
	api.CountingReads().Ask(`mutation { unlinkIdentity(issuer: "x", subject: "b") { viewer { id } } }`, nil).DataIs(`{"unlinkIdentity": {"viewer": null}}`) // of a service
	api.As(1).Ask(`{ viewer { identities { subject } } }`, nil).Is(`{"viewer": {"identities": []}}`)
}

// Of two identities that are unlinked at once, one stays: each request sees that there is another one, and only one of them
// may count on it.
func TestOneIdentityStays(t *testing.T) {
	t.Parallel()
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		for user := storage.UserID(1); user <= 40; user++ {
			var all sync.WaitGroup
			var changed atomic.Int32
			begin := make(chan struct{})
			for _, n := range []string{"a", "b"} {
				who := storage.Identity{Issuer: "https://id.example.org", Subject: n + user.String()}
				must.OK(t, v.store.LinkIdentity(t.Context(), who, user, 1))
				all.Go(func() {
					<-begin
					a := v.api.As(user).Ask(`mutation($s: String!) { unlinkIdentity(issuer: "https://id.example.org", subject: $s) { changed } }`, apitest.Vars{"s": who.Subject})
					if strings.Contains(a.Text, `"changed":true`) {
						changed.Add(1)
					}
				})
			}
			close(begin)
			all.Wait()
			left, err := storage.LinkLookups.Get(t.Context(), v.store, user)
			check.That(t, err == nil && len(left) == 1 && changed.Load() == 1, "user %s has %d identities left after %d changes, %v", user, len(left), changed.Load(), err)
		}
	})
}
