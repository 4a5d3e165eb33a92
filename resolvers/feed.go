package resolvers

import (
	"context"

	"kith/graph/cursor"
	"kith/graph/model"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

func (r viewerFields) Feed(ctx context.Context, obj *model.Viewer, _ *int32, _, _ *string) (*model.FeedConnection, error) {
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
	c := &model.FeedConnection{}
	if newer != (storage.Place{}) {
		rows, more, err := r.Feeds.Newer(ctx, g, viewer, newer)
		if err != nil {
			return nil, err
		}
		c.NewerThan = &model.NewerPosts{Count: int32(len(rows)), HasMore: more}
	}
	var page social.FeedPage
	if page.Complete = true; pageNeedsOf(f).rows {
		if page, err = r.Feeds.Page(ctx, g, viewer, args.after, args.size); err != nil {
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
