package storage

// DetailChange is another end of a relation, and new values of its attributes.
type DetailChange struct {
	EndsAt     Micros // 0: never
	Attributes AttributeChange
}

// Apply returns a detail after a change. [ErrAttributesTooLong].
func (c DetailChange) Apply(to Detail) (Detail, error) {
	attributes, err := c.Attributes.Apply(to.Attributes)
	return Detail{EndsAt: c.EndsAt, Attributes: attributes}, err
}

// Detail is what is stored with a relation, beside the forward row.
type Detail struct {
	EndsAt     Micros // when it ends by itself; 0: never
	Attributes Attributes
}

// DueLookups lists relations of a shard that come to an end until a time, the earliest first, without their attributes. Every query is
// Found.
var DueLookups = NewKind[ShardQuery[RelationRow], []RelationRow]("relations.due", nil)

// RelationRow is a relation with its detail.
type RelationRow struct {
	Edge
	Detail
}

// Kinds of look-ups of what is stored beside relations, on the shards of their owners.
var (
	// DetailLookups reads those of relations that have any. A relation without is not Found.
	DetailLookups = NewKind[Pair, Detail]("details", ofFirst)

	// KindLookups counts the edges of kinds. Every query is Found.
	KindLookups = NewKind[OwnerKind, KindCount]("kinds", nil)
)

// foreignBit is set in ids of what is not a user.
const foreignBit UserID = 1 << 62

// MaxUserID is the greatest id of a user, and of what is not one.
const MaxUserID = foreignBit - 1

// Foreign is the end of relations that lead to something else than a user, such as a show of a product: from its id, 1 …
// [MaxUserID], which may be that of a user, too. It owns rows and counts as a user does.
func Foreign(id int64) UserID { return UserID(id) | foreignBit }

// ForeignID is the id of such an end.
func (id UserID) ForeignID() int64 { return int64(id &^ foreignBit) }

// OwnerKind names the edges of a kind that leave or enter an owner. It is comparable.
type OwnerKind struct {
	Owner UserID
	Kind  int64
}

// KindCount is how many edges of a kind leave and enter an owner.
type KindCount struct{ Outgoing, Incoming int64 }
