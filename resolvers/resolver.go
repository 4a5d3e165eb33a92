// Package resolvers answers the fields of the schema. A resolver translates: it checks arguments, makes one call, and converts.
//
// Fields that read are declared in the files of their topics and read before their resolvers run (kith/resolvers/prefetch); readAhead
// has all of them. Their resolvers take arguments from the plan and find their values in the loaders already. A set answer is a page
// that takes several look-ups, a whole is what its pages are taken out of.
package resolvers

import (
	"cmp"
	"context"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/accounts"
	"kith/accounts/identity"
	"kith/graph/consistency"
	"kith/graph/cursor"
	"kith/graph/declared"
	"kith/graph/generated"
	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
	"kith/storage/events"
)

// Resolver is the root of all resolvers.
type Resolver struct {
	// Budget bounds the set answers of a request. Zero means [social.DefaultBudget].
	Budget social.Budget

	// Relations changes follows and the other relations of users.
	Relations *social.Relations
	// Posts publishes posts and comments.
	Posts *social.Posts
	// Feeds are the home feeds.
	Feeds *social.Feeds
	// Accounts signs users up and in.
	Accounts *accounts.Accounts
	// PublicURL stands before avatarUrls that are paths, such as https://kith.example.org. Empty: nothing does.
	PublicURL string
	// MayWrite bounds how often a user calls a mutation, and how many objects it changes. Its errors are RATE_LIMITED. Nil: nothing does.
	MayWrite func(ctx context.Context, user storage.UserID, mutation string, objects int) error
	// Activity notes who is active. Nil: nobody does.
	Activity *accounts.Activity
	// States hides, shows and removes users. Nil: nobody is hidden.
	States *accounts.States
	// HiddenUsers are the users who are hidden. Nil: nobody is hidden.
	HiddenUsers social.HiddenUsers

	// Reads is what requests read from: the store, or caches of it. Nil: Store.
	Reads storage.Bundler
	// Store is read by whatever outlives a request's loaders, such as subscriptions.
	Store storage.Bundler
	// Tokens let payloads and later reads wait until a write has arrived on the inverse side.
	Tokens *consistency.Tokens

	// Cursors reads cursors, and writes those of positions at which no user was shown.
	Cursors *cursor.Sealer

	// Writes changes the lists of users, and up to where they have seen their feeds.
	Writes storage.Store
	// Popular has the suggestions for users without followings.
	Popular *social.Popular

	// Hub sends events to subscriptions.
	Hub *events.Hub

	// Changes passes on what changes in the store, until the context is done; its errors are for clients. Nil: nothing tells that.
	Changes func(ctx context.Context, after *string, kinds []model.ChangeKind, give func(*model.ChangeEvent) error) error

	// Declared is what the product declares.
	Declared *declared.File
	// Schema is what is served. Nil: everything.
	Schema *ast.Schema
	// Subgraph is the schema as routers read it. It is asked only if they may ask.
	Subgraph func() (string, error)
	// HideSchema refuses introspection. Defaults to false.
	HideSchema bool

	// Statuses report what reconciling has found.
	Statuses storage.Checkpoints
}

// The resolvers of each type, as gqlgen asks for them. Their methods are the fields that are not values of a model.
type (
	queries            struct{ *Resolver }
	mutations          struct{ *Resolver }
	subscriptions      struct{ *Resolver }
	viewerFields       struct{ *Resolver }
	userFields         struct{ *Resolver }
	postFields         struct{ *Resolver }
	relationshipFields struct{ *Resolver }
	listFields         struct{ *Resolver }
	importFields       struct{ *Resolver }
	suggestionFields   struct{ *Resolver }
)

// The methods of [generated.ResolverRoot].

func (r *Resolver) Query() generated.QueryResolver                   { return queries{r} }
func (r *Resolver) Mutation() generated.MutationResolver             { return mutations{r} }
func (r *Resolver) Subscription() generated.SubscriptionResolver     { return subscriptions{r} }
func (r *Resolver) Viewer() generated.ViewerResolver                 { return viewerFields{r} }
func (r *Resolver) User() generated.UserResolver                     { return userFields{r} }
func (r *Resolver) Post() generated.PostResolver                     { return postFields{r} }
func (r *Resolver) Relationship() generated.RelationshipResolver     { return relationshipFields{r} }
func (r *Resolver) AccountsImport() generated.AccountsImportResolver { return importFields{r} }
func (r *Resolver) List() generated.ListResolver                     { return listFields{r} }
func (r *Resolver) SuggestionEdge() generated.SuggestionEdgeResolver { return suggestionFields{r} }

// Attach gives a request what its fields share, and loaders. The viewer counts as active, unless an operator acts for it.
func (r *Resolver) Attach(ctx context.Context) context.Context {
	if viewer, ok := identity.Of(ctx); ok && r.Activity != nil && !viewer.Has(identity.ScopeAdmin) {
		r.Activity.Note(viewer.ID)
	}
	return prefetch.Attach(ctx, cmp.Or(r.Reads, r.Store), func() *prefetch.Operation {
		return &prefetch.Operation{Owner: r, Reads: readAhead, Hidden: r.HiddenUsers, Budget: r.Budget, Cursors: r.Cursors}
	})
}

func resolverOf(ctx context.Context) *Resolver { return prefetch.OperationOf(ctx).Owner.(*Resolver) }

// graphOf answers as far as the viewer may see.
func graphOf(ctx context.Context) (*social.Graph, error) {
	audience, err := prefetch.AudienceOf(ctx)
	return prefetch.AccessOf(ctx).Graph(loaders.For(ctx).Reader(), audience), err
}
