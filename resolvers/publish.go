package resolvers

import (
	"cmp"
	"context"
	"errors"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

func (r mutations) PublishPost(ctx context.Context, text string, media []*model.MediaInput, attributes map[string]any, key string) (*model.PostPayload, error) {
	viewer, err := r.actorOf(ctx, 1+len(social.Mentioned(text)))
	if err != nil {
		return nil, err
	}
	files, badMedia := checkMedia(media)
	least := 1
	if len(media) > 0 {
		least = 0
	}
	text, badText := accounts.CheckText("text", text, least, storage.MaxPostLength)
	change, badAttributes := attributeChange(r.Declared.Attributes.Post, attributes)
	of, tooLong := change.Apply("")
	if err := apierr.All(badText, badMedia, badAttributes, attributesError(tooLong), accounts.CheckClientKey(key)); err != nil {
		return nil, err
	}
	post, published, err := r.Posts.Publish(ctx, viewer, storage.PostRow{Key: key, Text: text, Media: files, Attributes: of})
	if err == nil {
		err = r.mention(ctx, post, post.CreatedAt)
	}
	if err != nil {
		return nil, clientError(publishError(err))
	}
	s := payloadSelection(ctx)
	prefetch.Fetch(ctx,
		postRows{[]storage.Post{post}, append(s.of("post"), s.below("postEdge").of("node")...)},
		s.viewerObjects(viewer))
	return &model.PostPayload{
		Changed: published, Post: s.post(ctx, post, "post"), Viewer: s.showViewer(ctx, viewer),
		PostEdge: madeOne(s, "postEdge", published, func() model.PostEdge {
			return model.PostEdge{Cursor: prefetch.Spell(prefetch.Unsealed, cursor.Posts, post.Place()), Node: s.post(ctx, post, "postEdge", "node")}
		}),
	}, nil
}

var publishError = refusals{{storage.ErrPostUnknown, apierr.PostDeleted.Error("the post with this key has been deleted").In("clientKey")}}.tell

// mention tells those whom a post names. If that fails, the mutation does, and brings it about when it is sent again: the post is there then.
func (r *Resolver) mention(ctx context.Context, post storage.Post, at storage.Micros) error {
	named := social.Mentioned(post.Text)
	if len(named) == 0 {
		return nil
	}
	users, errs := social.WithHandles(ctx, loaders.For(ctx).Reader(), named)
	var others []storage.UserID
	for i, err := range errs {
		if err == nil {
			others = append(others, users[i])
		} else if !errors.Is(err, storage.ErrUserUnknown) {
			return err
		}
	}
	return r.Relations.Mention(ctx, loaders.For(ctx).Reader(), post.PostID, others, at)
}

func (r mutations) EditPost(ctx context.Context, id string, text *string, media []*model.MediaInput, attributes map[string]any) (*model.PostPayload, error) {
	var change storage.PostChange
	var badText, badMedia, badAttributes error
	if text = orRemoved(ctx, "text", text); text != nil {
		var checked string
		checked, badText = accounts.CheckText("text", *text, 0, storage.MaxPostLength)
		if _, unseen := accounts.CheckText("text", checked, 1, storage.MaxPostLength); unseen != nil {
			checked = ""
		}
		change.Text = &checked
	}
	if media != nil || isGiven(ctx, "media") {
		var files []storage.Media
		files, badMedia = checkMedia(media)
		change.Media = &files
	}
	change.Attributes, badAttributes = attributeChange(r.Declared.Attributes.Post, attributes)
	viewer, post, err := r.actorAndPost(ctx, id, 1+len(social.Mentioned(*cmp.Or(text, new(string)))), badText, badMedia, badAttributes)
	if err != nil {
		return nil, err
	}
	edited, changed, err := r.Posts.Edit(ctx, viewer, post, change)
	if err == nil && text != nil {
		err = r.mention(ctx, edited, max(edited.CreatedAt, edited.EditedAt))
	}
	if err != nil {
		if errors.Is(err, storage.ErrPostEmpty) {
			_, err = accounts.CheckText("text", "", 1, storage.MaxPostLength)
		}
		return nil, postError(attributesError(err))
	}
	s := payloadSelection(ctx)
	prefetch.Fetch(ctx,
		postRows{[]storage.Post{edited}, s.of("post")},
		s.viewerObjects(viewer))
	return &model.PostPayload{Changed: changed, Post: s.post(ctx, edited, "post"), Viewer: s.showViewer(ctx, viewer)}, nil
}

func (r mutations) DeletePost(ctx context.Context, id string) (*model.PostPayload, error) {
	viewer, post, err := r.actorAndPost(ctx, id, 1)
	if err != nil {
		return nil, err
	}
	changed, err := r.Posts.Delete(ctx, viewer, post)
	if err != nil {
		return nil, postError(err)
	}
	payload := &model.PostPayload{Changed: changed, Viewer: payloadSelection(ctx).readViewer(ctx, viewer)}
	if changed {
		payload.DeletedPostID = new((&model.Post{Row: storage.Post{PostID: post}}).ID())
	}
	return payload, nil
}

func (r mutations) AddComment(ctx context.Context, id, text, key string) (*model.CommentPayload, error) {
	text, badText := accounts.CheckText("text", text, 1, storage.MaxCommentLength)
	viewer, post, err := r.actorAndPost(ctx, id, 1, badText, accounts.CheckClientKey(key))
	if err != nil {
		return nil, err
	}
	comment, added, err := r.Posts.Comment(ctx, loaders.For(ctx).Reader(), viewer, post, key, text)
	switch {
	case errors.Is(err, storage.ErrForbidden), errors.Is(err, storage.ErrPostUnknown): // by a block: the viewer does not see the post
		return nil, noPost(ctx, post)
	case err != nil:
		return nil, postError(err)
	}
	s := payloadSelection(ctx)
	prefetch.Fetch(ctx, commentRows{[]storage.Comment{comment}, append(s.of("comment"), s.below("commentEdge").of("node")...)}, s.postObjects(post))
	return &model.CommentPayload{
		Changed: added, Comment: s.comment(ctx, comment, "comment"), Post: s.readPost(ctx, post),
		CommentEdge: madeOne(s, "commentEdge", added, func() model.CommentEdge {
			return commentEdge(comment, s.comment(ctx, comment, "commentEdge", "node"))
		}),
	}, nil
}

// DeleteComment does not tell whether there was a comment by a hidden user, or on a post of one: of a user who has been deleted there is none.
func (r mutations) DeleteComment(ctx context.Context, text string) (*model.CommentPayload, error) {
	viewer, err := r.actorOf(ctx, 1)
	if err != nil {
		return nil, err
	}
	id, err := parseNodeID("commentId", text)
	if err != nil || id.typeName != "Comment" {
		return nil, apierr.IDMalformed.Error("%q is not a comment's id", abridged(text)).In("commentId")
	}
	by := viewer
	if id.user() == viewer { // whose post it is: the comment may be somebody else's
		by = loaders.Of(loaders.For(ctx), storage.CommentLookups).Get(id.comment()).Value.By
	}
	post, err := r.Posts.Store.DeleteComment(ctx, id.comment(), viewer)
	if err != nil {
		return nil, clientError(err)
	}
	payload := &model.CommentPayload{}
	if post != (storage.PostID{}) && !prefetch.IsAbsent(ctx, post.Author) && !prefetch.IsAbsent(ctx, by) {
		s := payloadSelection(ctx)
		prefetch.Fetch(ctx, s.postObjects(post))
		payload.Changed, payload.Post, payload.DeletedCommentID = true, s.readPost(ctx, post), new((&model.Comment{Row: storage.Comment{CommentID: id.comment()}}).ID())
	}
	return payload, nil
}

// postObjects is what the field `post` needs.
func (s selection) postObjects(id storage.PostID) postIDs {
	if !s.has("post") {
		return postIDs{}
	}
	return postIDs{[]storage.PostID{id}, s.of("post")}
}

// readPost is the post of the field `post`, which has been fetched; nil if it is not selected, or gone, or hidden from the viewer.
func (s selection) readPost(ctx context.Context, id storage.PostID) *model.Post {
	if !s.has("post") {
		return nil
	}
	a, err := prefetch.AudienceOf(ctx)
	if err == nil {
		err = postErr(ctx, a, id)
	}
	if err != nil {
		prefetch.FailAt(ctx, s.at(ctx, "post")(0), err)
		return nil
	}
	for _, row := range visiblePosts(ctx, a, []storage.PostID{id}) {
		return s.post(ctx, row, "post")
	}
	return nil
}

// actorAndPost are the viewer, who is about to change some objects, and the post.
func (r *Resolver) actorAndPost(ctx context.Context, text string, objects int, more ...error) (viewer storage.UserID, post storage.PostID, err error) {
	if viewer, err = r.actorOf(ctx, objects); err != nil {
		return 0, post, err
	}
	id, err := parseNodeID("postId", text)
	if err != nil || id.typeName != "Post" {
		err = apierr.IDMalformed.Error("%q is not a post's id", abridged(text)).In("postId")
	}
	return viewer, id.post(), allOf(append(more, err))
}

var errNoPost = apierr.PostNotFound.Error("there is no such post").In("postId")

// noPost says that there is no such post for the viewer, and notices why, if somebody asks.
func noPost(ctx context.Context, post storage.PostID) error {
	if a, err := prefetch.AudienceOf(ctx); err == nil && prefetch.AccessOf(ctx).IsAsked() {
		_ = prefetch.AccessOf(ctx).FetchShown(a, []storage.UserID{post.Author})
	}
	return errNoPost
}

var ofPosts = refusals{
	{storage.ErrForbidden, apierr.NotYours.Error("this post is another user's").In("postId")},
	{storage.ErrPostUnknown, errNoPost},
}

// postError is [clientError] for changes of posts.
func postError(err error) error { return clientError(ofPosts.tell(err)) }

func checkMedia(given []*model.MediaInput) ([]storage.Media, error) {
	if len(given) > storage.MaxMedia {
		return nil, accounts.ErrMedia
	}
	files := model.StoredMedia(given)
	return files, accounts.CheckMedia(files)
}

func (s selection) post(ctx context.Context, row storage.Post, names ...string) *model.Post {
	return one(ctx, s, func(on []*selections.Object, at prefetch.Paths) []*model.Post {
		return postsOf(ctx, []storage.Post{row}, on, at)
	}, names...)
}

// comment is nil also if its writer no longer exists.
func (s selection) comment(ctx context.Context, row storage.Comment, names ...string) *model.Comment {
	return one(ctx, s, func(on []*selections.Object, at prefetch.Paths) []*model.Comment {
		return commentsOf(ctx, []storage.Comment{row}, on, at)
	}, names...)
}
