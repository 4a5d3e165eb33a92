// Package model holds the schema's types as Go values. Everything that a value needs from the store
// has been read before it is made: its methods only convert.
package model

import (
	"math"
	"time"

	"kith/storage"
)

// User is a user, read as far as the query selects.
type User struct {
	UserID storage.UserID
	Row    storage.User                   // zero when no field of it is selected
	Counts storage.Result[storage.Counts] // zero when no count is selected

	Viewers  *Relationship          // of the viewer to it; nil unless selected, and for the viewer
	IsViewer bool                   // false unless selected
	Friends  storage.Result[*int32] // how many it has; nil unless selected, and open to the viewer
}

func (*User) IsNode() {}

func (u *User) ID() string           { return u.UserID.String() }
func (u *User) Handle() string       { return u.Row.Handle }
func (u *User) Name() string         { return u.Row.Name }
func (u *User) Bio() *string         { return optional(u.Row.Bio) }
func (u *User) AvatarURL() *string   { return optional(u.Row.AvatarURL) }
func (u *User) Website() *string     { return optional(u.Row.Website) }
func (u *User) CreatedAt() time.Time { return u.Row.CreatedAt.Time() }
func (u *User) Locked() bool         { return u.Row.Locked }

func (u *User) Attributes() storage.Attributes { return u.Row.Attributes }

// The counts fail when the user's shard did not answer, and FriendCount also when it is not known whether its lists are open.

func (u *User) PostCount() (int32, error)              { return u.count(u.Counts.Value.Posts) }
func (u *User) FavoritesGivenCount() (int32, error)    { return u.count(u.Counts.Value.Favorites) }
func (u *User) FavoritesReceivedCount() (int32, error) { return u.count(u.Counts.Value.Favorited) }
func (u *User) FollowingCount() (int32, error)         { return u.count(u.Counts.Value.Following) }
func (u *User) FollowerCount() (int32, error)          { return u.count(u.Counts.Value.Follower) }
func (u *User) FriendCount() (*int32, error)           { return u.Friends.Value, u.Friends.Err }

func (u *User) count(n int64) (int32, error) { return CountOf(n), u.Counts.Err }

// CountOf is a count as GraphQL has it: an Int has 32 bits, and the posts of a famous user may have been favorited more often than that.
func CountOf(n int64) int32 { return int32(min(n, math.MaxInt32)) }

// ListVisibility says who may see the user's lists.
func (u *User) ListVisibility() *ListVisibility {
	return &ListVisibility{Followings: visibility(u.Row.FollowingsVisibility), Followers: visibility(u.Row.FollowersVisibility)}
}

func visibility(v storage.Visibility) Visibility {
	switch v {
	case storage.ToEveryone:
		return VisibilityEveryone
	case storage.ToFollowers:
		return VisibilityFollowers
	}
	return VisibilityNobody
}

// optional is a text, nil for an empty one.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// moment is a time, nil for 0.
func moment(at storage.Micros) *time.Time {
	if at == 0 {
		return nil
	}
	return new(at.Time())
}
