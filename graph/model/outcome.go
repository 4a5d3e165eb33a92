package model

// FollowOutcome is what has become of one of many changes towards users: also, as an ImportOutcome, of a line of a file of accounts.
type FollowOutcome struct {
	UserID       string // as given
	Line         int32  // of a file, from 1
	Handle       string // on that line
	Changed      bool
	User         *User
	Relationship *Relationship

	// The edge that was made, in the list that it belongs to; nil if none was.
	FollowingEdge, FollowerEdge, BlockEdge, MuteEdge, MemberEdge *UserEdge
	RequestEdge                                                  *RequestEdge

	Error *FollowError
}
