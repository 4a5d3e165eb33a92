package model

// FollowOutcome is what has become of one of many changes towards users.
type FollowOutcome struct {
	UserID       string // as given
	Changed      bool
	User         *User
	Relationship *Relationship

	// The edge that was made, in the list that it belongs to; nil if none was.
	FollowingEdge, FollowerEdge, BlockEdge, MuteEdge, MemberEdge *UserEdge
	RequestEdge                                                  *RequestEdge

	Error *FollowError
}
