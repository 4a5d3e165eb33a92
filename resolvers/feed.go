package resolvers

import (
	"context"
	"math"
	"time"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
	"kith/storage/cache/idset"
)

func (r viewerFields) Feed(ctx context.Context, obj *model.Viewer, _ *int32, _, _ *string, only *model.FeedOnly) (*model.FeedConnection, error) {
	f, viewer := prefetch.Running(ctx), obj.User.UserID
	args, badPage := prefetch.ParsePage(ctx, f, cursor.Feed)
	newer, badNewer := prefetch.ParsePlace(ctx, f, cursor.Feed, "newerThan")
	if err := apierr.All(badPage, badNewer); err != nil {
		return nil, err
	}
	feed, err := r.feedOf(ctx, viewer, feedAuthorsOf(only))
	if err != nil {
		return nil, err
	}
	c := &model.FeedConnection{}
	if c.NewerThan, err = newerPosts(ctx, feed, newer); err != nil {
		return nil, err
	}
	if f.Below[0].Named("unseen") != nil {
		seen, err := r.seen(ctx, storage.Seen{User: viewer})
		if err == nil && seen > 0 {
			c.Unseen, err = newerPosts(ctx, feed, storage.Place{CreatedAt: seen, Number: math.MaxInt64})
		}
		if err != nil {
			return nil, err
		}
	}
	var page social.FeedPage
	if page.Complete = true; prefetch.PageNeedsOf(f)&fields.Rows != 0 {
		key := feedPart{feed: feed, place: args.After, size: args.Size}
		if page, err = prefetch.Shared(ctx, key, func() (social.FeedPage, error) { return feed.Page(ctx, args.After, args.Size) }); err != nil {
			return nil, err
		}
	}
	if items := f.Below[0].Items; items != nil {
		prefetch.Fetch(ctx, postRows{page.Rows, items})
	}
	rows := prefetch.PageOfPlaces(r.Cursors, cursor.Feed, page.Page, storage.Post.Place)
	rows.Complete = page.Complete
	c.Page, c.Complete = postConnection(ctx, f, rows).Page, page.Complete
	return c, nil
}

// feedPart is a page of a feed, or the posts that are newer than a place.
type feedPart struct {
	feed  *social.Feed
	place storage.Place
	size  int
	newer bool
}

// feedAuthors is whose posts a feed has: those on a list, the special follows, or all followings.
type feedAuthors struct {
	list            string
	ofList, special bool
}

func feedAuthorsOf(only *model.FeedOnly) (users feedAuthors) {
	if only == nil {
		return users
	}
	if list, _ := only.List.ValueOK(); list != nil {
		users.list, users.ofList = *list, true
	}
	special, _ := only.Special.ValueOK()
	users.special = special != nil && *special
	return users
}

// feedOf is the feed of all aliases in a request whose posts are by the same users.
func (r *Resolver) feedOf(ctx context.Context, viewer storage.UserID, users feedAuthors) (*social.Feed, error) {
	return prefetch.Shared(ctx, users, func() (*social.Feed, error) {
		g, err := graphOf(ctx)
		if err != nil {
			return nil, err
		}
		of := social.FeedOf{User: viewer, Left: prefetch.AccessOf(ctx).Left()}
		if of.Only, err = onlyOf(ctx, g, viewer, users); err != nil {
			return nil, err
		}
		if users.ofList {
			of.Opens = opensPosts
		}
		return r.Feeds.Of(ctx, g, of)
	})
}

// onlyOf reads the users on a list, or the special follows of the viewer; nil if neither is asked for.
func onlyOf(ctx context.Context, g *social.Graph, viewer storage.UserID, users feedAuthors) (func(context.Context) (*idset.Set, error), error) {
	switch {
	case users.special:
		return func(ctx context.Context) (*idset.Set, error) {
			read := loaders.Of(loaders.For(ctx), storage.SpecialLookups).Get(viewer)
			return idset.Of(read.Value), read.Err
		}, nil
	case !users.ofList:
		return nil, nil
	}
	l, err := listOf(ctx, "only", users.list)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*idset.Set, error) {
		return only(g.OnLists(ctx, []storage.ListID{l.ListID}))
	}, nil
}

// opensPosts reports which users' posts the viewer may see: members of a list need not let the viewer follow them.
func opensPosts(ctx context.Context, users []storage.UserID) ([]bool, error) {
	return prefetch.ReadOpen(ctx, storage.Each(users, social.PostsOf))
}

// newerPosts counts the posts in a feed that are newer than a place; nil if there is no place.
func newerPosts(ctx context.Context, feed *social.Feed, than storage.Place) (*model.NewerPosts, error) {
	if than == (storage.Place{}) {
		return nil, nil
	}
	return prefetch.Shared(ctx, feedPart{feed: feed, place: than, newer: true}, func() (*model.NewerPosts, error) {
		rows, more, err := feed.Newer(ctx, than)
		if err != nil {
			return nil, err
		}
		return &model.NewerPosts{Count: int32(len(rows)), HasMore: more}, nil
	})
}

func (r viewerFields) FeedSeenUpTo(ctx context.Context, obj *model.Viewer) (*time.Time, error) {
	seen, err := r.seen(ctx, storage.Seen{User: obj.User.UserID})
	if err != nil || seen == 0 {
		return nil, err
	}
	return new(seen.Time()), nil
}

func (r *Resolver) seen(ctx context.Context, what storage.Seen) (storage.Micros, error) {
	return prefetch.Shared(ctx, what, func() (storage.Micros, error) { return storage.SeenLookups.Get(ctx, r.Store, what) })
}

// MarkFeedSeen keeps the time of the post, because that is what stays when the post is gone.
func (r mutations) MarkFeedSeen(ctx context.Context, upTo string) (*model.AccountPayload, error) {
	viewer, err := r.actorOf(ctx, 1)
	return changeAccount(ctx, viewer, err, func() (bool, error) {
		var at, number int64
		if err := r.Cursors.Decode(cursor.Feed, upTo, &at, &number); err != nil {
			return false, apierr.In("upTo", err)
		}
		return r.Writes.See(ctx, storage.Seen{User: viewer}, min(storage.Micros(at), storage.MicrosOf(r.Relations.Now())))
	})
}
