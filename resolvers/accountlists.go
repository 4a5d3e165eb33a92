package resolvers

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kith/graph/apierr"
	"kith/graph/declared"
	"kith/graph/fields"
	"kith/graph/limits"
	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

// listsAtOnce is how many lists a part or a page of a file is of: each takes a statement or two.
const listsAtOnce = 20

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
			{number: 1, list: edgesFrom(declared.Mutes.Number, viewer), behind: []string{"true"}},
			{number: 0, list: edgesFrom(declared.PostMutes.Number, viewer), behind: []string{"false"}},
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
	if kind == social.AccountLists && len(sources) > 0 && sources[0].number != from {
		args.Text = "" // the list that the cursor is of has been deleted: the next one is read from its beginning
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
		page, err := source.list.page(ctx, loaders.For(ctx).Reader(), audience, args, source.list.cursorsOf(), fields.Rows)
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
