package judge

import (
	"fmt"
	"slices"

	"kith/storage"
)

// MayPublish returns [storage.ErrUserUnknown] for a user who is being deleted.
func MayPublish(author storage.UserID, state storage.UserState) error {
	if state >= storage.Deleting {
		return fmt.Errorf("%w: %s", storage.ErrUserUnknown, author)
	}
	return nil
}

// MayComment decides on the shard of a post's author, whose rows towards the other user and back are
// known: [storage.ErrForbidden] if one of the two blocks the other.
func (j *Judge) MayComment(author, by storage.UserID) error {
	if author != by && j.blocked(author, by) {
		return forbidden(storage.Pair{From: by, To: author})
	}
	return nil
}

// MayDeleteComment reports whether a user has written the comment, or the post that it is on.
func MayDeleteComment(c storage.Comment, by storage.UserID) bool { return by == c.By || by == c.Author }

// EditPost changes a post, and reports whether anything is different afterwards. [storage.ErrAttributesTooLong];
// [storage.ErrPostEmpty].
func EditPost(p storage.Post, change storage.PostChange, at storage.Micros) (edited storage.Post, changed bool, err error) {
	edited = p
	if change.Text != nil {
		edited.Text = *change.Text
	}
	if change.Media != nil {
		edited.Media = *change.Media
	}
	if edited.Text == "" && len(edited.Media) == 0 && (change.Text != nil || change.Media != nil) {
		return p, false, fmt.Errorf("%w: %d of user %s", storage.ErrPostEmpty, p.Number, p.Author)
	}
	edited.Attributes, err = change.Attributes.Apply(p.Attributes)
	if err != nil || edited.Text == p.Text && edited.Attributes == p.Attributes && slices.Equal(edited.Media, p.Media) {
		return p, false, err
	}
	edited.EditedAt = max(at, p.CreatedAt, p.EditedAt+1)
	edited.Counts.Version++
	return edited, true, nil
}
