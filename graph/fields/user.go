package fields

import (
	"kith/graph/model"
	"kith/storage"
)

// bothOpen: whether both lists of a user are open.
const bothOpen = OpenFollowings | OpenFollowers

// Set algebra reads up to thousands of rows for a page: a quarter of a millisecond without caches
// if users follow 50, as long as 130 plain values take.
const setAlgebra = 100

// The followers whom the viewer follows are matched, and all of them ranked: up to half a millisecond and 0.2 MB without caches.
const knownFollowers = 250

// Both lists of a user are read whole, also those of the famous: 190 µs on average without caches, and some ms. Pages of one list are one whole.
const ownLists = 250

// Up to 10,000 users of a list are looked up by their names or counts: 10 to 25 ms for a list that many have, whether it is in memory or not.
const chosenUsers = 25_000

// The lists of thousands of followings, up to half a budget, are read and counted: 70 ms without caches. A query has one such answer.
const friendsOfFriends = 51_000

// The followers of all followings are counted, and the lists of a hundred users.
const audience = 5000

// A page is found, checked against who is hidden, and made, whatever is selected of it.
const pageOfList = 15

var user = Type{Name: "User", Is: []string{"Node", "_Entity"}, Fields: map[string]*Field{
	"id":        {Value: id(func(u *model.User) storage.UserID { return u.UserID })},
	"handle":    {Needs: Row, Value: text((*model.User).Handle)},
	"name":      {Needs: Row, Value: text((*model.User).Name)},
	"bio":       {Needs: Row, Value: optionalText((*model.User).Bio), Weight: 10}, // about a unit for every hundred bytes
	"avatarUrl": {Needs: Row, Value: optionalText((*model.User).AvatarURL), Weight: 5},
	"createdAt": {Needs: Row, Value: moment((*model.User).CreatedAt)},

	"followingCount": {Needs: Counts, Value: number((*model.User).FollowingCount)},
	"followerCount":  {Needs: Counts | Inverse, Value: number((*model.User).FollowerCount)},
	"friendCount":    {Ahead: FriendCount, Needs: Counts | Inverse | bothOpen, Value: optionalNumber((*model.User).FriendCount)},

	"listVisibility": {Needs: Row, Value: object((*model.User).ListVisibility)},
	"attributes":     {Needs: Row, Weight: 10, Value: attributes(func(u *model.User) *storage.Attributes { return &u.Row.Attributes })}, // as a bio
	"locked":         {Needs: Row, Value: boolean((*model.User).Locked)},

	"followings":       {Ahead: List, Side: storage.Forward, Weight: pageOfList, Chosen: chosenUsers},
	"followers":        {Ahead: List, Side: storage.Inverse, Needs: Inverse, Weight: pageOfList, Chosen: chosenUsers},
	"friends":          {Ahead: BothLists, Needs: Counts | Inverse | bothOpen, Weight: ownLists, Chosen: chosenUsers},
	"notFollowingBack": {Ahead: BothLists, Needs: Counts | Inverse | bothOpen, Weight: ownLists},
	"notFollowedBack":  {Ahead: BothLists, Needs: Counts | Inverse | bothOpen, Weight: ownLists},

	"relationship":       {Ahead: Towards, Weight: 10},
	"viewerRelationship": {Ahead: FromViewer, Needs: SignedIn, Value: object(func(u *model.User) *model.Relationship { return u.Viewers })},

	"commonFollowings": {Ahead: Common, Side: storage.Forward, Needs: Counts | OpenFollowings, Weight: setAlgebra, Chosen: 4 * setAlgebra},
	"commonFollowers":  {Ahead: Common, Side: storage.Inverse, Needs: Counts | OpenFollowers | Inverse, Weight: setAlgebra, Chosen: 4 * setAlgebra},
	"followersYouKnow": {Ahead: Known, Needs: Counts | Inverse | OpenFollowers | SignedIn, Weight: knownFollowers},

	// Friends of friends: the lists of all followings are read, even if the page is empty.
	"followSuggestions": {Ahead: Suggestions, Needs: OpenFollowings, Weight: friendsOfFriends, Chosen: audience},
	"edges":             {Ahead: Related, Needs: Row | Inverse, Weight: pageOfList},
	"similarUsers":      {Ahead: Similar, Needs: OpenFollowers | Inverse, Weight: audience},

	"lists": {Ahead: Lists, Weight: pageOfList},

	"postCount": {Needs: Counts, Value: number((*model.User).PostCount)},
	"posts":     {Ahead: Posts, Weight: 50},

	"favoriteCount":  {Needs: Counts, Value: number((*model.User).FavoriteCount)},
	"totalFavorited": {Needs: Counts | Inverse, Value: number((*model.User).TotalFavorited)},
	"favorites":      {Ahead: Favorites, Weight: pageOfList},
}}

var listVisibility = Type{Name: "ListVisibility", Fields: map[string]*Field{
	"followings": {Value: text(func(v *model.ListVisibility) model.Visibility { return v.Followings })},
	"followers":  {Value: text(func(v *model.ListVisibility) model.Visibility { return v.Followers })},
}}
