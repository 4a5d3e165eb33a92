package model

import (
	"time"

	"kith/storage"
)

// Relationship is the relation of one user to another: the edges in both directions, read on the
// first user's shard.
type Relationship struct {
	Pair storage.Pair
	Out  storage.Edge // Pair.From → Pair.To, from `following`
	Back storage.Edge // Pair.To → Pair.From, from `follower`

	From *User // nil unless selected, or unknown
	To   *User

	IsViewers bool // Pair.From is the viewer

	// Only Pair.From sees these; nil unless selected.
	Mark            *storage.EdgeMark
	Mute            *Mute // also nil if nothing is muted
	SentRequest     *Request
	ReceivedRequest *Request
}

func (*Relationship) IsNode() {}

func (r *Relationship) ID() string {
	return "rel_" + r.Pair.From.String() + "_" + r.Pair.To.String()
}

func (r *Relationship) Following() bool  { return r.Out.Type == storage.Following }
func (r *Relationship) FollowedBy() bool { return r.Back.Type == storage.Following }

func (r *Relationship) FollowedAt() *time.Time   { return since(r.Out) }
func (r *Relationship) FollowedByAt() *time.Time { return since(r.Back) }

// Only Pair.From sees Blocking and BlockedBy.
func (r *Relationship) Blocking() *bool  { return r.private(r.Out.Type == storage.Blocking) }
func (r *Relationship) BlockedBy() *bool { return r.private(r.Back.Type == storage.Blocking) }

// Only Pair.From sees FollowRequested and FollowRequestedBy.
func (r *Relationship) FollowRequested() *bool   { return r.private(r.Out.Type == storage.Requested) }
func (r *Relationship) FollowRequestedBy() *bool { return r.private(r.Back.Type == storage.Requested) }

// Special is nil unless the mark has been read.
func (r *Relationship) Special() *bool {
	if r.Mark == nil {
		return nil
	}
	return &r.Mark.Special
}

// Remark is nil if there is none.
func (r *Relationship) Remark() *string {
	if r.Mark == nil {
		return nil
	}
	return optional(r.Mark.Remark)
}

// A Mute is what a user leaves out of another.
type Mute struct {
	Scope  MuteScope
	EndsAt storage.Micros // 0: never
}

// Muted is nil if nothing is.
func (r *Relationship) Muted() *MuteScope {
	if r.Mute == nil {
		return nil
	}
	return &r.Mute.Scope
}

// MutedUntil is nil for never.
func (r *Relationship) MutedUntil() *time.Time {
	if r.Mute == nil {
		return nil
	}
	return moment(r.Mute.EndsAt)
}

// FirstFollowedAt is nil unless the mark has been read, and there is a follow.
func (r *Relationship) FirstFollowedAt() *time.Time {
	if r.Mark == nil {
		return nil
	}
	first := r.Out
	if r.Mark.FirstAt != 0 {
		first.UpdateTime = r.Mark.FirstAt
	}
	return since(first)
}

// Attributes is nil unless the mark has been read.
func (r *Relationship) Attributes() *storage.Attributes {
	if r.Mark == nil {
		return nil
	}
	return &r.Mark.Attributes
}

func (r *Relationship) private(value bool) *bool {
	if !r.IsViewers {
		return nil
	}
	return &value
}

func (r *Relationship) Status() FollowStatus {
	switch {
	case r.Following() && r.FollowedBy():
		return FollowStatusMutual
	case r.Following():
		return FollowStatusFollowing
	case r.FollowedBy():
		return FollowStatusFollowedBy
	}
	return FollowStatusNone
}

// since is when an edge began; nil unless it is a follow.
func since(e storage.Edge) *time.Time {
	if e.Type != storage.Following {
		return nil
	}
	return new(e.UpdateTime.Time())
}
