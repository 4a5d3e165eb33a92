package resolvers

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/graph/consistency"
	"kith/graph/limits"
	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

// listsAtOnce is how many lists one file names, or a page of one holds: each takes a statement or two.
const listsAtOnce = 20

func (r mutations) ImportAccounts(ctx context.Context, of model.AccountsKind, file string) (*model.ImportAccountsPayload, error) {
	kind := social.AccountsKind(of)
	var lines []social.Account
	names := make(map[string]bool)
	for line := range social.ReadAccounts(kind, file) {
		lines, names[line.List] = append(lines, line), true
		if len(lines) > limits.MaxIDs {
			return nil, apierr.TooLong.Error("the file names more than %d users", limits.MaxIDs).In("file")
		}
		if len(names) > listsAtOnce {
			return nil, apierr.TooLong.Error("the file names more than %d lists", listsAtOnce).In("file")
		}
	}
	viewer, err := r.actorOf(ctx, len(lines))
	if err != nil {
		return nil, err
	}
	handles := storage.Each(lines, func(a social.Account) string { return a.Handle })
	find := usersByHandle(ctx, handles)
	list := prefetch.ParseInputs(storage.Indexes(len(lines)), func(i int) (id storage.UserID, err error) {
		if kind == social.AccountLists {
			lines[i].List, err = accounts.CheckName("file", lines[i].List, 1, storage.MaxListName)
		}
		if err == nil {
			id, err = find(handles[i])
		}
		return id, err
	})
	good := make([]social.Account, len(list.Good))
	for i := range good {
		good[i] = lines[list.Index(i)]
	}
	changed, stale, err := r.Relations.Bring(ctx, loaders.For(ctx).Reader(), r.Writes, viewer, kind, good, list.Good)
	if err != nil {
		return nil, viewerGone(err)
	}
	var outcomes []*model.FollowOutcome
	var self *model.Viewer
	switch kind {
	case social.AccountFollows, social.AccountBlocks:
		for i := range changed {
			if kind == social.AccountBlocks {
				changed[i].Err = blockError(changed[i].Err)
			}
		}
		outcomes, self = r.followed(ctx, viewer, "file", list, handles, changed, stale)
	default:
		for i := range changed {
			changed[i].Err = relationError(changed[i].Err)
		}
		r.await(ctx, done{token: consistency.Beside(viewer), stale: stale}, false) // nobody reads the inverse side of these
		outcomes, self = r.outcomes(ctx, viewer, "file", list, handles, changed, madeBy(changed))
	}
	for i, o := range outcomes {
		o.Line, o.Handle = int32(lines[i].Line), abridged(handles[i])
	}
	return &model.ImportAccountsPayload{Viewer: self, Outcomes: outcomes}, nil
}

// accountSource is one list of which a file of accounts is made. before and behind are the columns beside the address.
type accountSource struct {
	number         int64 // sources come by descending number
	list           ownList
	before, behind []string
}

// accountSources are those of a kind of file from a number on, at most listsAtOnce and one more, and its header.
func (r *Resolver) accountSources(ctx context.Context, viewer storage.UserID, kind social.AccountsKind, from int64) (header []string, sources []accountSource, err error) {
	switch kind {
	case social.AccountFollows:
		header = []string{"Account address", "Show boosts", "Notify on new posts", "Languages"}
		sources = []accountSource{{list: ownList{side: storage.Forward, owner: viewer, kind: storage.Following}, behind: []string{"true", "false", ""}}}
	case social.AccountBlocks:
		sources = []accountSource{{list: ownList{side: storage.Forward, owner: viewer, kind: storage.Blocking}}}
	case social.AccountMutes:
		header = []string{"Account address", "Hide notifications"}
		sources = []accountSource{
			{number: 1, list: edgesFrom(storage.Mutes.Number, viewer), behind: []string{"true"}},
			{number: 0, list: edgesFrom(storage.PostMutes.Number, viewer), behind: []string{"false"}},
		}
	case social.AccountLists:
		lists := loaders.Of(loaders.For(ctx), storage.ListLookups).Get(storage.ListsQuery{Owner: viewer, UpTo: from, Limit: listsAtOnce + 1})
		for _, l := range lists.Value {
			sources = append(sources, accountSource{number: l.Number, list: membersOf(l.ListID), before: []string{l.Name}})
		}
		err = lists.Err
	}
	return header, slices.DeleteFunc(sources, func(s accountSource) bool { return s.number > from }), err
}

func (r viewerFields) AccountsFile(ctx context.Context, obj *model.Viewer, of model.AccountsKind, after *string) (*model.AccountsFile, error) {
	kind, viewer := social.AccountsKind(of), obj.User.UserID
	audience, err := prefetch.AudienceOf(ctx)
	if kind == social.AccountBlocks { // it is there to show users in a block
		audience = social.NewAudience(viewer, r.HiddenUsers, nil)
	}
	from, args := int64(math.MaxInt64), prefetch.PageArguments{Size: limits.MaxIDs}
	if after != nil && err == nil {
		number, text, _ := strings.Cut(*after, ".")
		if from, err = strconv.ParseInt(number, 10, 64); err != nil {
			err = apierr.CursorMalformed.Error("%q is not a cursor", abridged(*after)).In("after")
		}
		args.Text = text
	}
	if err != nil {
		return nil, err
	}
	header, sources, err := r.accountSources(ctx, viewer, kind, from)
	if err != nil {
		return nil, err
	}
	file := &model.AccountsFile{}
	goOn := func(number int64, cursor string) { file.EndCursor = new(fmt.Sprintf("%d.%s", number, cursor)) }
	var ids []storage.UserID
	var by []accountSource
	for n, source := range sources {
		if n == listsAtOnce || args.Size == 0 {
			goOn(source.number, "")
			break
		}
		page, err := source.list.page(ctx, r.Resolver, loaders.For(ctx).Reader(), audience, args, source.list.cursorsOf(), prefetch.PageNeeds{Rows: true})
		if err != nil {
			return nil, err
		}
		ids, by = append(ids, page.Rows...), append(by, slices.Repeat([]accountSource{source}, len(page.Rows))...)
		if page.Info.HasNextPage {
			goOn(source.number, *page.Info.EndCursor)
			break
		}
		args = prefetch.PageArguments{Size: args.Size - len(page.Rows)}
	}
	var text strings.Builder
	lines := csv.NewWriter(&text)
	if after == nil && header != nil {
		_ = lines.Write(header)
	}
	_, host, _ := strings.Cut(r.PublicURL, "://")
	for i, u := range loaders.For(ctx).Users.Fetch(ids) {
		switch {
		case u.Err != nil:
			return nil, u.Err
		case !u.Found: // an edge that came before its user
			continue
		}
		address := u.Value.Handle
		if host != "" {
			address += "@" + host
		}
		_ = lines.Write(slices.Concat(by[i].before, []string{address}, by[i].behind))
	}
	lines.Flush()
	file.Text = text.String()
	return file, nil
}
