package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kith/accounts"
	"kith/accounts/identity"
	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// counter returns ids in ascending order.
type counter struct{ last atomic.Int64 }

func (c *counter) Next(context.Context) (storage.UserID, error) {
	return storage.UserID(c.last.Add(1)), nil
}

func service(t *testing.T, limits identity.LimitsConfig) (*accounts.Accounts, *identity.Service, *oracle.Store) {
	t.Helper()
	id, err := (&identity.Settings{TokenTTL: time.Hour, SessionTTL: 2 * time.Hour}).Open(t.Context(), slog.New(slog.DiscardHandler))
	must.OK(t, err)
	t.Cleanup(id.Close)
	store := oracle.New()
	return &accounts.Accounts{
		Store: store, IDs: &counter{}, Passwords: id.Passwords, Tokens: id.Issuer,
		Limits: identity.NewLimits(limits), Now: time.Now,
		Changed: func(storage.UserID, storage.Micros) {},
	}, id, store
}

func wantCode(t *testing.T, what string, err error, code apierr.Code) {
	t.Helper()
	known, ok := apierr.Of(err)
	check.That(t, ok && known.Code == code, "%s: %v, want %s", what, err, code)
}

func TestRegisterThenLogin(t *testing.T) {
	a, id, store := service(t, identity.LimitsConfig{})
	ctx := t.Context()
	made, err := a.Register(ctx, "Maya_9", "  Maya  ", "correct horse")
	must.OK(t, err)
	user := storage.UserLookups.Read(ctx, store, made.User)[0].Value
	check.That(t, user.Handle == "maya_9" && user.Name == "Maya" && user.CreatedAt != 0, "made %+v", user)
	hash := storage.PasswordLookups.Read(ctx, store, made.User)[0].Value.Hash
	check.That(t, strings.HasPrefix(hash, "$argon2id$"), "the password is kept as %q", hash)
	for _, handle := range []string{"maya_9", "MAYA_9"} {
		session, err := a.Login(ctx, handle, "correct horse")
		must.OK(t, err)
		viewer, err := id.Verifier.Verify(ctx, session.Token)
		check.That(t, err == nil && viewer.ID == made.User, "the token is of %+v: %v", viewer, err)
	}
}

func TestLoginRevealsNothing(t *testing.T) {
	a, _, store := service(t, identity.LimitsConfig{})
	ctx := t.Context()
	_, err := a.Register(ctx, "maya", "Maya", "correct horse")
	must.OK(t, err)
	store.CreateUsers(ctx, []storage.User{{ID: 900, Handle: "u900", Name: "u900"}})
	var first string
	for _, try := range [][2]string{{"maya", "wrong horse"}, {"nobody", "correct horse"}, {"u900", "correct horse"}, {"u900", ""}, {"§", "x"}} {
		_, err := a.Login(ctx, try[0], try[1])
		wantCode(t, "login of "+try[0], err, apierr.CodeUnauthenticated)
		if first == "" {
			first = err.Error()
		}
		check.That(t, err.Error() == first, "%v is answered %q, another %q", try, err, first)
	}
}

func TestRegisterIsRefused(t *testing.T) {
	a, _, _ := service(t, identity.LimitsConfig{})
	ctx := t.Context()
	_, err := a.Register(ctx, "maya", "Maya", "correct horse")
	must.OK(t, err)
	for _, c := range [][3]string{
		{"MAYA", "M", "correct horse"}, {"", "M", "correct horse"}, {"a b", "M", "correct horse"}, {"\u212aelvin", "M", "correct horse"},
		{"u77", "M", "correct horse"}, {strings.Repeat("x", 31), "M", "correct horse"},
		{"ok", "", "correct horse"}, {"ok", " \t ", "correct horse"}, {"ok", "a\x00b", "correct horse"}, {"ok", "a\u202eb", "correct horse"}, {"ok", strings.Repeat("é", 101), "correct horse"},
		{"ok", "M", "short"},
	} {
		_, err := a.Register(ctx, c[0], c[1], c[2])
		wantCode(t, strings.Join(c[:], ", "), err, apierr.CodeBadInput)
	}
	_, err = a.Register(ctx, "", "", "short")
	check.That(t, len(err.(apierr.Refusals)) == 3, "three arguments are refused by %v", err)
	a.Tokens = nil // an identity provider signs
	_, err = a.Register(ctx, "zoe", "Zoe", "correct horse")
	wantCode(t, "register beside an identity provider", err, apierr.CodeForbidden)
	_, err = a.Login(ctx, "maya", "correct horse")
	wantCode(t, "login beside an identity provider", err, apierr.CodeForbidden)
}

func TestPasswordsCannotBeGuessedFast(t *testing.T) {
	a, _, _ := service(t, identity.LimitsConfig{PerHandle: 2})
	for range 2 {
		_, err := a.Login(t.Context(), "maya", "wrong horse")
		wantCode(t, "a guess", err, apierr.CodeUnauthenticated)
	}
	_, err := a.Login(t.Context(), "maya", "wrong horse")
	wantCode(t, "one guess too many", err, apierr.CodeRateLimited)
}

func TestChangePassword(t *testing.T) {
	a, _, _ := service(t, identity.LimitsConfig{})
	ctx := t.Context()
	s, err := a.Register(ctx, "maya", "Maya", "correct horse")
	must.OK(t, err)
	_, err = a.ChangePassword(ctx, s.User, "wrong horse", "battery staple")
	wantCode(t, "wrong current password", err, apierr.CodeForbidden)
	_, err = a.ChangePassword(ctx, s.User, "wrong horse", "x")
	all, _ := errors.AsType[apierr.Refusals](err)
	check.That(t, len(all) == 2, "both are wrong: %v", err)
	_, err = a.ChangePassword(ctx, s.User, "correct horse", "x")
	wantCode(t, "short new password", err, apierr.CodeBadInput)
	_, err = a.ChangePassword(ctx, s.User, "correct horse", "battery staple")
	must.OK(t, err)
	_, err = a.Login(ctx, "maya", "correct horse")
	wantCode(t, "the old password", err, apierr.CodeUnauthenticated)
	_, err = a.Login(ctx, "maya", "battery staple")
	check.That(t, err == nil, "%v", err)

	noor, _, err := a.Create(ctx, 1000, "noor", "Noor")
	must.OK(t, err)
	_, err = a.ChangePassword(ctx, noor.ID, "correct horse", "battery staple")
	known, _ := apierr.Of(err)
	check.That(t, known != nil && known.Reason == apierr.ProviderDecides, "there is no password that could be wrong: %v", err)
}

func TestUpdateProfile(t *testing.T) {
	a, _, store := service(t, identity.LimitsConfig{})
	ctx := t.Context()
	s, err := a.Register(ctx, "maya", "Maya", "correct horse")
	must.OK(t, err)
	text := func(s string) *string { return &s }
	_, _, err = a.UpdateProfile(ctx, s.User, storage.ProfileChange{Bio: text(" two\nlines "), AvatarURL: text("https://example.org/a.png")})
	must.OK(t, err)
	user := storage.UserLookups.Read(ctx, store, s.User)[0].Value
	check.That(t, user.Name == "Maya" && user.Bio == "two\nlines" && user.AvatarURL == "https://example.org/a.png", "now %+v", user)
	for what, change := range map[string]storage.ProfileChange{
		"no name": {Name: text("")}, "long bio": {Bio: text(strings.Repeat("x", 501))}, "script": {AvatarURL: text("javascript:alert(1)")},
	} {
		_, _, err := a.UpdateProfile(ctx, s.User, change)
		wantCode(t, what, err, apierr.CodeBadInput)
	}
}

func TestCreate(t *testing.T) {
	a, _, store := service(t, identity.LimitsConfig{})
	ctx := t.Context()
	for range 2 { // the second call changes nothing
		_, _, err := a.Create(ctx, 42, "Zoe", "Zoe")
		must.OK(t, err)
	}
	_, _, err := a.Create(ctx, 43, "u43", "U")
	check.That(t, err == nil, "%v", err)
	got := storage.UserLookups.Read(ctx, store, 42)[0].Value
	check.That(t, got.Handle == "zoe", "made %+v", got)
	_, _, err = a.Create(ctx, storage.Foreign(5), "five", "F")
	wantCode(t, "an id that is a thing's", err, apierr.CodeForbidden)
	_, _, err = a.Create(ctx, 44, "zoe", "Z")
	wantCode(t, "a taken handle", err, apierr.CodeBadInput)
	_, _, err = a.Create(ctx, 45, "u46", "U")
	wantCode(t, "another's imported handle", err, apierr.CodeBadInput)
}

func TestWhatIsNoHandleIsNotAskedFor(t *testing.T) {
	a, _, store := service(t, identity.LimitsConfig{})
	handless := double.Of(store)
	double.Before(handless, func(context.Context, []string) error { return errors.New("asked for a handle") }, storage.HandleLookups)
	a.Store = handless
	for _, handle := range []string{"é", "\u212aelvin", "", "a b", strings.Repeat("x", 31), strings.Repeat("é", 100_000)} {
		_, err := a.Login(t.Context(), handle, "correct horse")
		wantCode(t, "a login", err, apierr.CodeUnauthenticated)
	}
}

// Wrong passwords from other addresses lock no owner out, neither from signing in nor from changing the
// password.
func TestOthersDoNotLockTheOwnerOut(t *testing.T) {
	a, _, _ := service(t, identity.LimitsConfig{PerHandle: 2})
	from := func(address string) context.Context {
		return identity.WithAddress(t.Context(), netip.MustParseAddr(address))
	}
	attacker, owner := from("198.51.100.7"), from("192.0.2.1")
	s, err := a.Register(owner, "maya", "Maya", "correct horse")
	must.OK(t, err)
	for range 3 {
		_, _ = a.Login(attacker, "maya", "wrong horse")
		_, _ = a.ChangePassword(attacker, s.User, "wrong horse", "mine all mine")
	}
	for i := range 20 { // by what counts changes of passwords
		_, err := a.Login(from(fmt.Sprintf("203.0.113.%d", i)), "id "+s.User.String(), "wrong horse")
		wantCode(t, "a login without a handle", err, apierr.CodeUnauthenticated)
	}
	_, err = a.Login(attacker, "maya", "correct horse")
	wantCode(t, "a login from the attacker's address", err, apierr.CodeRateLimited)
	_, err = a.ChangePassword(attacker, s.User, "correct horse", "mine all mine")
	wantCode(t, "a change from the attacker's address", err, apierr.CodeRateLimited)
	_, err = a.Login(owner, "maya", "correct horse")
	check.That(t, err == nil, "%v", err)
	_, err = a.ChangePassword(owner, s.User, "correct horse", "battery staple")
	check.That(t, err == nil, "%v", err)
}

// A sign-in with the old password while it is being changed yields a token that has expired, and a
// second change with the old password is refused, unless it was only hashed again.
func TestSigningInWhileThePasswordChanges(t *testing.T) {
	a, id, store := service(t, identity.LimitsConfig{})
	g := open(t, store, time.Now)
	id.Verifier.UseRevocations(g.hiddenUsers.Passwords, nil)
	a.Changed = g.hiddenUsers.Passwords.Note
	between, meanwhile := double.Of(store), func() {} // between a read of a password and what depends on it
	double.After(between, func(storage.Side, []storage.UserID, []storage.Result[storage.Password]) {
		now := meanwhile
		meanwhile = func() {}
		now()
	}, storage.PasswordLookups)
	a.Store = between
	ctx := t.Context()
	s, err := a.Register(ctx, "maya", "Maya", "correct horse")
	must.OK(t, err)
	var fresh accounts.Session
	meanwhile = func() {
		fresh, err = a.ChangePassword(ctx, s.User, "correct horse", "battery staple")
		check.That(t, err == nil, "%v", err)
	}
	late, err := a.Login(ctx, "maya", "correct horse")
	must.OK(t, err)
	for name, c := range map[string]struct {
		token string
		good  bool
	}{"the first": {s.Token, false}, "the late": {late.Token, false}, "the fresh": {fresh.Token, true}} {
		viewer, err := id.Verifier.Verify(ctx, c.token)
		check.That(t, (err == nil) == c.good, "%s token: %+v, %v", name, viewer, err)
	}
	meanwhile = func() {
		_, err := a.ChangePassword(ctx, s.User, "battery staple", "mine all mine")
		check.That(t, err == nil, "%v", err)
	}
	_, err = a.ChangePassword(ctx, s.User, "battery staple", "not any more")
	wantCode(t, "a change by an old password", err, apierr.CodeForbidden)
	meanwhile = func() { // as a login does if the cost of hashes has changed
		kept := storage.PasswordLookups.Read(ctx, store, s.User)[0].Value.Hash
		again, err := a.Passwords.Hash(ctx, "mine all mine")
		must.OK(t, err)
		_, err = store.SetPassword(ctx, s.User, storage.PasswordChange{Old: kept, New: again})
		must.OK(t, err)
	}
	_, err = a.ChangePassword(ctx, s.User, "mine all mine", "correct horse")
	check.That(t, err == nil, "a change of a password that is hashed again meanwhile: %v", err)
	_, err = a.Login(ctx, "maya", "mine all mine")
	wantCode(t, "the password that was hashed again", err, apierr.CodeUnauthenticated)
}

// A gateway reads the password changes of other gateways, and ends connections once.
func TestPasswordsOfOtherGatewaysAreHeardOf(t *testing.T) {
	store := oracle.New()
	makeUsers(t, store, 3)
	g := open(t, store, time.Now)
	during(t, func(ctx context.Context) { g.hiddenUsers.Run(ctx, g.hub) })
	var ended, others atomic.Int64
	passwords := g.hiddenUsers.Passwords
	passwords.Watch(1, 0, func() { ended.Add(1) })
	passwords.Watch(2, 0, func() { others.Add(1) })
	passwords.Watch(1, 0, func() { others.Add(1) })() // this connection has ended
	at := storage.MicrosOf(time.Now())
	change := storage.PasswordChange{New: "x", At: at, EndsTokens: true}
	_, err := store.SetPassword(t.Context(), 1, change)
	must.OK(t, err)
	must.Soon(t, "the change is known", func() bool { return passwords.ChangedAt(1) == at })
	must.Soon(t, "the connection ends", func() bool { return ended.Load() == 1 })
	passwords.Watch(1, at-1, func() { ended.Add(1) })
	passwords.Watch(1, at, func() { others.Add(1) })
	must.Soon(t, "one from before ends", func() bool { return ended.Load() == 2 })
	n := others.Load()
	check.That(t, n == 0 && passwords.ChangedAt(2) == 0, "%d others have ended", n)
}

// A session is renewed by its token alone, for users who exist.
func TestRenew(t *testing.T) {
	t.Parallel()
	a, id, store := service(t, identity.LimitsConfig{})
	made, err := a.Register(t.Context(), "maya", "Maya", "correct horse")
	must.OK(t, err)
	viewer, err := id.Verifier.Verify(t.Context(), made.Token)
	must.OK(t, err)
	for _, state := range []storage.UserState{storage.Active, storage.Deactivated} {
		_, err := store.SetState(t.Context(), made.User, state, storage.Micros(1+state))
		must.OK(t, err)
		next, err := a.Renew(t.Context(), viewer)
		must.That(t, err == nil && next.User == made.User && !next.Expires.Before(made.Expires), "in state %d: %+v, %v", state, next, err)
		again, err := id.Verifier.Verify(t.Context(), next.Token)
		check.That(t, err == nil && again.ID == made.User, "in state %d: %+v, %v", state, again, err)
	}
	_, err = a.Renew(t.Context(), identity.Viewer{ID: made.User})
	wantCode(t, "no token of a sign-in", err, apierr.CodeForbidden)
	_, err = store.SetState(t.Context(), made.User, storage.Deleting, 9)
	must.OK(t, err)
	_, err = a.Renew(t.Context(), viewer)
	check.Is(t, "while the user is being deleted", err, storage.ErrUserUnknown)
	a.Tokens = nil
	_, err = a.Renew(t.Context(), viewer)
	wantCode(t, "where a provider signs in", err, apierr.CodeForbidden)
}

// A handle that was claimed for a user who has another one signs nobody in.
func TestNobodySignsInByAClaim(t *testing.T) {
	a, _, store := service(t, identity.LimitsConfig{})
	made, err := a.Register(t.Context(), "maya", "Maya", "correct horse")
	must.OK(t, err)
	must.OK(t, store.Claim(t.Context(), "late", made.User, 1))
	_, err = a.Login(t.Context(), "late", "correct horse")
	wantCode(t, "by a claim", err, apierr.CodeUnauthenticated)
}

// TestReservedHandles: nobody gets them by registering; an operator gives them. A product's own list replaces Kith's.
func TestReservedHandles(t *testing.T) {
	a, _, _ := service(t, identity.LimitsConfig{})
	a.Reserved = accounts.Reserved(nil)
	must.That(t, len(a.Reserved) >= 50, "%v", len(a.Reserved))
	for handle := range a.Reserved {
		check.That(t, storage.ValidHandle(handle), "%q is no handle", handle)
	}
	for _, handle := range []string{"admin", "Support", "KITH", "graphql"} {
		_, err := a.Register(t.Context(), handle, "N", "correct horse")
		known, ok := apierr.Of(err)
		check.That(t, ok && known.Reason == apierr.HandleReserved, "%s: %v", handle, err)
	}
	_, err := a.Register(t.Context(), "admin_9", "N", "correct horse")
	check.That(t, err == nil, "%v", err)
	user, made, err := a.Create(t.Context(), 4711, "Support", "Support")
	check.That(t, err == nil && made && user.Handle == "support", "%v %v %v", user, made, err)

	check.Equal(t, "reserved names", len(accounts.Reserved([]string{})), 0)
}
