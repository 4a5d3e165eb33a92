package resolvers

import (
	"context"
	"math"
	"time"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/loaders"
	"kith/social"
	"kith/storage"
	"kith/storage/cache/idset"
)

func (r viewerFields) Feed(ctx context.Context, obj *model.Viewer, _ *int32, _, _, list *string, special bool) (*model.FeedConnection, error) {
	f, l, viewer := planned(ctx), loaders.For(ctx), obj.User.UserID
	args, err := pageOf(ctx, f, cursor.Feed)
	if err != nil {
		return nil, err
	}
	newer, err := placeOf(ctx, f, cursor.Feed, "newerThan")
	if err != nil {
		return nil, err
	}
	g, err := r.graph(ctx, l.Reader())
	if err != nil {
		return nil, err
	}
	c, of := &model.FeedConnection{}, social.FeedOf{User: viewer}
	if of.Only, err = r.onlyOf(ctx, g, viewer, list, special); err != nil {
		return nil, err
	}
	if c.NewerThan, err = r.newerPosts(ctx, g, of, newer); err != nil {
		return nil, err
	}
	if f.Below[0].Named("unseen") != nil {
		seen, err := r.feedSeen(ctx, viewer)
		if err == nil && seen > 0 {
			c.Unseen, err = r.newerPosts(ctx, g, of, storage.Place{CreatedAt: seen, Number: math.MaxInt64})
		}
		if err != nil {
			return nil, err
		}
	}
	var page social.FeedPage
	if page.Complete = true; pageNeedsOf(f).rows {
		if page, err = r.Feeds.Page(ctx, g, of, args.after, args.size); err != nil {
			return nil, err
		}
	}
	if items := f.Below[0].Items; items != nil {
		fetch(ctx, wanted{posts: page.Rows, on: items})
	}
	posts := r.postConnection(ctx, f, cursor.Feed, page.Page)
	c.Edges, c.Nodes, c.PageInfo, c.Complete = posts.Edges, posts.Nodes, posts.PageInfo, page.Complete
	return c, nil
}

// onlyOf are the users on a list, or the special follows of the viewer; nil if neither is asked for.
func (r *Resolver) onlyOf(ctx context.Context, g *social.Graph, viewer storage.UserID, list *string, special bool) (*idset.Set, error) {
	switch {
	case special && list != nil:
		return nil, apierr.InvalidValue.Error("list and special cannot be given together").In("special")
	case special:
		read := loaders.For(ctx).Specials().Get(viewer)
		return idset.Of(read.Value), read.Err
	case list == nil:
		return nil, nil
	}
	l, err := listOf(ctx, "list", *list)
	if err != nil {
		return nil, err
	}
	sets, err := g.OnLists(ctx, []storage.ListID{l.ListID})
	if err != nil {
		return nil, err
	}
	return openPosts(ctx, sets[0].IDs())
}

// openPosts are those of some users whose posts the viewer may see: members of a list need not let the viewer follow them.
func openPosts(ctx context.Context, users []storage.UserID) (*idset.Set, error) {
	open, err := readOpen(ctx, storage.Each(users, social.PostsOf))
	var shown []storage.UserID
	for i, is := range open {
		if is {
			shown = append(shown, users[i])
		}
	}
	return idset.Of(shown), err
}

// newerPosts counts the posts in a feed that are newer than a place; nil if there is no place.
func (r *Resolver) newerPosts(ctx context.Context, g *social.Graph, of social.FeedOf, than storage.Place) (*model.NewerPosts, error) {
	if than == (storage.Place{}) {
		return nil, nil
	}
	rows, more, err := r.Feeds.Newer(ctx, g, of, than)
	if err != nil {
		return nil, err
	}
	return &model.NewerPosts{Count: int32(len(rows)), HasMore: more}, nil
}

func (r viewerFields) FeedSeenUpTo(ctx context.Context, obj *model.Viewer) (*time.Time, error) {
	seen, err := r.feedSeen(ctx, obj.User.UserID)
	if err != nil || seen == 0 {
		return nil, err
	}
	at := seen.Time()
	return &at, nil
}

func (r *Resolver) feedSeen(ctx context.Context, viewer storage.UserID) (storage.Micros, error) {
	type key struct{}
	return shared(ctx, key{}, func() (storage.Micros, error) { return r.FeedSeen.FeedSeen(ctx, viewer) })
}

// MarkFeedSeen keeps the time of the post, because that is what stays when the post is gone.
func (r mutations) MarkFeedSeen(ctx context.Context, upTo string) (*model.AccountPayload, error) {
	viewer, err := r.actorOf(ctx, 1)
	if err != nil {
		return nil, err
	}
	var at, number int64
	if err := r.Cursors.Decode(cursor.Feed, upTo, &at, &number); err != nil {
		return nil, apierr.In("upTo", err)
	}
	changed, err := r.FeedSeen.SeeFeed(ctx, viewer, min(storage.Micros(at), storage.MicrosOf(r.Relations.Now())))
	if err != nil {
		return nil, viewerGone(err)
	}
	return accountPayload(ctx, viewer, changed), nil
}
