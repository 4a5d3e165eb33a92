package resolvers

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"kith/accounts/identity"
	"kith/graph/apierr"
	"kith/graph/consistency"
	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

// viewerOf is the user who is signed in; an error if nobody is.
func viewerOf(ctx context.Context) (storage.UserID, error) {
	viewer, ok := identity.Of(ctx)
	if !ok {
		if caller, _ := identity.Caller(ctx); caller.Unknown() {
			return 0, identity.ErrUnknown
		}
		return 0, apierr.NotSignedIn.Error("sign in first")
	}
	return viewer.ID, nil
}

// actorOf is the user who is signed in and may change so many objects by the mutation: neither too often, nor with a deactivated account.
func (r *Resolver) actorOf(ctx context.Context, objects int) (storage.UserID, error) {
	viewer, err := viewerOf(ctx)
	if err == nil && r.States != nil && prefetch.OperationOf(ctx).IsHidden(viewer) {
		err = viewerGone(r.States.MayAct(ctx, viewer))
	}
	if err == nil {
		err = r.mayWrite(ctx, viewer, objects)
	}
	return viewer, err
}

// mayWrite counts a call of the mutation.
func (r *Resolver) mayWrite(ctx context.Context, viewer storage.UserID, objects int) error {
	if r.MayWrite == nil {
		return nil
	}
	return r.MayWrite(ctx, viewer, graphql.GetFieldContext(ctx).Field.Name, objects)
}

// writerOf is actorOf for changes that are also for users who have deactivated their accounts.
func (r *Resolver) writerOf(ctx context.Context) (storage.UserID, error) {
	viewer, err := viewerOf(ctx)
	if err == nil {
		err = r.mayWrite(ctx, viewer, 1)
	}
	return viewer, err
}

// refusals are what clients are told of the errors of rules and stores. The first one that fits counts.
type refusals []struct {
	of   error
	told *apierr.Error
}

// tell turns a refusal into the client's error; other errors stay unchanged.
func (r refusals) tell(err error) error {
	for _, one := range r {
		if errors.Is(err, one.of) {
			return one.told
		}
	}
	return err
}

var errNoList = apierr.ListNotFound.Error("there is no such list")

var (
	// viewerGone asks a viewer whom the store does not know to sign in again.
	viewerGone = refusals{{storage.ErrUserUnknown, apierr.TokenRevoked.Error("the user who is signed in does not exist")}}.tell
	// markError is for marks.
	markError = refusals{
		{storage.ErrNoEdge, apierr.NotFollowing.Error("you do not follow this user")},
		{storage.ErrLimitReached, apierr.TooManySpecials.Error("you follow as many users specially as one may, which is %d", storage.MaxSpecials)},
	}.tell
	// ofChanges are those of all other changes.
	ofChanges = refusals{
		{social.ErrSelf, apierr.Self.Error("you cannot do this to yourself")},
		{storage.ErrListUnknown, errNoList.In("listId")},
		{storage.ErrNoEdge, apierr.RequestNotFound.Error("there is no such request")},
		{storage.ErrUserUnknown, apierr.UserNotFound.Error("there is no such user")},
		{social.ErrTheirLimit, apierr.TooManyTheirs.Error("the other user follows as many users as one may")},
		{storage.ErrLimitReached, apierr.TooManyFollows.Error("you follow as many users as one may")},
	}
)

// clientError turns a refusal into the client's error; other errors stay unchanged. Refusals
// between two users go through [Resolver.refusal].
func clientError(err error) error {
	if _, gone := errors.AsType[social.ActorMissing](err); gone {
		return viewerGone(err)
	}
	return ofChanges.tell(err)
}

// aboutUsers are the codes of refusals that are about the other user.
var aboutUsers = []apierr.Code{apierr.CodeBadInput, apierr.CodeNotFound, apierr.CodeForbidden}

// refusal says why something was refused between the viewer and another user.
func (r *Resolver) refusal(ctx context.Context, viewer, other storage.UserID, err error) error {
	if errors.Is(err, storage.ErrForbidden) {
		err = r.forbidden(ctx, viewer, []storage.UserID{other})[0]
	} else {
		err = clientError(err)
	}
	known, _ := apierr.Of(err)
	if known != nil && slices.Contains(aboutUsers, known.Code) {
		return known.In("userId")
	}
	return err
}

// forbidden says which rule forbids something between the viewer and others, according to the
// viewer's relationships: both users of a block may know of it.
func (r *Resolver) forbidden(ctx context.Context, viewer storage.UserID, others []storage.UserID) []error {
	rows := func(side storage.Side) []storage.Result[storage.Edge] {
		pairs := storage.Each(others, func(other storage.UserID) storage.Pair { return side.Pair(viewer, other) })
		return storage.EdgeLookups[side].Read(ctx, r.Store, pairs...)
	}
	out, back, asked := rows(storage.Forward), rows(storage.Inverse), rows(storage.Requests)
	why := make([]error, len(others))
	for i := range others {
		switch {
		case out[i].Value.Type == storage.Blocking:
			why[i] = apierr.Blocking.Error("you block this user: unblock it first")
		case back[i].Value.Type == storage.Blocking:
			why[i] = apierr.Blocked.Error("this user blocks you")
		case asked[i].Value.Type == storage.Declined:
			again := asked[i].Value.UpdateTime.Time().Add(r.Relations.Rules.Load().RequestPause)
			why[i] = apierr.RequestDeclined.Error("this user has declined your request: ask again later").After(max(again.Sub(r.Relations.Now()), 0))
		default: // the block has just ended, or has not arrived here yet
			why[i] = apierr.NotPossible.Error("this is not possible between you and this user")
		}
	}
	return why
}

func (r mutations) Follow(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	return r.changeFollow(ctx, id, func(ctx context.Context, viewer, other storage.UserID) ([]storage.Result[storage.Changed], bool, error) {
		relations, stale, err := r.Relations.Follow(ctx, loaders.For(ctx).Reader(), viewer, []storage.UserID{other})
		return relations, stale, viewerGone(err)
	})
}

func (r mutations) Unfollow(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	return r.changeFollow(ctx, id, func(ctx context.Context, viewer, other storage.UserID) ([]storage.Result[storage.Changed], bool, error) {
		relations, stale, err := r.Relations.Unfollow(ctx, viewer, []storage.UserID{other})
		return relations, stale, viewerGone(err)
	})
}

func (r mutations) RemoveFollower(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	return r.changeFollow(ctx, id, r.Relations.RemoveFollower)
}

// actorAndOther are the viewer, who is about to change something, and the other user. more are the checks of the other arguments.
func (r *Resolver) actorAndOther(ctx context.Context, id string, more ...error) (viewer, other storage.UserID, err error) {
	if viewer, err = r.actorOf(ctx, 1); err != nil {
		return 0, 0, err
	}
	other, err = parseUserID("userId", id)
	return viewer, other, allOf(append(more, err))
}

// allOf is [apierr.All], which only refusals go through.
func allOf(checks []error) error {
	if cmp.Or(checks...) == nil {
		return nil
	}
	return apierr.All(checks...)
}

// changeFollow changes one follow between the viewer and another user.
func (r *Resolver) changeFollow(ctx context.Context, id string, change func(ctx context.Context, viewer, other storage.UserID) ([]storage.Result[storage.Changed], bool, error)) (*model.RelationshipPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	relations, stale, err := change(ctx, viewer, other)
	if err == nil {
		err = relations[0].Err
	}
	if err != nil {
		return nil, r.refusal(ctx, viewer, other, err)
	}
	tie, token := relations[0].Value, tokenOf(relations)
	rememberRelations(ctx, relations)
	var waiting []model.RequestRow
	if kind := tie.Row.Type; kind == storage.Requested || kind.HasEnded() && tie.Waited {
		waiting = []model.RequestRow{{Edge: tie.Row, Kind: model.RequestKindFollow}}
	}
	return r.payload(ctx, tie.Changed, done{
		viewer: viewer, other: other, made: slices.Concat(madeBy(relations)...), requests: waiting,
		token: token, late: token, stale: stale,
	}), nil
}

// tokenOf is the token of the edges that were written or existed already.
func tokenOf(relations []storage.Result[storage.Changed]) consistency.Token {
	var follows []storage.Edge
	var t consistency.Token
	for _, tie := range relations {
		switch {
		case tie.Value.Row.UpdateTime == 0: // nothing was written
		case tie.Value.Side == storage.Forward && (tie.Value.Row.Type == storage.Following || tie.Value.Row.Type == storage.Requested):
			follows = append(follows, tie.Value.Row)
		default:
			t = append(t, markOf(storage.Row{Side: tie.Value.Side, Edge: tie.Value.Row}))
		}
	}
	return append(t, consistency.Followings(follows)...)
}

// rememberRelations keeps the edges that the write returned, so that the payload need not read them.
func rememberRelations(ctx context.Context, relations []storage.Result[storage.Changed]) {
	for _, tie := range relations {
		if tie.Err == nil {
			remember(ctx, tie.Value.Row)
		}
	}
}

// madeBy are the rows that each change has made or ended, none if it has changed nothing, or only what is stored with the row.
func madeBy(relations []storage.Result[storage.Changed]) [][]storage.Row {
	return storage.Each(relations, func(tie storage.Result[storage.Changed]) (rows []storage.Row) {
		if tie.Value.Changed && !tie.Value.Kept {
			rows = []storage.Row{{Side: tie.Value.Side, Edge: tie.Value.Row}}
		}
		return rows
	})
}

func (r mutations) FollowMany(ctx context.Context, texts []string) (*model.FollowManyPayload, error) {
	viewer, err := r.actorOf(ctx, len(texts))
	if err != nil {
		return nil, err
	}
	list, err := parseUserIDs("userIds", texts)
	if err != nil {
		return nil, err
	}
	relations, stale, err := r.Relations.Follow(ctx, loaders.For(ctx).Reader(), viewer, list.Good)
	if err != nil {
		return nil, viewerGone(err)
	}
	outcomes, self := r.followed(ctx, viewer, "userIds", list, texts, relations, stale)
	return &model.FollowManyPayload{Viewer: self, Outcomes: outcomes}, nil
}

// followed is what many follows have come to, of users whom an argument names.
func (r *Resolver) followed(ctx context.Context, viewer storage.UserID, argument string, list prefetch.Inputs[storage.UserID], texts []string, relations []storage.Result[storage.Changed], stale bool) ([]*model.FollowOutcome, *model.Viewer) {
	token := tokenOf(relations)
	r.await(ctx, done{token: token, late: token, stale: stale}, payloadSelection(ctx).readsInverse())
	rememberRelations(ctx, relations)
	return r.outcomes(ctx, viewer, argument, list, texts, relations, madeBy(relations))
}

// outcomes are those of changes towards many users, of which texts names the wrong ones, and the viewer after them, as far as they are selected. made are the
// rows that each has written.
func (r *Resolver) outcomes(ctx context.Context, viewer storage.UserID, argument string, list prefetch.Inputs[storage.UserID], texts []string, relations []storage.Result[storage.Changed], made [][]storage.Row) ([]*model.FollowOutcome, *model.Viewer) {
	s, others := payloadSelection(ctx), list.Good
	selected := s.below("outcomes")
	pairs := storage.Each(others, func(other storage.UserID) storage.Pair { return storage.Pair{From: viewer, To: other} })
	var sent []model.RequestRow
	for _, rows := range made {
		sent = append(sent, sentBy(viewer, rows)...)
	}
	prefetch.Fetch(ctx,
		s.viewerObjects(viewer),
		prefetch.RowsOn(sent, selected.below("requestEdge").of("node")),
		selected.userObjects(others...),
		relationshipPairs{pairs, selected.of("relationship")},
	)
	at := func(names ...string) prefetch.Paths {
		return list.At(s.at(ctx, slices.Insert(names, 0, "outcomes")...))
	}
	users, relationships := make([]*model.User, len(others)), make([]*model.Relationship, len(others))
	if selected.has("user") {
		users = usersOf(ctx, prefetch.Users{IDs: others, Exist: true, On: selected.of("user")}, at("user"))
	}
	if selected.has("relationship") {
		relationships = relationshipsOf(ctx, pairs, selected.of("relationship"), at("relationship"))
	}
	edges := func(f edgeField) []*model.UserEdge { return selected.madeEdges(ctx, f, viewer, made, at) }
	followings, followers := edges(followingEdge), edges(followerEdge)
	members, requests := edges(memberEdge), selected.requestEdges(ctx, viewer, made, at)
	r.explain(ctx, viewer, others, relations)
	outcomes := make([]*model.FollowOutcome, len(relations)+len(list.Wrong))
	for i, tie := range relations {
		outcomes[list.Index(i)] = &model.FollowOutcome{
			UserID: others[i].String(), Changed: tie.Value.Changed, User: users[i], Relationship: relationships[i],
			FollowingEdge: followings[i], FollowerEdge: followers[i], MemberEdge: members[i], RequestEdge: requests[i],
			Error: followError(argument, tie.Err),
		}
	}
	for _, w := range list.Wrong {
		outcomes[w.Index] = &model.FollowOutcome{UserID: texts[w.Index], Error: followError(argument, w.Err)}
	}
	return outcomes, s.showViewer(ctx, viewer)
}

// explain adds to forbidden follows why they are forbidden.
func (r *Resolver) explain(ctx context.Context, viewer storage.UserID, others []storage.UserID, relations []storage.Result[storage.Changed]) {
	var who []storage.UserID
	var which []int
	for i, tie := range relations {
		if errors.Is(tie.Err, storage.ErrForbidden) {
			who, which = append(who, others[i]), append(which, i)
		}
	}
	if len(who) == 0 {
		return
	}
	for k, err := range r.forbidden(ctx, viewer, who) {
		relations[which[k]].Err = err
	}
}

// followError is why one of many follows was refused, of a user whom an argument names.
func followError(argument string, err error) *model.FollowError {
	if err == nil {
		return nil
	}
	known, ok := apierr.Of(clientError(err))
	if !ok {
		known = cmp.Or(apierr.Failure(err), apierr.ServerAtFault.Error("something went wrong"))
	}
	shown := &model.FollowError{Code: known.Code, Reason: known.Reason, Message: known.Message}
	if argument != "" && slices.Contains(aboutUsers, known.Code) {
		shown.Argument = &argument
	}
	if wait, ok := known.Details["retryAfter"].(int); ok {
		shown.RetryAfter = new(int32(wait))
	}
	return shown
}
