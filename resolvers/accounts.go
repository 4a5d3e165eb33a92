package resolvers

import (
	"cmp"
	"context"
	"strings"

	"kith/accounts"
	"kith/accounts/identity"
	"kith/graph/apierr"
	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/storage"
)

func (r mutations) Register(ctx context.Context, handle, name string, password *string) (*model.SessionPayload, error) {
	s, err := r.Accounts.Register(ctx, handle, name, *cmp.Or(password, new(string)))
	return sessionPayload(ctx, s, err)
}

func (r mutations) Login(ctx context.Context, handle, password string) (*model.SessionPayload, error) {
	s, err := r.Accounts.Login(ctx, handle, password)
	return sessionPayload(ctx, s, err)
}

func (r mutations) RenewToken(ctx context.Context) (*model.SessionPayload, error) {
	if _, err := viewerOf(ctx); err != nil {
		return nil, err
	}
	viewer, _ := identity.Of(ctx)
	s, err := r.Accounts.Renew(ctx, viewer)
	return sessionPayload(ctx, s, viewerGone(err))
}

func sessionPayload(ctx context.Context, s accounts.Session, err error) (*model.SessionPayload, error) {
	if err != nil {
		return nil, err
	}
	prefetch.SignIn(ctx, s.User)
	return &model.SessionPayload{Token: s.Token, ExpiresAt: s.Expires, Viewer: payloadSelection(ctx).readViewer(ctx, s.User)}, nil
}

func (r mutations) UpdateProfile(ctx context.Context, name, bio, avatarURL, website *string, lists *model.ListVisibilityInput, discoverable *bool, attributes map[string]any, locked *bool) (*model.AccountPayload, error) {
	viewer, err := r.actorOf(ctx, 1)
	if err != nil {
		return nil, err
	}
	if avatarURL != nil {
		if path := strings.TrimPrefix(*avatarURL, r.PublicURL); strings.HasPrefix(path, faces) { // as it was read
			avatarURL = &path
		}
	}
	change := storage.ProfileChange{
		Name: name, Bio: orRemoved(ctx, "bio", bio), AvatarURL: orRemoved(ctx, "avatarUrl", avatarURL), Website: orRemoved(ctx, "website", website), Locked: locked,
	}
	if lists != nil {
		change.FollowingsVisibility = visibilityOf(lists.Followings.Value())
		change.FollowersVisibility = visibilityOf(lists.Followers.Value())
	}
	if discoverable != nil {
		change.Undiscoverable = new(!*discoverable)
	}
	change, badTexts := accounts.CheckProfile(change)
	var badAttributes error
	change.Attributes, badAttributes = attributeChange(r.Declared.Attributes.User, attributes)
	if err := apierr.All(badTexts, badAttributes); err != nil {
		return nil, err
	}
	user, changed, err := r.Accounts.UpdateProfile(ctx, viewer, change)
	if err != nil {
		return nil, viewerGone(attributesError(err))
	}
	loaders.For(ctx).Users.Prime(viewer, user)
	return accountPayload(ctx, viewer, changed), nil
}

// faces is the beginning of the paths of faces. Other pictures at the public address, behind the same proxy, are not ours.
const faces = "/faces/"

// visibilityOf converts a visibility; null leaves it unchanged.
func visibilityOf(v *model.Visibility) *storage.Visibility {
	if v == nil {
		return nil
	}
	return new(map[model.Visibility]storage.Visibility{
		model.VisibilityEveryone: storage.ToEveryone, model.VisibilityFollowers: storage.ToFollowers, model.VisibilityNobody: storage.ToNobody,
	}[*v])
}

func (r mutations) ChangePassword(ctx context.Context, current, next string) (*model.ChangePasswordPayload, error) {
	viewer, err := r.actorOf(ctx, 1)
	if err != nil {
		return nil, err
	}
	s, err := r.Accounts.ChangePassword(ctx, viewer, current, next)
	if err != nil {
		return nil, viewerGone(err)
	}
	payload := &model.ChangePasswordPayload{Changed: true}
	if s.Token != "" {
		payload.Token, payload.ExpiresAt = &s.Token, &s.Expires
	}
	return payload, nil
}

// SignOutEverywhere also serves users who have deactivated their accounts.
func (r mutations) SignOutEverywhere(ctx context.Context) (*model.AccountPayload, error) {
	viewer, err := r.writerOf(ctx)
	return changeAccount(ctx, viewer, err, func() (bool, error) { return true, r.Accounts.SignOutEverywhere(ctx, viewer) })
}

func (r mutations) LinkIdentity(ctx context.Context, text, issuer, subject string) (*model.UserPayload, error) {
	who := storage.Identity{Issuer: issuer, Subject: subject}
	return changeUser(ctx, "userId", text, func(id storage.UserID) (bool, error) {
		changed, err := r.Accounts.LinkIdentity(ctx, id, who)
		return changed, userError(err)
	}, accounts.CheckIdentity(who))
}

// userError is for what an operator does to a user.
var userError = refusals{{storage.ErrUserUnknown, apierr.UserNotFound.Error("there is no such user").In("userId")}}.tell

// changeUser changes a user for an operator. more are the checks of the other arguments.
func changeUser(ctx context.Context, argument, text string, change func(storage.UserID) (bool, error), more ...error) (*model.UserPayload, error) {
	if err := admin(ctx); err != nil {
		return nil, err
	}
	id, err := parseUserID(argument, text)
	if err := allOf(append(more, err)); err != nil {
		return nil, err
	}
	changed, err := change(id)
	if err != nil {
		return nil, err
	}
	s := payloadSelection(ctx)
	prefetch.Fetch(ctx, prefetch.Users{IDs: []storage.UserID{id}, Exist: s.has("user"), On: s.of("user")})
	return &model.UserPayload{Changed: changed, User: s.user(ctx, id, true, "user")}, nil
}

// UnlinkIdentity serves backends, and the user whose identity it is.
func (r mutations) UnlinkIdentity(ctx context.Context, issuer, subject string) (*model.AccountPayload, error) {
	who := storage.Identity{Issuer: issuer, Subject: subject}
	if admin(ctx) == nil {
		changed, err := r.Accounts.UnlinkIdentity(ctx, who)
		viewer, is := identity.Of(ctx)
		if err != nil || !is {
			return &model.AccountPayload{Changed: changed}, err
		}
		return accountPayload(ctx, viewer.ID, changed), nil
	}
	viewer, err := r.actorOf(ctx, 1)
	return changeAccount(ctx, viewer, err, func() (bool, error) { return r.Accounts.UnlinkOwnIdentity(ctx, viewer, who) })
}

func (r viewerFields) Identities(ctx context.Context, obj *model.Viewer) ([]*model.LinkedIdentity, error) {
	type key struct{}
	linked, err := prefetch.Shared(ctx, key{}, func() ([]storage.LinkedIdentity, error) { return r.Accounts.IdentitiesOf(ctx, obj.User.UserID) })
	if err != nil {
		return nil, err
	}
	return storage.Each(linked, func(l storage.LinkedIdentity) *model.LinkedIdentity {
		return &model.LinkedIdentity{Issuer: l.Issuer, Subject: l.Subject, LinkedAt: l.At.Time()}
	}), nil
}

func (r viewerFields) Standing(ctx context.Context, obj *model.Viewer) (*model.Standing, error) {
	type key struct{}
	is, err := prefetch.Shared(ctx, key{}, func() (storage.UserStanding, error) { return r.States.Standing(ctx, obj.User.UserID) })
	switch {
	case err != nil:
		return nil, err
	case is.Until == 0:
		return &model.Standing{State: accountStates[is.State]}, nil
	}
	s := &model.Standing{State: model.AccountStateSuspended, Reason: &is.Reason}
	if is.Until != storage.Forever {
		s.Until = new(is.Until.Time())
	}
	return s, nil
}

var accountStates = [...]model.AccountState{
	storage.Active: model.AccountStateActive, storage.Deactivated: model.AccountStateDeactivated,
	storage.Deleting: model.AccountStateDeleting, storage.Deleted: model.AccountStateDeleting,
}

func (r mutations) CreateUser(ctx context.Context, text, handle, name string) (*model.UserPayload, error) {
	id, _ := parseUserID("id", text)
	_, _, badTexts := accounts.CheckCreated(id, handle, name)
	return changeUser(ctx, "id", text, func(id storage.UserID) (bool, error) {
		user, made, err := r.Accounts.Create(ctx, id, handle, name)
		if made && err == nil {
			loaders.For(ctx).Users.Prime(id, user)
		}
		return made, err
	}, badTexts)
}

func accountPayload(ctx context.Context, viewer storage.UserID, changed bool) *model.AccountPayload {
	return &model.AccountPayload{Changed: changed, Viewer: payloadSelection(ctx).readViewer(ctx, viewer)}
}

// changeAccount changes something of the viewer's own, unless err says that the viewer may not.
func changeAccount(ctx context.Context, viewer storage.UserID, err error, change func() (bool, error)) (*model.AccountPayload, error) {
	changed := false
	if err == nil {
		changed, err = change()
		err = viewerGone(err)
	}
	if err != nil {
		return nil, err
	}
	return accountPayload(ctx, viewer, changed), nil
}

func (r mutations) DeactivateAccount(ctx context.Context) (*model.AccountPayload, error) {
	viewer, err := r.writerOf(ctx)
	return changeAccount(ctx, viewer, err, func() (bool, error) { return r.States.SetOwn(ctx, viewer, storage.Deactivated) })
}

func (r mutations) ReactivateAccount(ctx context.Context) (*model.AccountPayload, error) {
	viewer, err := r.writerOf(ctx)
	return changeAccount(ctx, viewer, err, func() (bool, error) { return r.States.SetOwn(ctx, viewer, storage.Active) })
}

func (r mutations) DeleteAccount(ctx context.Context) (*model.DeleteAccountPayload, error) {
	viewer, err := r.writerOf(ctx)
	if err != nil {
		return nil, err
	}
	complete, err := r.States.Delete(ctx, viewer)
	if err != nil {
		return nil, viewerGone(err)
	}
	return &model.DeleteAccountPayload{Complete: complete}, nil
}

func (r mutations) SetUserAttributes(ctx context.Context, text string, given map[string]any) (*model.UserPayload, error) {
	change, badAttributes := attributeChange(r.Declared.Attributes.User, given)
	return changeUser(ctx, "userId", text, func(id storage.UserID) (bool, error) {
		_, changed, err := r.Accounts.UpdateProfile(ctx, id, storage.ProfileChange{Attributes: change})
		return changed, userError(attributesError(err))
	}, badAttributes)
}
