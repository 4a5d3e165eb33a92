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
const knownFollowers = 400

// Both lists of a user are read whole, also those of the famous: 190 µs on average without caches, and some ms. Pages of one list are one whole.
const ownLists = 550

// Up to 10,000 users of a list are looked up by their names or counts: 10 to 25 ms for a list that many have, whether it is in memory or not.
const chosenUsers = 25_000

// The lists of followings, up to a quarter of a budget of rows, are read and counted: 40 ms without caches. A query has one such answer.
const friendsOfFriends = 51_000

// The followers of all followings are counted, and the lists of a hundred users.
const audience = 5000

// A page is found, checked against who is hidden, and made, whatever is selected of it.
const pageOfList = 25

var user = Type{Name: "User", Is: []string{"Node", "_Entity"}, Fields: map[string]*Field{
	"id":        {Value: id(func(u *model.User) storage.UserID { return u.UserID })},
	"handle":    {Needs: Row, Value: text((*model.User).Handle)},
	"name":      {Needs: Row, Value: text((*model.User).Name)},
	"bio":       {Needs: Row, Value: optionalText((*model.User).Bio), Weight: 10}, // about a unit for every hundred bytes
	"avatarUrl": {Needs: Row, Value: optionalText((*model.User).AvatarURL), Weight: 5},
	"website":   {Needs: Row, Value: optionalText((*model.User).Website), Weight: 5},
	"createdAt": {Needs: Row, Value: moment((*model.User).CreatedAt)},

	"followingCount": {Needs: Counts, Value: number((*model.User).FollowingCount)},
	"followerCount":  {Needs: Counts | Inverse, Value: number((*model.User).FollowerCount)},
	"friendCount":    {Needs: Friends | Counts | Inverse | bothOpen, Value: optionalOrFails((*model.User).FriendCount, appendInt[int32])},

	"listVisibility": {Needs: Row, Value: object((*model.User).ListVisibility)},
	"attributes":     {Needs: Row, Weight: 10, Value: attributes(func(u *model.User) *storage.Attributes { return &u.Row.Attributes })}, // as a bio
	"locked":         {Needs: Row, Value: boolean((*model.User).Locked)},

	"followings":       {Weight: pageOfList, Chosen: chosenUsers},
	"followers":        {Needs: Inverse, Weight: pageOfList, Chosen: chosenUsers},
	"friends":          {Needs: Counts | Inverse | bothOpen, Weight: ownLists, Chosen: chosenUsers},
	"notFollowingBack": {Needs: Counts | Inverse | bothOpen, Weight: ownLists},
	"notFollowedBack":  {Needs: Counts | Inverse | bothOpen, Weight: ownLists},

	"relationship":       {Weight: 10},
	"viewerRelationship": {Needs: SignedIn, Value: object(func(u *model.User) *model.Relationship { return u.Viewers })},
	"isViewer":           {Value: boolean(func(u *model.User) bool { return u.IsViewer })},

	"commonFollowings": {Needs: Counts | OpenFollowings, Weight: setAlgebra, Chosen: 4 * setAlgebra},
	"commonFollowers":  {Needs: Counts | OpenFollowers | Inverse, Weight: setAlgebra, Chosen: 4 * setAlgebra},
	"followersYouKnow": {Needs: Counts | Inverse | OpenFollowers | SignedIn, Weight: knownFollowers},

	// Friends of friends: the lists of all followings are read, even if the page is empty.
	"followSuggestions": {Needs: OpenFollowings, Weight: friendsOfFriends, Chosen: audience},
	"edges":             {Needs: Row | Inverse, Weight: pageOfList},
	"similarUsers":      {Needs: OpenFollowers | Inverse, Weight: audience},

	"lists": {Weight: pageOfList},

	"postCount": {Needs: Counts, Value: number((*model.User).PostCount)},
	"posts":     {Weight: 50},

	"favoritesGivenCount":    {Needs: Counts, Value: number((*model.User).FavoritesGivenCount)},
	"favoritesReceivedCount": {Needs: Counts | Inverse, Value: number((*model.User).FavoritesReceivedCount)},
	"favorites":              {Weight: pageOfList},
}}

var listVisibility = Type{Name: "ListVisibility", Fields: map[string]*Field{
	"followings": {Value: text(func(v *model.ListVisibility) model.Visibility { return v.Followings })},
	"followers":  {Value: text(func(v *model.ListVisibility) model.Visibility { return v.Followers })},
}}
