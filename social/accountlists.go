package social

import (
	"cmp"
	"context"
	"encoding/csv"
	"iter"
	"math"
	"slices"
	"strings"

	"kith/graph/declared"
	"kith/storage"
)

// AccountsKind is what a list of accounts is of: a file of another network, Mastodon's above all, that one brings along.
type AccountsKind string

// The kinds.
const (
	AccountFollows AccountsKind = "FOLLOWS" // following_accounts.csv, or a handle a line
	AccountBlocks  AccountsKind = "BLOCKS"  // blocked_accounts.csv
	AccountMutes   AccountsKind = "MUTES"   // muted_accounts.csv
	AccountLists   AccountsKind = "LISTS"   // lists.csv
)

// An Account is a line of a list of accounts.
type Account struct {
	Line      int    // from 1
	Handle    string // folded; a text that is no handle is as it is, and belongs to nobody
	PostsOnly bool   // of [AccountMutes]: notifications are not hidden
	List      string // of [AccountLists]: the name of the list
}

// ReadAccounts reads a list of accounts: a CSV whose first column, or second one of [AccountLists], is an address, with or without an @
// before and a host behind (alice@example.org, alice.bsky.social). Mastodon's headers, empty lines and those that begin with #, unless that is in
// the name of a list, are left out.
func ReadAccounts(kind AccountsKind, text string) iter.Seq[Account] {
	return func(yield func(Account) bool) {
		n := 0
		for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
			n++
			columns := append(columnsOf(strings.TrimSpace(line)), "")
			isName := kind == AccountLists && len(columns) > 2 // which is of any form
			if columns[0] == "" && len(columns) == 2 || !isName && (strings.HasPrefix(columns[0], "#") || columns[0] == "Account address") {
				continue
			}
			a := Account{Line: n}
			switch kind {
			case AccountLists:
				a.List, columns = columns[0], columns[1:]
			case AccountMutes:
				a.PostsOnly = strings.EqualFold(columns[1], "false")
			}
			handle := strings.TrimPrefix(columns[0], "@")
			if end := strings.IndexAny(handle, "@."); end >= 0 {
				handle = handle[:end]
			}
			a.Handle = storage.FoldHandle(handle)
			if !yield(a) {
				return
			}
		}
	}
}

// columnsOf are the columns of a line, at least one. A line that is no CSV is parted at its commas.
func columnsOf(line string) []string {
	columns := strings.Split(line, ",")
	if strings.Contains(line, `"`) {
		r := csv.NewReader(strings.NewReader(line))
		r.LazyQuotes = true
		if read, err := r.Read(); err == nil {
			columns = read
		}
	}
	return storage.Each(columns, strings.TrimSpace)
}

// WithHandles reads who has some handles; [storage.ErrUserUnknown] where nobody has.
func WithHandles(ctx context.Context, people storage.Answerer, handles []string) (users []storage.UserID, errs []error) {
	claims := storage.HandleLookups.Read(ctx, people, handles...)
	users = storage.Each(claims, func(r storage.Result[storage.UserID]) storage.UserID { return r.Value })
	errs = make([]error, len(handles))
	for i, u := range storage.UserLookups.Read(ctx, people, users...) {
		if errs[i] = cmp.Or(claims[i].Err, u.Err); errs[i] == nil && (!u.Found || u.Value.Handle != handles[i]) { // claimed in vain
			errs[i] = storage.ErrUserUnknown
		}
	}
	return users, errs
}

// listNamed is the list of a name among those of a user, one that the user alone sees before a public one. If there is none, it is made for the user
// alone.
func (t *Relations) listNamed(ctx context.Context, store storage.Store, user storage.UserID, name string, among []storage.UserList) (storage.UserList, error) {
	is := func(public bool) func(storage.UserList) bool {
		return func(l storage.UserList) bool { return l.Name == name && l.Public == public }
	}
	if at := slices.IndexFunc(among, is(true)); at >= 0 && !slices.ContainsFunc(among, is(false)) {
		return among[at], nil
	}
	list, _, err := store.CreateList(ctx, storage.UserList{ListID: storage.ListID{Owner: user, Number: int64(t.at())}, Name: name})
	return list, gone(user, err)
}

// Bring does with others what lines of a list of accounts say. Each has its own outcome, in their order, as of [WithHandles], of checkName, which
// checks the names of lists, and of [Relations.Follow], [Relations.BlockMany] or [Relations.Relate]. A list of that name is made, for the user
// alone, unless there is one. err is set if the user itself is unknown, or its shard did not answer.
func (t *Relations) Bring(
	ctx context.Context, store storage.Store, user storage.UserID, kind AccountsKind, lines []Account, checkName func(string) (string, error),
) (others []storage.UserID, changed []storage.Result[storage.Changed], stale bool, err error) {
	others, errs := WithHandles(ctx, store, storage.Each(lines, func(a Account) string { return a.Handle }))
	changed = make([]storage.Result[storage.Changed], len(lines))
	kinds := make(map[Account]declared.Kind) // by what lines of one kind have in common; of follows and blocks, none
	of := make(map[declared.Kind][]int)
	var order []declared.Kind
	var lists []storage.UserList
	if kind == AccountLists {
		if lists, err = storage.ListLookups.Get(ctx, store, storage.ListsQuery{Owner: user, UpTo: math.MaxInt64, Limit: storage.MaxLists}); err != nil {
			return others, changed, false, err
		}
	}
	for i, a := range lines {
		if errs[i] == nil && t.HiddenUsers.Has(others[i]) { // no list is made for who does not exist
			errs[i] = unknown(others[i])
		}
		if changed[i].Err = errs[i]; errs[i] == nil && kind == AccountLists {
			a.List, changed[i].Err = checkName(a.List)
		}
		if changed[i].Err != nil {
			continue
		}
		what := Account{List: a.List, PostsOnly: a.PostsOnly}
		related, known := kinds[what]
		switch {
		case known, kind == AccountFollows, kind == AccountBlocks:
		case kind == AccountLists:
			list, err := t.listNamed(ctx, store, user, a.List, lists)
			if changed[i].Err = err; err != nil {
				continue
			}
			related = declared.Members(list.ListID)
		case a.PostsOnly:
			related = declared.PostMutes
		default:
			related = declared.Mutes
		}
		if kinds[what] = related; of[related] == nil {
			order = append(order, related)
		}
		of[related] = append(of[related], i)
	}
	for _, related := range order {
		at := of[related]
		var made []storage.Result[storage.Changed]
		var lags bool
		switch some := storage.Chosen(others, at); kind {
		case AccountFollows:
			made, lags, err = t.Follow(ctx, store, user, some)
		case AccountBlocks:
			made, lags, err = t.BlockMany(ctx, store, user, some)
		default:
			made, lags = t.Relate(ctx, store, user, related, some, storage.DetailChange{})
		}
		for k, i := range at {
			changed[i] = made[k]
		}
		stale = stale || lags
	}
	return others, changed, stale, err
}
