package accounts_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/identity"
	"kith/storage"
	"kith/storage/memory"
)

// counter gives ids in turn.
type counter struct{ last atomic.Int64 }

func (c *counter) Next(context.Context) (storage.UserID, error) {
	return storage.UserID(c.last.Add(1)), nil
}

func service(t *testing.T, limits identity.LimitsConfig) (*accounts.Accounts, *identity.Service, *memory.Store) {
	t.Helper()
	id, err := (&identity.Settings{JWTUserClaim: "sub", TokenTTL: time.Hour}).Open(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(id.Close)
	store := memory.New()
	return &accounts.Accounts{
		Store: store, IDs: &counter{}, Passwords: id.Passwords, Tokens: id.Issuer,
		Limits: identity.NewLimits(limits), Now: time.Now,
	}, id, store
}

func wantCode(t *testing.T, what string, err error, code apierr.Code) {
	t.Helper()
	if known, ok := apierr.Of(err); !ok || known.Code != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

func TestRegisterThenLogin(t *testing.T) {
	a, id, store := service(t, identity.LimitsConfig{})
	ctx := t.Context()
	made, err := a.Register(ctx, "Maya_9", "  Maya  ", "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	user := store.Users(ctx, []storage.UserID{made.User})[0].Value
	if user.Handle != "maya_9" || user.Name != "Maya" || user.CreatedAt == 0 {
		t.Errorf("made %+v", user)
	}
	if hash := store.Passwords(ctx, []storage.UserID{made.User})[0].Value.Hash; !strings.HasPrefix(hash, "$argon2id$") {
		t.Errorf("the password is kept as %q", hash)
	}
	for _, handle := range []string{"maya_9", "MAYA_9"} {
		session, err := a.Login(ctx, handle, "correct horse")
		if err != nil {
			t.Fatal(err)
		}
		viewer, err := id.Verifier.Verify(ctx, session.Token)
		if err != nil || viewer.ID != made.User {
			t.Errorf("the token is of %+v: %v", viewer, err)
		}
	}
}

func TestLoginTellsNothing(t *testing.T) {
	a, _, store := service(t, identity.LimitsConfig{})
	ctx := t.Context()
	if _, err := a.Register(ctx, "maya", "Maya", "correct horse"); err != nil {
		t.Fatal(err)
	}
	store.CreateUsers(ctx, []storage.User{{ID: 900, Handle: "u900", Name: "u900"}})
	var first string
	for _, try := range [][2]string{{"maya", "wrong horse"}, {"nobody", "correct horse"}, {"u900", "correct horse"}, {"u900", ""}, {"§", "x"}} {
		_, err := a.Login(ctx, try[0], try[1])
		wantCode(t, "login of "+try[0], err, apierr.CodeUnauthenticated)
		if first == "" {
			first = err.Error()
		}
		if err.Error() != first {
			t.Errorf("%v is answered %q, another %q", try, err, first)
		}
	}
}

func TestRegisterIsRefused(t *testing.T) {
	a, _, _ := service(t, identity.LimitsConfig{})
	ctx := t.Context()
	if _, err := a.Register(ctx, "maya", "Maya", "correct horse"); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{"MAYA", "M", "correct horse"}, {"", "M", "correct horse"}, {"a b", "M", "correct horse"}, {"\u212aelvin", "M", "correct horse"},
		{"u77", "M", "correct horse"}, {strings.Repeat("x", 31), "M", "correct horse"},
		{"ok", "", "correct horse"}, {"ok", " \t ", "correct horse"}, {"ok", "a\x00b", "correct horse"}, {"ok", "a\u202eb", "correct horse"}, {"ok", strings.Repeat("é", 101), "correct horse"},
		{"ok", "M", "short"},
	} {
		_, err := a.Register(ctx, c[0], c[1], c[2])
		wantCode(t, strings.Join(c[:], ", "), err, apierr.CodeBadInput)
	}
	a.Tokens = nil // an identity provider signs
	_, err := a.Register(ctx, "zoe", "Zoe", "correct horse")
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
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, "wrong current password", a.ChangePassword(ctx, s.User, "wrong horse", "battery staple"), apierr.CodeForbidden)
	wantCode(t, "short new password", a.ChangePassword(ctx, s.User, "correct horse", "x"), apierr.CodeBadInput)
	if err := a.ChangePassword(ctx, s.User, "correct horse", "battery staple"); err != nil {
		t.Fatal(err)
	}
	_, err = a.Login(ctx, "maya", "correct horse")
	wantCode(t, "the old password", err, apierr.CodeUnauthenticated)
	if _, err := a.Login(ctx, "maya", "battery staple"); err != nil {
		t.Error(err)
	}
}

func TestUpdateProfile(t *testing.T) {
	a, _, store := service(t, identity.LimitsConfig{})
	ctx := t.Context()
	s, err := a.Register(ctx, "maya", "Maya", "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) *string { return &s }
	if err := a.UpdateProfile(ctx, s.User, storage.ProfileChange{Bio: text(" two\nlines "), AvatarURL: text("https://example.org/a.png")}); err != nil {
		t.Fatal(err)
	}
	user := store.Users(ctx, []storage.UserID{s.User})[0].Value
	if user.Name != "Maya" || user.Bio != "two\nlines" || user.AvatarURL != "https://example.org/a.png" {
		t.Errorf("now %+v", user)
	}
	for what, change := range map[string]storage.ProfileChange{
		"no name": {Name: text("")}, "long bio": {Bio: text(strings.Repeat("x", 501))}, "script": {AvatarURL: text("javascript:alert(1)")},
	} {
		wantCode(t, what, a.UpdateProfile(ctx, s.User, change), apierr.CodeBadInput)
	}
}

func TestCreate(t *testing.T) {
	a, _, store := service(t, identity.LimitsConfig{})
	ctx := t.Context()
	for range 2 { // again changes nothing
		if err := a.Create(ctx, 42, "Zoe", "Zoe"); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Create(ctx, 43, "u43", "U"); err != nil {
		t.Error(err)
	}
	if got := store.Users(ctx, []storage.UserID{42})[0].Value; got.Handle != "zoe" {
		t.Errorf("made %+v", got)
	}
	wantCode(t, "a taken handle", a.Create(ctx, 44, "zoe", "Z"), apierr.CodeBadInput)
	wantCode(t, "another's imported handle", a.Create(ctx, 45, "u46", "U"), apierr.CodeBadInput)
}

// handless fails whoever asks it for handles.
type handless struct{ *memory.Store }

func (s handless) UserIDs(_ context.Context, handles []string) []storage.Result[storage.UserID] {
	return []storage.Result[storage.UserID]{{Err: errors.New("asked for a handle")}}
}

func TestWhatIsNoHandleIsNotAskedFor(t *testing.T) {
	a, _, store := service(t, identity.LimitsConfig{})
	a.Store = handless{store}
	for _, handle := range []string{"é", "\u212aelvin", "", "a b", strings.Repeat("x", 31), strings.Repeat("é", 100_000)} {
		_, err := a.Login(t.Context(), handle, "correct horse")
		wantCode(t, "a login", err, apierr.CodeUnauthenticated)
	}
}

// Wrong passwords from elsewhere lock nobody out, neither of signing in nor of changing
// the password.
func TestOthersDoNotLockTheOwnerOut(t *testing.T) {
	a, _, _ := service(t, identity.LimitsConfig{PerHandle: 2})
	from := func(address string) context.Context {
		return identity.WithAddress(t.Context(), netip.MustParseAddr(address))
	}
	attacker, owner := from("198.51.100.7"), from("192.0.2.1")
	s, err := a.Register(owner, "maya", "Maya", "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, _ = a.Login(attacker, "maya", "wrong horse")
		_ = a.ChangePassword(attacker, s.User, "wrong horse", "mine all mine")
	}
	_, err = a.Login(attacker, "maya", "correct horse")
	wantCode(t, "a login from the attacker's address", err, apierr.CodeRateLimited)
	wantCode(t, "a change from the attacker's address", a.ChangePassword(attacker, s.User, "correct horse", "mine all mine"), apierr.CodeRateLimited)
	if _, err := a.Login(owner, "maya", "correct horse"); err != nil {
		t.Error(err)
	}
	if err := a.ChangePassword(owner, s.User, "correct horse", "battery staple"); err != nil {
		t.Error(err)
	}
}
