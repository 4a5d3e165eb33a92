package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"kith/files/changes"
	"kith/replication/binlog"
	"kith/storage/sqlstore"
)

// ChangesCmd is `kith changes`.
type ChangesCmd struct {
	After    *string        `placeholder:"CURSOR" help:"Go on after this cursor of an event, or of the manifest of an export. Default: begin now."`
	Kinds    []changes.Kind `enum:"users,counts,posts,comments,follows,requests,favorites,relations,digests" placeholder:"KIND,…" help:"Only these: users, counts, posts, comments, follows, requests, favorites, relations; digests of edges among these, once. Default: all else that the engine tells."`
	UntilNow bool           `help:"End with what has been written before; otherwise go on until it is stopped."`
}

// Validate refuses values that are empty: a script may have lost them, and what came meanwhile would be passed over.
func (c *ChangesCmd) Validate() error {
	switch {
	case c.After != nil && *c.After == "":
		return errors.New("--after is empty: leave it out to begin now")
	case c.Kinds != nil && len(c.Kinds) == 0:
		return errors.New("--kinds is empty: leave it out for all kinds")
	}
	return nil
}

// Run prints the changes. Nobody waits for a reader of the output that stands still: when the command is asked to stop, it may end in the
// middle of a line. A pipe that nobody reads ends the process with SIGPIPE, as it does any other.
func (c *ChangesCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	after := ""
	if c.After != nil {
		after = *c.After
	}
	out := json.NewEncoder(k.Stdout)
	out.SetEscapeHTML(false)
	ended := make(chan error, 1)
	go func() {
		ended <- changes.Run(ctx, changes.Config{
			Store: store, After: after, Kinds: c.Kinds, UntilNow: c.UntilNow, Logger: settings.Logger(k.Stderr),
		}, func(e changes.Event) error { return out.Encode(e) })
	}()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		select {
		case err = <-ended:
		case <-time.After(time.Second):
			err = ctx.Err()
		}
	}
	switch {
	case ctx.Err() != nil && !c.UntilNow:
		return nil // it was asked to stop
	case errors.Is(err, changes.ErrCursor):
		return unusable{fmt.Errorf("--after: %w", err)}
	case errors.Is(err, changes.ErrKind), errors.Is(err, changes.ErrDigests), errors.Is(err, binlog.ErrNoLog):
		return unusable{err}
	}
	return err
}
