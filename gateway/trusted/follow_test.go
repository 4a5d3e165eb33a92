package trusted_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/gateway/trusted"
	"kith/graph/limits"
	"kith/internal/check"
	"kith/internal/logged"
	"kith/internal/must"
)

// logs are lines of a log.
type logs struct{ logged.Text }

func (l *logs) count(part string) int { return strings.Count(l.String(), part) }

// A folder is followed while documents are added and removed. If the folder cannot be read, or does not fit the
// schema, nothing changes, and the log says so once.
func TestAFolderIsFollowed(t *testing.T) {
	t.Parallel()
	at := folder(t, map[string]string{"a.json": `{"a": "{ hello }"}`})
	documents, err := trusted.Load(at, schemas, limits.Limits{})
	must.OK(t, err)
	has := func(id string) bool { _, ok := documents.Text(id); return ok }
	parsed := documents.Parsed("{ hello }")
	same := func() bool { return documents.Parsed("{ hello }") == parsed }
	log := &logs{}
	ctx, stop := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { documents.Follow(ctx, time.Millisecond, slog.New(slog.NewTextHandler(log, nil))) })
	defer func() { stop(); following.Wait() }()

	write(t, string(at), "v2/b.json", `{"b": "{ add(n: 2) }"}`)
	must.Soon(t, "the new one is known", func() bool { return has("b") })
	check.That(t, has("a") && same() && documents.Ready(ctx) == nil, "the one before is gone, or has been parsed again")
	write(t, string(at), "0.json", `{"c": "{ bye }"}`) // this file is read first
	write(t, string(at), "v4.json", `{"d": "{ add(n: 4) }"}`)
	must.Soon(t, "it is said", func() bool { return log.count("bye") > 0 })
	must.Soon(t, "it is not ready", func() bool { return documents.Ready(ctx) != nil })
	check.That(t, !has("c") && !has("d") && has("a") && has("b"), "a part has been taken over")
	write(t, string(at), "0.json", `{"c": "{ hello }"}`)
	must.Soon(t, "the others are known", func() bool { return has("c") && has("d") && documents.Ready(ctx) == nil })
	check.That(t, log.count("bye") == 1, "it is said %d times", log.count("bye"))
	must.OK(t, os.Remove(filepath.Join(string(at), "v2/b.json")))
	must.Soon(t, "it is removed", func() bool { return !has("b") })
	must.OK(t, os.Rename(string(at), string(at)+" is gone")) // at once, not file by file
	must.Soon(t, "it is not ready", func() bool { return documents.Ready(ctx) != nil })
	check.That(t, has("a"), "a folder that is gone takes the documents along")
	reloaded := log.count("reloaded")
	must.OK(t, os.Rename(string(at)+" is gone", string(at)))
	must.Soon(t, "it is said that the folder is back", func() bool { return log.count("reloaded") > reloaded })
}

// A link to a folder is the folder, as of the current release. The link is followed when it is changed, even if the files look the same.
func TestALinkToAFolderIsFollowed(t *testing.T) {
	t.Parallel()
	first, second := folder(t, map[string]string{"x.json": `{"a": "{ hello }"}`}), folder(t, map[string]string{"x.json": `{"b": "{ hello }"}`})
	for _, at := range []trusted.Folder{first, second} {
		must.OK(t, os.Chtimes(filepath.Join(string(at), "x.json"), time.Time{}, time.Unix(1, 0)))
	}
	current := filepath.Join(t.TempDir(), "current")
	must.OK(t, os.Symlink(string(first), current))
	documents, err := trusted.Load(trusted.Folder(current), schemas, limits.Limits{})
	must.OK(t, err)
	has := func(id string) bool { _, ok := documents.Text(id); return ok }
	check.That(t, has("a"), "the documents behind the link are not known")
	ctx, stop := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { documents.Follow(ctx, time.Millisecond, slog.New(slog.DiscardHandler)) })
	defer func() { stop(); following.Wait() }()
	must.OK(t, os.Symlink(string(second), current+".new"))
	must.OK(t, os.Rename(current+".new", current))
	must.Soon(t, "those behind another link are known", func() bool { return has("b") && !has("a") })
}
