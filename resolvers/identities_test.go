package resolvers_test

import (
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/storage"
	"kith/storage/memory"
)

// A backend links identities; nobody else does, and to nobody else than users.
func TestLinkIdentity(t *testing.T) {
	t.Parallel()
	store := memory.New()
	apitest.Users(t, store, 2)
	api := apitest.New(t, store, apitest.Options{})
	who := storage.Identity{Issuer: "https://id.example.org", Subject: "auth0|64b1"}
	link := func(by *apitest.API, user, subject string) apitest.Answer {
		return by.Ask(`mutation($user: ID!, $issuer: String!, $subject: String!) { linkIdentity(userId: $user, issuer: $issuer, subject: $subject) { user { id } } }`,
			apitest.Vars{"user": user, "issuer": who.Issuer, "subject": subject})
	}
	for range 2 {
		link(api.Admin(), "1", who.Subject).Whole()
	}
	if owner := store.UsersOfIdentities(t.Context(), []storage.Identity{who})[0]; owner.Value != 1 {
		t.Errorf("it is of %+v", owner)
	}
	for _, c := range []struct {
		by            *apitest.API
		user, subject string
		code          string
	}{
		{api, "1", "x", "UNAUTHENTICATED"}, {api.As(1), "1", "x", "FORBIDDEN"}, {api.Admin(), "2", who.Subject, "BAD_USER_INPUT"},
		{api.Admin(), "3", "x", "NOT_FOUND"}, {api.Admin(), "2", "", "BAD_USER_INPUT"},
	} {
		link(c.by, c.user, c.subject).FailsAt(c.code, "linkIdentity")
	}
	link(api.Admin(), "2", strings.Repeat("x", storage.MaxIdentityText)).Whole()
	link(api.Admin(), "2", strings.Repeat("x", storage.MaxIdentityText+1)).Refused("BAD_USER_INPUT")
}
