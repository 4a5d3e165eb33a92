package resolvers

import (
	"context"
	"errors"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/storage"
)

func (r mutations) PublishPost(ctx context.Context, text string, media []*model.MediaInput, attributes map[string]any, key string) (*model.PostPayload, error) {
	viewer, err := r.actorOf(ctx, 1)
	if err != nil {
		return nil, err
	}
	if err := accounts.CheckClientKey(key); err != nil {
		return nil, err
	}
	files, err := checkMedia(media)
	if err != nil {
		return nil, err
	}
	least := 1
	if len(files) > 0 {
		least = 0
	}
	if text, err = accounts.CheckText("text", text, least, storage.MaxPostLength); err != nil {
		return nil, err
	}
	change, err := attributeChange(r.Declared.Attributes.Post, attributes)
	if err != nil {
		return nil, err
	}
	of, err := change.Apply("")
	if err != nil {
		return nil, attributesError(err)
	}
	post, published, err := r.Posts.Publish(ctx, viewer, storage.NewPost{Key: key, Text: text, Media: files, Attributes: of})
	if errors.Is(err, storage.ErrPostUnknown) {
		return nil, apierr.PostDeleted.Error("the post with this key has been deleted").In("clientKey")
	}
	if err != nil {
		return nil, clientError(err)
	}
	s := payloadSelection(ctx)
	prefetch.Fetch(ctx,
		postRows{[]storage.Post{post}, s.of("post")},
		s.viewerObjects(ctx, viewer, true))
	return &model.PostPayload{Changed: published, Post: s.post(ctx, post), Viewer: s.showViewer(ctx, viewer, true)}, nil
}

func (r mutations) EditPost(ctx context.Context, id string, text *string, media []*model.MediaInput, attributes map[string]any) (*model.PostPayload, error) {
	viewer, post, err := r.actorAndPost(ctx, id)
	if err != nil {
		return nil, err
	}
	var change storage.PostChange
	if text = orRemoved(ctx, "text", text); text != nil {
		checked, err := accounts.CheckText("text", *text, 0, storage.MaxPostLength)
		if err != nil {
			return nil, err
		}
		if _, unseen := accounts.CheckText("text", checked, 1, storage.MaxPostLength); unseen != nil {
			checked = ""
		}
		change.Text = &checked
	}
	if media != nil || isGiven(ctx, "media") {
		files, err := checkMedia(media)
		if err != nil {
			return nil, err
		}
		change.Media = &files
	}
	if change.Attributes, err = attributeChange(r.Declared.Attributes.Post, attributes); err != nil {
		return nil, err
	}
	edited, changed, err := r.Posts.Edit(ctx, viewer, post, change)
	if err != nil {
		if errors.Is(err, storage.ErrPostEmpty) {
			_, err = accounts.CheckText("text", "", 1, storage.MaxPostLength)
		}
		return nil, postError(attributesError(err))
	}
	s := payloadSelection(ctx)
	prefetch.Fetch(ctx,
		postRows{[]storage.Post{edited}, s.of("post")},
		s.viewerObjects(ctx, viewer, true))
	return &model.PostPayload{Changed: changed, Post: s.post(ctx, edited), Viewer: s.showViewer(ctx, viewer, true)}, nil
}

func (r mutations) DeletePost(ctx context.Context, id string) (*model.PostPayload, error) {
	viewer, post, err := r.actorAndPost(ctx, id)
	if err != nil {
		return nil, err
	}
	changed, err := r.Posts.Delete(ctx, viewer, post)
	if err != nil {
		return nil, postError(err)
	}
	return &model.PostPayload{Changed: changed, Viewer: payloadSelection(ctx).readViewer(ctx, viewer)}, nil
}

func (r mutations) AddComment(ctx context.Context, id, text, key string) (*model.CommentPayload, error) {
	viewer, post, err := r.actorAndPost(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := accounts.CheckClientKey(key); err != nil {
		return nil, err
	}
	if text, err = accounts.CheckText("text", text, 1, storage.MaxCommentLength); err != nil {
		return nil, err
	}
	comment, added, err := r.Posts.Comment(ctx, loaders.For(ctx).Reader(), viewer, post, key, text)
	switch {
	case errors.Is(err, storage.ErrForbidden): // by a block: the viewer does not see the post
		return nil, errNoPost
	case err != nil:
		return nil, postError(err)
	}
	s := payloadSelection(ctx)
	payload := &model.CommentPayload{Changed: added}
	prefetch.Fetch(ctx, prefetch.Users{IDs: []storage.UserID{viewer}, Exist: true, On: s.below("comment").of("author")}, s.postObjects(post))
	if s.has("comment") {
		for _, c := range commentsOf(ctx, []storage.Comment{comment}, s.of("comment"), prefetch.Here(ctx, s.key("comment"))) {
			payload.Comment = c
		}
	}
	payload.Post = s.readPost(ctx, post)
	return payload, nil
}

func (r mutations) DeleteComment(ctx context.Context, text string) (*model.CommentPayload, error) {
	viewer, err := r.actorOf(ctx, 1)
	if err != nil {
		return nil, err
	}
	id, err := parseNodeID("commentId", text)
	if err != nil || id.typeName != "Comment" {
		return nil, apierr.IDMalformed.Error("%q is not a comment's id", abridged(text)).In("commentId")
	}
	post, err := r.Posts.Uncomment(ctx, viewer, id.comment())
	if err != nil {
		return nil, clientError(err)
	}
	payload := &model.CommentPayload{}
	if post != (storage.PostID{}) {
		s := payloadSelection(ctx)
		prefetch.Fetch(ctx, s.postObjects(post))
		payload.Changed, payload.Post = true, s.readPost(ctx, post)
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
		prefetch.FailAt(ctx, prefetch.Here(ctx, s.key("post"))(0), err)
		return nil
	}
	for _, row := range visiblePosts(ctx, a, []storage.PostID{id}) {
		return s.post(ctx, row)
	}
	return nil
}

// actorAndPost are the viewer, who is about to change something, and the post.
func (r *Resolver) actorAndPost(ctx context.Context, text string) (viewer storage.UserID, post storage.PostID, err error) {
	if viewer, err = r.actorOf(ctx, 1); err != nil {
		return 0, post, err
	}
	id, err := parseNodeID("postId", text)
	if err != nil || id.typeName != "Post" {
		return 0, post, apierr.IDMalformed.Error("%q is not a post's id", abridged(text)).In("postId")
	}
	return viewer, id.post(), nil
}

var errNoPost = apierr.PostNotFound.Error("there is no such post")

// postError turns the refusal of a change of a post into the client's error.
func postError(err error) error {
	switch {
	case errors.Is(err, storage.ErrForbidden):
		return apierr.NotYours.Error("this post is another user's")
	case errors.Is(err, storage.ErrPostUnknown):
		return errNoPost
	}
	return clientError(err)
}

func checkMedia(given []*model.MediaInput) ([]storage.Media, error) {
	if len(given) > storage.MaxMedia {
		return nil, accounts.ErrMedia
	}
	files := model.StoredMedia(given)
	return files, accounts.CheckMedia(files)
}

// post makes the post of a payload, which has been fetched; nil if it is not selected.
func (s selection) post(ctx context.Context, row storage.Post) *model.Post {
	if !s.has("post") {
		return nil
	}
	return postsOf(ctx, []storage.Post{row}, s.of("post"), prefetch.Here(ctx, s.key("post")))[0]
}
