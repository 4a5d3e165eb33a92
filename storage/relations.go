package storage

// Kinds of look-ups of what is stored beside the edges of a user, on the user's own shard.
var (
	// BlockLookups lists the users whom a user blocks or who block it, ascending, each once. Every user
	// is Found.
	BlockLookups = NewKind[UserID, []UserID]("blocks", ofUser)

	// EdgeCountLookups counts edges of an owner without reading them all. Every query is Found.
	EdgeCountLookups = bySide[EdgeCountQuery, int](Sides[:], "edgecounts", func(_ Side, q EdgeCountQuery) UserID { return q.Owner })

	// MarkLookups reads the marks of users on those they follow. A follow that has no mark and never ended is not Found.
	MarkLookups = NewKind[Pair, EdgeMark]("marks", ofFirst)

	// SpecialLookups lists the special follows of each user, ascending. Every user is Found.
	SpecialLookups = NewKind[UserID, []UserID]("specials", ofUser)

	// MessageLookups reads the messages of pending requests. A request without a message is not Found.
	MessageLookups = NewKind[Pair, string]("messages", ofFirst)
)

// EdgeCountQuery asks for a number of edges. It is comparable, so that it can be a loader's key.
type EdgeCountQuery struct {
	Owner UserID
	Type  EdgeType // 0 stands for 1, as in [PageQuery]
	Since Micros   // only edges newer than this; 0 is open
	Limit int      // count up to this, ≥ 1
}

// EdgeMark is a user's private note on a user it follows. It is stored beside the edge and not in
// it, so that a new mark does not move the edge in lists.
type EdgeMark struct {
	Special bool
	Remark  string // at most MaxRemarkLength characters

	Attributes Attributes

	// FirstAt is when the user first followed the other; 0 if this follow is the first. It stays when the follow ends, and nobody sets it.
	FirstAt Micros
}

// MarkChange holds the new values; nil leaves a value as it is.
type MarkChange struct {
	Special    *bool
	Remark     *string
	Attributes AttributeChange
}

// Bounds on marks.
const (
	MaxRemarkLength = 100  // characters
	MaxSpecials     = 1000 // special follows of one user
)

// SeenLookups reads the times of the newest that users have seen of something; 0 if there is none. Everything is Found. No cache keeps it.
var SeenLookups = NewKind[Seen, Micros]("seen", nil)

// Seen is something of which a user is told what is new: posts of the home feed, or its activity, which is what others have done that
// concerns the user.
type Seen struct {
	User     UserID
	Activity bool
}

// AnnotationKind is a kind of rows beside edges. Each row has the key of two users, and belongs to
// From.
type AnnotationKind uint8

const (
	AnnotationMark    AnnotationKind = iota // the mark on the follow From → To
	AnnotationMessage                       // the message of the pending request From → To
	AnnotationFirst                         // the first follow From → To, where it is not the last one
)

// AnnotationKinds are all of them.
var AnnotationKinds = [...]AnnotationKind{AnnotationMark, AnnotationMessage, AnnotationFirst}

// An Annotation is a row of one kind beside edges.
type Annotation struct {
	Pair
	Special bool   // of a mark
	Text    string // the remark of a mark, or the message
	At      Micros // of a first follow

	Attributes Attributes // of a mark
}
