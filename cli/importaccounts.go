package cli

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/accounts"
	"kith/files/importer"
	"kith/graph/limits"
	"kith/replication"
	"kith/social"
	"kith/storage"
)

// maxAccounts is how many bytes a list of accounts may have.
const maxAccounts = 16 << 20

// bring does what lists of accounts say by the rules of a gateway: a block ends follows, who is locked is asked, limits hold. It tells
// which lines are refused.
func (c *ImportCmd) bring(ctx context.Context, settings *Settings, store storage.Store, out io.Writer) error {
	handle := storage.FoldHandle(c.User)
	users, errs := social.WithHandles(ctx, store, []string{handle})
	if errs[0] != nil {
		return unusable{fmt.Errorf("--user: %q: %w", handle, errs[0])}
	}
	registry := prometheus.NewRegistry()
	hidden := accounts.NewHiddenUsers(store, accounts.NewMetrics(registry), time.Now)
	if err := hidden.Refresh(ctx); err != nil {
		return err
	}
	both := replication.NewSynchronous(store, nil, registry, slog.New(slog.DiscardHandler)) // as an import, in every mode
	defer both.Close()
	b := bringer{c, store, users[0], social.NewRelations(social.Relations{Store: store, Redundancy: both, HiddenUsers: hidden, Rules: &settings.rules}), importer.Report{}}
	began := time.Now()
	for i, text := range c.lists {
		lines := slices.Collect(social.ReadAccounts(b.kind(), text))
		for some := range slices.Chunk(lines, limits.MaxIDs) {
			if err := b.bringLines(ctx, c.Files[i], some); err != nil {
				return err
			}
		}
	}
	b.report.Elapsed = time.Since(began)
	if err := c.summarise(out, b.report); err != nil {
		return err
	}
	switch r := b.report; {
	case r.Edges+r.Existed == 0:
		return importer.ErrNothing
	case r.Malformed > 0:
		return malformed(r.Malformed)
	}
	return nil
}

// A bringer imports what is a user's.
type bringer struct {
	*ImportCmd
	store     storage.Store
	user      storage.UserID
	relations *social.Relations
	report    importer.Report
}

func (b *bringer) kind() social.AccountsKind { return social.AccountsKind(strings.ToUpper(b.Accounts)) }

// bringLines imports some lines of a file.
func (b *bringer) bringLines(ctx context.Context, file string, lines []social.Account) error {
	_, changed, _, err := b.relations.Bring(ctx, b.store, b.user, b.kind(), lines, func(name string) (string, error) {
		return accounts.CheckName("list", name, 1, storage.MaxListName)
	})
	if err != nil {
		return err
	}
	for i, of := range changed {
		b.report.Lines++
		switch {
		case errors.Is(of.Err, storage.ErrUnavailable), errors.Is(of.Err, context.Canceled):
			return fmt.Errorf("line %d of %s: %w; run the same command again: what is in then counts as existed", lines[i].Line, file, of.Err)
		case of.Err != nil:
		case of.Value.Changed:
			b.report.Edges++
			continue
		default:
			b.report.Existed++
			continue
		}
		problem := importer.Problem{File: file, Line: int64(lines[i].Line), Reason: of.Err, Text: fmt.Sprintf("%.40q", lines[i].Handle)}
		if b.Strict {
			return errors.New(problem.String())
		}
		if b.report.Malformed++; b.report.Malformed <= shownProblems {
			b.progress.problem(problem)
		}
	}
	return nil
}

func readAccounts(name string) (string, error) {
	file := os.Stdin
	if name != "-" {
		var err error
		if file, err = os.Open(name); err != nil {
			return "", err
		}
		defer file.Close()
	}
	raw := bufio.NewReader(file)
	var plain io.Reader = raw
	if magic, _ := raw.Peek(2); string(magic) == "\x1f\x8b" { // gzip, as other files may be
		var err error
		if plain, err = gzip.NewReader(raw); err != nil {
			return "", fmt.Errorf("read %s: %w", name, err)
		}
	}
	text, err := io.ReadAll(io.LimitReader(plain, maxAccounts+1))
	if err == nil && len(text) > maxAccounts {
		err = fmt.Errorf("%s is longer than %d bytes", name, maxAccounts)
	}
	return string(text), err
}
