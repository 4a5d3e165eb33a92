package resolvers

import (
	"context"

	"kith/graph/fields"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// postList names a page of a user's posts.
type postList struct {
	author storage.UserID
	page   placePage
}

// commentList names a page of the comments on a post.
type commentList struct {
	post storage.PostID
	page placePage
}

// postReads is what one level asks about posts.
type postReads struct {
	nodes []wanted // posts and comments by their ids

	lists    []postsListed
	comments []commentsListed

	askedNodes    *loaders.Asked[storage.PostID, storage.Post]
	askedComments *loaders.Asked[storage.CommentID, storage.Comment]
	askedLists    *loaders.Asked[storage.PostsQuery, []storage.Post]
	askedBelow    *loaders.Asked[storage.CommentsQuery, []storage.Comment]
}

type postsListed struct {
	*selections.Field
	postList
}

type commentsListed struct {
	*selections.Field
	commentList
}

// addPosts adds what the fields of posts that have been read need. Their authors are read in
// the same level.
func (b *batch) addPosts(ctx context.Context, rows []storage.Post, on []*selections.Object) {
	for _, f := range fieldsOn(on) {
		switch f.Ahead {
		case fields.Author:
			b.addUsers(ctx, wanted{users: distinctOf(authorsOf(rows)), exist: true, on: f.Below})
		case fields.Comments:
			if args, err := argument[placePage](stateOf(ctx), f); err == nil {
				for _, row := range rows {
					b.posts.comments = append(b.posts.comments, commentsListed{f, commentList{row.PostID, args}})
				}
			}
		case fields.HasFavorited:
			for _, row := range rows {
				if pair, signedIn := favoriteOf(ctx, row.PostID); signedIn {
					b.edges[storage.Favorites] = append(b.edges[storage.Favorites], pair)
				}
			}
		case fields.FavoritedBy:
			if args, err := argument[placePage](stateOf(ctx), f); err == nil {
				for _, row := range rows {
					b.favorites.by = append(b.favorites.by, favoritedByListed{f, favoritedByList{row.PostID, args}})
				}
			}
		}
	}
}

// distinctOf lists ids, each once.
func distinctOf(ids []storage.UserID) []storage.UserID {
	var each distinct
	for _, id := range ids {
		each.add(id, struct{}{})
	}
	return each.keys
}

// ask lists the questions of a level.
func (p *postReads) ask(l *loaders.Loaders) (asked []loaders.Question) {
	var posts []storage.PostID
	var comments []storage.CommentID
	for _, w := range p.nodes {
		posts, comments = append(posts, w.postIDs...), append(comments, w.comments...)
	}
	if len(posts) > 0 {
		p.askedNodes = l.Posts().Ask(posts)
		asked = append(asked, p.askedNodes)
	}
	if len(comments) > 0 {
		p.askedComments = l.Comments().Ask(comments)
		asked = append(asked, p.askedComments)
	}
	if len(p.lists) > 0 {
		queries := make([]storage.PostsQuery, len(p.lists))
		for i, list := range p.lists {
			queries[i] = storage.PostsQuery{Author: list.author, After: list.page.after, Limit: list.page.asked()}
		}
		p.askedLists = l.PostPages().Ask(queries)
		asked = append(asked, p.askedLists)
	}
	if len(p.comments) > 0 {
		queries := make([]storage.CommentsQuery, len(p.comments))
		for i, list := range p.comments {
			queries[i] = storage.CommentsQuery{Post: list.post, After: list.page.after, Limit: list.page.asked()}
		}
		p.askedBelow = l.CommentPages().Ask(queries)
		asked = append(asked, p.askedBelow)
	}
	return asked
}

// showPosts keeps the posts and comments that have been read and that the audience may see, and
// adds what is below them to the next level.
func (b *batch) showPosts(ctx context.Context, a *social.Audience) {
	l, p := loaders.For(ctx), &b.posts
	for _, w := range p.nodes {
		b.next = append(b.next, wanted{posts: visiblePosts(ctx, a, w.postIDs), on: w.on})
		b.addWriters(visibleComments(ctx, a, w.comments), w.on)
	}
	if p.askedLists != nil {
		for i, r := range p.askedLists.Results() {
			p.show(ctx, l, a, p.lists[i], r)
			if page, ok := kept(stateOf(ctx), &stateOf(ctx).posts, p.lists[i].postList); ok && p.lists[i].Below[0].Items != nil {
				b.next = append(b.next, wanted{posts: page.Value.Rows, on: p.lists[i].Below[0].Items})
			}
		}
	}
	if p.askedBelow != nil {
		for i, r := range p.askedBelow.Results() {
			b.addWriters(p.showComments(ctx, l, a, p.comments[i], r).Rows, p.comments[i].Below[0].Items)
		}
	}
}

// show keeps a page of a user's posts.
func (p *postReads) show(ctx context.Context, l *loaders.Loaders, a *social.Audience, list postsListed, read storage.Result[[]storage.Post]) {
	if a.Hides(list.author) {
		return
	}
	page, err := a.ShowPosts(read.Value, list.page.asked(), list.page.size, func(after storage.Place, limit int) ([]storage.Post, error) {
		r := l.PostPages().Get(storage.PostsQuery{Author: list.author, After: after, Limit: limit})
		return r.Value, r.Err
	})
	if read.Err != nil {
		err = read.Err
	}
	request := stateOf(ctx)
	request.mu.Lock()
	defer request.mu.Unlock()
	request.posts.put(list.postList, storage.Result[social.Page[storage.Post]]{Value: page, Err: err})
}

// showComments keeps a page of comments.
func (p *postReads) showComments(ctx context.Context, l *loaders.Loaders, a *social.Audience, list commentsListed, read storage.Result[[]storage.Comment]) social.Page[storage.Comment] {
	page, err := a.ShowComments(read.Value, list.page.asked(), list.page.size, func(after storage.Place, limit int) ([]storage.Comment, error) {
		r := l.CommentPages().Get(storage.CommentsQuery{Post: list.post, After: after, Limit: limit})
		return r.Value, r.Err
	})
	if read.Err != nil {
		err = read.Err
	}
	request := stateOf(ctx)
	request.mu.Lock()
	defer request.mu.Unlock()
	request.comments.put(list.commentList, storage.Result[social.Page[storage.Comment]]{Value: page, Err: err})
	return page
}

// addWriters has the writers of comments read: comments of writers who do not exist are left out.
func (b *batch) addWriters(rows []storage.Comment, on []*selections.Object) {
	if len(rows) == 0 {
		return
	}
	by := make([]storage.UserID, len(rows))
	for i, row := range rows {
		by[i] = row.By
	}
	b.next = append(b.next, wanted{users: distinctOf(by), exist: true, on: belowOf(aheadOn(fieldsOn(on), fields.Author, storage.Forward))})
}

// visiblePosts are the posts that exist and that the audience may see. All of the ids have been
// fetched.
func visiblePosts(ctx context.Context, a *social.Audience, ids []storage.PostID) (rows []storage.Post) {
	for _, id := range ids {
		if r := loaders.For(ctx).Posts().Load(id); r.Found && !a.Hides(id.Author) {
			rows = append(rows, r.Value)
		}
	}
	return rows
}

// visibleComments are the comments that the audience may see: neither the writer nor the author of
// the post is hidden.
func visibleComments(ctx context.Context, a *social.Audience, ids []storage.CommentID) (rows []storage.Comment) {
	for _, id := range ids {
		if r := loaders.For(ctx).Comments().Load(id); r.Found && !a.Hides(id.Author) && !a.Hides(r.Value.By) {
			rows = append(rows, r.Value)
		}
	}
	return rows
}
