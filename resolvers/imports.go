package resolvers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/graph/consistency"
	"kith/graph/model"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

// Files of accounts are worked on in parts, in the order of their lines: the first one by the mutation that brings the file, the others by
// the gateway of a deployment that sweeps, see [accounts.Sweeper]. A part that was interrupted is done again, which changes nothing more.

const (
	// linesAPart is how many lines are worked on together.
	linesAPart = 50
	// maxImportParts is how many parts an import may have.
	maxImportParts = 100
	// importsKept is how long an import is there.
	importsKept = 7 * 24 * time.Hour
	// importAgain is after how long a part is tried again of which something could not be reached.
	importAgain = 10 * time.Second
	// importNoted is how long noting what has become of a part may take.
	importNoted = 5 * time.Second
	// importsAtOnce is how many parts that are due are read at a time.
	importsAtOnce = 20
	// mostRefused is how many lines that were refused are shown at a time.
	mostRefused = 100
)

func (r mutations) ImportAccounts(ctx context.Context, kind model.AccountsKind, file string) (*model.AccountsImportPayload, error) {
	viewer, err := r.actorOf(ctx, 1)
	if err != nil {
		return nil, err
	}
	now := r.Relations.Now()
	parts, err := partsOf(social.AccountsKind(kind), file)
	if err != nil {
		return nil, err
	}
	for i := range parts {
		parts[i].ImportID = storage.ImportID{Owner: viewer, Number: int64(storage.MicrosOf(now))}
		parts[i].DueAt = storage.MicrosOf(now)
	}
	parts[0].DueAt = storage.MicrosOf(now.Add(importAgain)) // it is worked on here
	id, err := r.Writes.AddImport(ctx, parts)
	if err != nil {
		return nil, viewerGone(importError(err))
	}
	parts[0].ImportID = id
	changed, stale, _ := r.workOn(ctx, parts[0]) // what fails is tried again
	token := append(tokenOf(changed), consistency.Beside(viewer)...)
	r.await(ctx, done{token: token, late: token, stale: stale}, payloadSelection(ctx).readsInverse())
	imports, err := r.importsOf(ctx, viewer)
	if err != nil {
		return nil, err
	}
	p := &model.AccountsImportPayload{Changed: true, Viewer: payloadSelection(ctx).readViewer(ctx, viewer)}
	if i := slices.IndexFunc(imports, func(i *model.AccountsImport) bool { return i.ID == importID(id) }); i >= 0 {
		p.AccountsImport = imports[i]
	}
	return p, nil
}

var importError = refusals{{storage.ErrLimitReached, apierr.TooManyImports.Error("%d imports are not done: wait, or remove one", storage.MaxImports)}}.tell

func (r mutations) RemoveAccountsImport(ctx context.Context, text string) (*model.AccountsImportPayload, error) {
	viewer, err := r.actorOf(ctx, 1)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, apierr.IDMalformed.Error("%q is not the id of an import", abridged(text)).In("importId")
	}
	removed, err := r.Writes.RemoveImport(ctx, storage.ImportID{Owner: viewer, Number: number})
	if err != nil {
		return nil, viewerGone(err)
	}
	p := &model.AccountsImportPayload{Changed: removed, Viewer: payloadSelection(ctx).readViewer(ctx, viewer)}
	if removed {
		p.RemovedImportID = &text
	}
	return p, nil
}

func (r viewerFields) AccountsImports(ctx context.Context, obj *model.Viewer) ([]*model.AccountsImport, error) {
	type key struct{}
	return prefetch.Shared(ctx, key{}, func() ([]*model.AccountsImport, error) { return r.importsOf(ctx, obj.User.UserID) })
}

// partsOf are the lines of a file in parts that have no ID yet.
func partsOf(kind social.AccountsKind, file string) (parts []storage.ImportPart, err error) {
	var lines []social.Account
	lists := make(map[string]bool)
	end := func() {
		if len(lines) > 0 {
			text, _ := json.Marshal(lines) // fails for no such value
			parts = append(parts, storage.ImportPart{Part: int64(len(parts)), Kind: string(kind), Line: int64(lines[0].Line), Size: int64(len(lines)), Lines: string(text)})
		}
		lines = nil
		clear(lists)
	}
	for line := range social.ReadAccounts(kind, file) {
		if lists[line.List] = true; len(lines) == linesAPart || len(lists) > listsAtOnce {
			end()
			lists[line.List] = true
		}
		if len(parts) == maxImportParts {
			return nil, apierr.TooLong.Error("the file names more than %d users, or very many lists", linesAPart*maxImportParts).In("file")
		}
		line.Handle, line.List = abridged(line.Handle), line.List[:min(len(line.List), 8*storage.MaxListName)]
		lines = append(lines, line)
	}
	if end(); len(parts) == 0 {
		return nil, apierr.TextLength.Error("the file names nobody").In("file")
	}
	return parts, nil
}

func importID(id storage.ImportID) string { return strconv.FormatInt(id.Number, 10) }

// importsOf shows the imports of a user, newest first.
func (r *Resolver) importsOf(ctx context.Context, user storage.UserID) (imports []*model.AccountsImport, err error) {
	parts, err := storage.ImportLookups.Get(ctx, r.Store, user)
	imports = []*model.AccountsImport{}
	for _, p := range parts {
		if p.Part == 0 || len(imports) == 0 || imports[len(imports)-1].ID != importID(p.ImportID) {
			imports = append(imports, &model.AccountsImport{ID: importID(p.ImportID), Kind: model.AccountsKind(p.Kind), CreatedAt: storage.Micros(p.Number).Time()})
		}
		i := imports[len(imports)-1]
		i.Parts = append(i.Parts, p)
		i.LineCount += int32(p.Size)
		i.ChangedCount += int32(p.Made)
		i.RefusedCount += int32(p.Refused)
		if p.Done {
			i.DoneCount += int32(p.Size)
		} else if at := p.DueAt.Time(); i.ContinuesAt == nil || at.Before(*i.ContinuesAt) {
			i.ContinuesAt = &at
		}
	}
	return imports, err
}

// Refused reads the part that the line is in, and the next ones until there are enough.
func (r importFields) Refused(ctx context.Context, obj *model.AccountsImport, afterLine int32) ([]*model.RefusedLine, error) {
	parts, enough := obj.Parts, int64(mostRefused)
	for len(parts) > 1 && parts[1].Line <= int64(afterLine)+1 {
		parts = parts[1:]
	}
	q := storage.RefusedQuery{ImportID: parts[0].ImportID, From: parts[0].Part, To: parts[0].Part}
	if parts[0].Line > int64(afterLine) {
		enough -= parts[0].Refused
	}
	for _, p := range parts[1:] {
		if enough <= 0 {
			break
		}
		q.To, enough = p.Part, enough-p.Refused
	}
	read, err := prefetch.Shared(ctx, q, func() ([]storage.ImportPart, error) { return storage.RefusedLookups.Get(ctx, r.Store, q) })
	lines := []*model.RefusedLine{}
	for _, p := range read {
		var refused []*model.RefusedLine
		if err := json.Unmarshal([]byte(p.Lines), &refused); err != nil {
			return nil, fmt.Errorf("read import %d of user %s: %w", p.Number, p.Owner, err)
		}
		for _, l := range refused {
			if l.Line > afterLine && len(lines) < mostRefused {
				lines = append(lines, l)
			}
		}
	}
	return lines, err
}

// WorkOnImports works on the imports of a shard that are due, if there are any and the caller may, those that wait longest first.
// Users who could not be reached are tried again later.
func (r *Resolver) WorkOnImports(ctx context.Context, shard int, may func() bool) (failed error) {
	now := r.Relations.Now()
	q := storage.ShardQuery[storage.ImportPart]{Shard: shard, Limit: importsAtOnce, Until: storage.MicrosOf(now)}
	waits := make(map[storage.UserID]bool)
	var removed storage.ImportID // all parts of what is done are due together
	for more := true; more; {
		due, err := storage.DueImportLookups.Get(ctx, r.Writes, q)
		if err != nil {
			return fmt.Errorf("read imports that are due: %w", err)
		}
		for _, p := range due {
			if p.ImportID == removed {
				continue
			}
			if ctx.Err() != nil || !may() {
				return failed
			}
			var err error
			switch {
			case p.Done || storage.Micros(p.Number).Time().Add(importsKept).Before(now):
				if _, err = r.Writes.RemoveImport(ctx, p.ImportID); err == nil {
					removed = p.ImportID
				}
			case !waits[p.Owner]:
				_, _, err = r.workOn(ctx, p)
			}
			if err != nil {
				waits[p.Owner] = true
				if refused, is := apierr.Of(err); is {
					wait, _ := refused.Details["retryAfter"].(int)
					err = r.Writes.DeferImports(ctx, p.Owner, storage.MicrosOf(now.Add(max(time.Duration(wait)*time.Second, importAgain))))
				}
				failed = cmp.Or(err, failed)
			}
		}
		if more = len(due) == importsAtOnce; more {
			q.After = due[len(due)-1]
		}
	}
	return failed
}

// workOn does what the lines of a part say, and notes what has become of them. A refusal means that their user may not write now.
func (r *Resolver) workOn(ctx context.Context, p storage.ImportPart) (changed []storage.Result[storage.Changed], stale bool, err error) {
	var lines []social.Account
	if err := json.Unmarshal([]byte(p.Lines), &lines); err != nil {
		return nil, false, fmt.Errorf("read import %d of user %s: %w", p.Number, p.Owner, err)
	}
	if err := r.States.MayAct(ctx, p.Owner); err != nil {
		return nil, false, err
	}
	if r.MayWrite != nil {
		if err := r.MayWrite(ctx, p.Owner, "importAccounts", len(lines)); err != nil {
			return nil, false, err
		}
	}
	kind := social.AccountsKind(p.Kind)
	others, changed, stale, err := r.Relations.Bring(ctx, r.Writes, p.Owner, kind, lines, func(name string) (string, error) {
		return accounts.CheckName("file", name, 1, storage.MaxListName)
	})
	if err != nil {
		return nil, false, err
	}
	// Also if the client has disconnected, or the time of the sweep is over: done again, the part would change nothing, and count nothing.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), importNoted)
	defer cancel()
	r.explain(ctx, p.Owner, others, changed)
	refused := []*model.RefusedLine{}
	p.Done = true
	for i, of := range changed {
		switch kind {
		case social.AccountFollows:
		case social.AccountBlocks:
			of.Err = blockError(of.Err)
		default:
			of.Err = relationError(of.Err)
		}
		if of.Value.Changed {
			p.Made++
		}
		if shown := followError("", of.Err); shown != nil {
			refused = append(refused, &model.RefusedLine{Line: int32(lines[i].Line), Handle: lines[i].Handle, Error: shown})
			p.Done = p.Done && shown.Code != apierr.CodeUnavailable && shown.Code != apierr.CodeTimeout
		}
	}
	if p.DueAt = storage.MicrosOf(r.Relations.Now().Add(importAgain)); p.Done {
		text, _ := json.Marshal(refused) // fails for no such value
		p.Lines, p.Refused, p.DueAt = string(text), int64(len(refused)), storage.MicrosOf(storage.Micros(p.Number).Time().Add(importsKept))
	}
	_, err = r.Writes.FinishImport(ctx, p)
	return changed, stale, err
}
