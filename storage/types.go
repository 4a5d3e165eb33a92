package storage

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A UserID is a positive integer, 1 … [MaxUserID]. Greater ones are [Foreign] ends.
type UserID int64

// String returns the canonical decimal text of the id. The user's bucket is computed from this
// text.
func (id UserID) String() string { return strconv.FormatInt(int64(id), 10) }

// Micros is a point in time in microseconds since the Unix epoch, UTC: the resolution of the
// tables.
type Micros int64

// MicrosOf converts a time and drops what is finer than a microsecond.
func MicrosOf(t time.Time) Micros { return Micros(t.UnixMicro()) }

// Time converts back, in UTC.
func (m Micros) Time() time.Time { return time.UnixMicro(int64(m)).UTC() }

// Day is a number of days since 1970-01-01, UTC.
type Day int32

// Day is the day of the time.
func (m Micros) Day() Day { return Day(m / (24 * 3600 * 1_000_000)) }

// User is one row of `users`, without its password hash.
type User struct {
	ID        UserID
	Handle    string // [a-z0-9_]{1,30}
	Name      string // at most MaxNameLength characters
	Bio       string // empty: none
	AvatarURL string // empty: none
	Website   string // empty: none
	CreatedAt Micros
	UpdatedAt Micros

	FollowingsVisibility Visibility // who may see whom the user follows
	FollowersVisibility  Visibility // who may see who follows the user
	Undiscoverable       bool       // never suggested to anybody
	Locked               bool       // follows wait for its approval; its lists, favorites and posts are for its followers

	Attributes Attributes
}

// ProfileChange holds the new values; nil leaves a value as it is.
type ProfileChange struct {
	Name, Bio, AvatarURL, Website *string

	FollowingsVisibility, FollowersVisibility *Visibility
	Undiscoverable, Locked                    *bool

	Attributes AttributeChange
}

// Attributes are values that a product keeps beside a user, a post or a follow, by their names: a JSON object with ascending names
// and without blanks, of at most [MaxAttributes] bytes; empty for none. Stores neither read nor search them.
type Attributes string

// AttributeChange is new values by name, as JSON. A null removes a value; a name that is left out leaves it as it is.
type AttributeChange map[string]json.RawMessage

// A UserText is a text that users write about themselves. [UserTexts] are all: stores, caches, moves, exports, imports and checks
// know nothing else of them, so that a new one is a field of [User] and [ProfileChange], and a line in each of the three lists below.
type UserText struct {
	Column  string   // of the table, and of users files
	Field   string   // of the schema, and in messages
	Least   int      // characters
	Most    int      // characters
	IsName  bool     // people are told apart by it
	Schemes []string // of an address; nil: it is none
}

// UserTexts are the texts of users besides the handle, in the order in which bytes and files have them.
var UserTexts = [...]UserText{
	{Column: "name", Field: "name", Least: 1, Most: MaxNameLength, IsName: true},
	{Column: "bio", Field: "bio", Most: 500},
	{Column: "avatar_url", Field: "avatarUrl", Most: 500, Schemes: []string{"https"}},
	{Column: "website", Field: "website", Most: 500, Schemes: []string{"https", "http"}},
}

// Texts are the [UserTexts] of a user.
func (u *User) Texts() [len(UserTexts)]*string {
	return [...]*string{&u.Name, &u.Bio, &u.AvatarURL, &u.Website}
}

// Texts are the [UserTexts] of a change.
func (c *ProfileChange) Texts() [len(UserTexts)]**string {
	return [...]**string{&c.Name, &c.Bio, &c.AvatarURL, &c.Website}
}

// Limits of handles, which are ASCII, and of names, in characters.
const (
	MaxHandleLength = 30
	MaxNameLength   = 100
)

// Apply changes a user accordingly, except UpdatedAt. [ErrAttributesTooLong].
func (c ProfileChange) Apply(to *User) (err error) {
	texts := to.Texts()
	for i, text := range c.Texts() {
		set(texts[i], *text)
	}
	set(&to.FollowingsVisibility, c.FollowingsVisibility)
	set(&to.FollowersVisibility, c.FollowersVisibility)
	set(&to.Undiscoverable, c.Undiscoverable)
	set(&to.Locked, c.Locked)
	to.Attributes, err = c.Attributes.Apply(to.Attributes)
	return err
}

func set[V any](to, value *V) {
	if value != nil {
		*to = *value
	}
}

// ListVisibility says who may see the user's list on a side, and on [FavoriteInbox] its posts and favorites. Lists
// of a locked user are never for everyone.
func (u User) ListVisibility(side Side) Visibility {
	least := ToEveryone
	if u.Locked {
		least = ToFollowers
	}
	switch side {
	case Forward:
		return max(u.FollowingsVisibility, least)
	case Inverse:
		return max(u.FollowersVisibility, least)
	}
	return least
}

// Visibility says who may see one of a user's lists, besides the user.
type Visibility uint8

const (
	ToEveryone  Visibility = 0
	ToFollowers Visibility = 1 // to those who follow the user
	ToNobody    Visibility = 2
)

// Counts is one row of `user_counts`. Of edges only those of type [Following] count.
type Counts struct {
	Following int64
	Follower  int64
	Friend    int64 // mutual follows: both halves of each are on the user's own shard
	Posts     int64
	Favorites int64 // posts that the user has favorited, including posts deleted since
	Favorited int64 // how often the user's posts have been favorited, without deleted posts
	Version   int64 // rises with every change of the user's edges, requests, favorites, posts or profile
}

// Of returns how many edges of type [Following], or [Favorited], the user has on the given side.
func (c Counts) Of(side Side) int64 {
	switch side {
	case Inverse:
		return c.Follower
	case Favorites:
		return c.Favorites
	case FavoriteInbox:
		return c.Favorited
	}
	return c.Following
}

// EdgeType says what `from` does towards `to`. The types exclude each other.
type EdgeType uint8

// The types of edges in `following` and `follower`.
const (
	None      EdgeType = 0 // a tombstone: the edge was ended; kept so that late events can be ordered
	Following EdgeType = 1
	Blocking  EdgeType = 2
	Requested EdgeType = 3 // a follow that waits for the approval of To, a locked user
	Denied    EdgeType = 4 // a tombstone, too: of a follow that To has not approved
)

// HasEnded reports, of an edge in `following` or `follower`, that its row is a tombstone.
func (t EdgeType) HasEnded() bool { return t == None || t == Denied }

// The types of edges in `friend_request` and `friend_request_inbox`: the states of a friend
// request. [None] is a request of a user who has been deleted.
const (
	Pending   EdgeType = 1
	Accepted  EdgeType = 2
	Declined  EdgeType = 3
	Cancelled EdgeType = 4 // by From, or by a block
	Removed   EdgeType = 5 // From has ended the friendship
)

// The types of edges that name an item, besides tombstones.
const (
	Favorited EdgeType = 1
	Related   EdgeType = 1

	// Mentioned is an edge of the Favorites side from the author of a post to another user, whom the post names: nobody counts it.
	Mentioned EdgeType = 2
)

// Edge is one directed relation: between two users, from a user to a post of another, or of a declared kind.
type Edge struct {
	From, To   UserID
	Item       int64 // the number of To's post, or of From's if it is [Mentioned], or of the kind; 0 on the [Sides] of users
	Type       EdgeType
	UpdateTime Micros // moves only when Type changes: the list's sort key and the edge's version
}

// Mix turns a row into 64 bits: the product of two remainders below 2^32, each of all its fields.
// With two moduli, one accidental damage in 2^64 goes unnoticed. A remainder and a product are not
// linear functions of the bits, as a CRC is: with a linear function, an exclusive or would not see
// damage that comes in pairs. The primes are not near each other or near a power of two: otherwise,
// a difference that is a multiple of one of them would hardly change the remainder of the other.
//
// One factor shifts To and the other From, so that no other pair gives both; the constant keeps the
// factors of small numbers from being small. A post goes into both, rotated in one, so that no other
// post of another user gives the same.
func (e Edge) Mix() uint64 {
	from, to, post, at := uint64(e.From), uint64(e.To), uint64(e.Item), uint64(e.UpdateTime)
	a := (from ^ to<<21 ^ post<<32 ^ post>>32 ^ at ^ 7640891576956012809) % 4093082899
	b := (to ^ from<<13 ^ post ^ at<<7 ^ uint64(e.Type)<<50) % 3367900313
	return a * b
}

// Pair names the edge From → To, or from From to a post of To, or of a kind.
type Pair struct {
	From, To UserID
	Item     int64 // as of an [Edge]
}

// Pair names the edge.
func (e Edge) Pair() Pair { return Pair{e.From, e.To, e.Item} }

// Edge is an edge that the pair names.
func (p Pair) Edge(kind EdgeType, at Micros) Edge { return Edge{p.From, p.To, p.Item, kind, at} }

// PostID names the post of a favorite.
func (p Pair) PostID() PostID { return PostID{p.To, p.Item} }

// Side names one of the tables of edges. Tables come in pairs: the forward table is the source of
// truth, sharded by the user whom an edge leaves; the inverse table is its pseudo-replica, sharded
// by the user whom it enters.
type Side uint8

const (
	Forward       Side = iota // `following`
	Inverse                   // `follower`
	Requests                  // `friend_request`, the forward table of the second pair
	Inbox                     // `friend_request_inbox`, its inverse
	Favorites                 // `favorite`, the forward table of the third pair
	FavoriteInbox             // `favorite_inbox`, its inverse
	Relations                 // `relation`, the forward table of the fourth pair: edges of all declared kinds
	RelationInbox             // `relation_inbox`, its inverse
)

// Sides lists the tables of edges between two users, forward before inverse.
var Sides = [...]Side{Forward, Inverse, Requests, Inbox}

// AllSides lists all tables of edges: those of [Sides], favorites, whose edges name a post, and relations, whose edges name a kind.
var AllSides = [...]Side{Forward, Inverse, Requests, Inbox, Favorites, FavoriteInbox, Relations, RelationInbox}

// Truths lists the forward tables, in the order in which their rows are propagated.
var Truths = [...]Side{Forward, Requests, Favorites, Relations}

// String returns the name of the side's table.
func (s Side) String() string {
	return [...]string{"following", "follower", "friend_request", "friend_request_inbox", "favorite", "favorite_inbox", "relation", "relation_inbox"}[s]
}

// HasItem reports whether the side's edges name an item: a post, or the number of a kind. Between two users there may be several.
func (s Side) HasItem() bool { return s >= Favorites }

// Item is the column of the item, "" if there is none.
func (s Side) Item() string {
	switch {
	case s >= Relations:
		return "kind"
	case s >= Favorites:
		return "post_id"
	}
	return ""
}

// IsInverse reports whether the side is the replica of its pair.
func (s Side) IsInverse() bool { return s&1 == 1 }

// Truth is the forward table of the side's pair, Replica the inverse one.
func (s Side) Truth() Side   { return s &^ 1 }
func (s Side) Replica() Side { return s | 1 }

// Other is the other table of the pair.
func (s Side) Other() Side { return s ^ 1 }

// Owner is the user on whose shard the side keeps the edge.
func (s Side) Owner(p Pair) UserID {
	if s.IsInverse() {
		return p.To
	}
	return p.From
}

// Peer is the other end of the edge.
func (s Side) Peer(p Pair) UserID {
	if s.IsInverse() {
		return p.From
	}
	return p.To
}

// Pair is the edge between an owner and a peer, as the side sees them.
func (s Side) Pair(owner, peer UserID) Pair {
	if s.IsInverse() {
		return Pair{From: peer, To: owner}
	}
	return Pair{From: owner, To: peer}
}

// Compare orders pairs as the key of the side's table does: by owner, then by peer, then by post.
func (s Side) Compare(a, b Pair) int {
	return cmp.Or(cmp.Compare(s.Owner(a), s.Owner(b)), cmp.Compare(s.Peer(a), s.Peer(b)), cmp.Compare(a.Item, b.Item))
}

// Row is an edge in one of the tables.
type Row struct {
	Side Side
	Edge Edge
}

// Position is where an edge is in a list that runs newest first: by UpdateTime descending, then by the
// peer's id descending. It stays valid after its row is gone.
type Position struct {
	UpdateTime Micros
	Peer       UserID
}

// Position is the position of an edge in its owner's list.
func (s Side) Position(e Edge) Position {
	return Position{e.UpdateTime, s.Peer(e.Pair())}
}

// PageQuery asks for a range of one owner's list, newest first. Its zero bounds are open. It is
// comparable, so that it can be a loader's key.
type PageQuery struct {
	Owner    UserID
	Item     int64    // only edges that name this item; 0 on the [Sides] of users
	Type     EdgeType // of the edges; 0 stands for 1, [Following] or [Pending]
	Limit    int      // how many edges at most, ≥ 1
	After    Position // only edges strictly behind it (older), unless zero
	Before   Position // only edges strictly ahead of it (newer), unless zero
	Backward bool     // take the Limit edges at the far end of the range; they still come newest first
}

// RowsQuery asks for the next rows of one owner in one table, in ascending order of the peer's id, and
// then of the post's number.
type RowsQuery struct {
	Side  Side
	Owner UserID
	After UserID // only peers with a greater id; 0 starts at the beginning
	Item  int64  // of edges that name one: also those of After with a greater item
	Limit int    // how many rows at most, ≥ 1

	// Any asks for whichever rows are found soonest, however many others have ended, behind the first Skip instead of behind After. They ascend as
	// well. On sides whose edges name a kind Skip changes nothing, and those that have ended come, too: a page may have nothing else.
	Any  bool
	Skip int
}

// Rule says when an edge may overwrite a row.
type Rule uint8

const (
	IfNewer  Rule = iota // no such row, or UpdateTime is greater than the row's
	IfAbsent             // no such row, not even a tombstone
)

// Written is a forward row that has been written. It still has to be propagated to its other side,
// unless that was written in the same transaction.
type Written struct {
	Row
	Inverse bool // the other side was written too
	Again   bool // it was there before, so that no log tells of it
}

// ShardHealth is one shard's answer to a ping.
type ShardHealth struct {
	Shard int    // ordinal, from 0
	Name  string // server and database, or file; never credentials
	Err   error  // nil when it answered
}

// Compare orders positions as lists run, newest first: negative when p comes
// before q in a list.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(q.UpdateTime, p.UpdateTime); c != 0 {
		return c
	}
	return cmp.Compare(q.Peer, p.Peer)
}

// FoldHandle converts a handle as a user typed it to its stored form: ASCII letters in lower case.
// (strings.ToLower would turn the Kelvin sign into a k.)
func FoldHandle(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, text)
}

// ValidHandle reports whether a folded handle may be stored: [a-z0-9_]{1,30}.
func ValidHandle(handle string) bool {
	return handle != "" && len(handle) <= MaxHandleLength &&
		strings.Trim(handle, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// ImportedHandle is the handle of a user of whom only the id is known.
func (id UserID) ImportedHandle() string { return "u" + id.String() }

// MayUse reports whether the user may use a handle: only the user with that id may use one of the form of [UserID.ImportedHandle].
func (id UserID) MayUse(handle string) bool {
	digits, ok := strings.CutPrefix(handle, "u")
	return !ok || digits == "" || strings.Trim(digits, "0123456789") != "" || id > 0 && handle == id.ImportedHandle()
}

// Each lists what f makes of each element of a list, in its order.
func Each[T, U any](list []T, f func(T) U) []U {
	made := make([]U, len(list))
	for i, one := range list {
		made[i] = f(one)
	}
	return made
}

// Indexes lists 0 … n−1.
func Indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// Filter lists the elements that are wanted, in their order.
func Filter[T any](list []T, wanted func(T) bool) (some []T) {
	for _, one := range list {
		if wanted(one) {
			some = append(some, one)
		}
	}
	return some
}

// Distinct sorts a list in place, and returns it with each element once.
func Distinct[T cmp.Ordered](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}

// Chosen lists the elements at some indexes, in their order.
func Chosen[T any](list []T, at []int) []T { return Each(at, func(i int) T { return list[i] }) }
