package sqlstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"kith/internal/testenv"
	"kith/storage/sqlstore"
)

// Manifests are read back byte by byte, and are replaced and removed by their names. Nobody overwrites a
// manifest without having seen it.
func TestManifests(t *testing.T) {
	t.Parallel()
	for name, location := range map[string]func(t *testing.T) string{
		"SQLite":  func(t *testing.T) string { return sqlite(t, 2) },
		"MariaDB": func(t *testing.T) string { return mysql(testenv.SharedMariaDB(t, 1).FreshDatabases(t, 2)) },
	} {
		t.Run(name, func(t *testing.T) {
			s, ctx := open(t, location(t)), t.Context()
			list := func() []sqlstore.Manifest {
				t.Helper()
				list, err := s.Manifests(ctx)
				if err != nil {
					t.Fatal(err)
				}
				return list
			}
			put := func(name string, documents int, content []byte, seen []sqlstore.Manifest) error {
				return s.PutManifest(ctx, name, documents, content, 7, seen)
			}
			if len(list()) != 0 {
				t.Errorf("a new store has %+v", list())
			}
			every := make([]byte, 256)
			for i := range every {
				every[i] = byte(i)
			}
			large := bytes.Repeat(every, sqlstore.MaxManifestBytes/len(every))
			if err := put("web-2", 3, every, nil); err != nil {
				t.Fatal(err)
			}
			first := list()
			if err := put("Web-2", 9, large, first); err != nil {
				t.Fatal(err)
			}
			both := list()
			if len(both) != 2 || both[0].Name != "Web-2" || both[1] != first[0] || both[0].Documents != 9 || both[0].Bytes != len(large) || both[0].ChangedAt != 7 {
				t.Errorf("%+v", both)
			}
			for i, want := range [][]byte{large, every} {
				if got, err := s.ManifestContent(ctx, both[i]); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s has %d bytes, %v", both[i].Name, len(got), err)
				}
			}
			if err := put("web-2", 4, []byte("x"), first); !errors.Is(err, sqlstore.ErrManifestsChanged) {
				t.Errorf("over what has not been seen: %v", err)
			}
			if err := put("web-2", 4, []byte("x"), both); err != nil {
				t.Fatal(err)
			}
			if _, err := s.ManifestContent(ctx, both[1]); !errors.Is(err, sqlstore.ErrManifestsChanged) {
				t.Errorf("one that is another by now: %v", err)
			}
			for _, want := range []bool{true, false} {
				if found, err := s.RemoveManifest(ctx, "web-2"); err != nil || found != want {
					t.Errorf("removed: %v, %v; want %v", found, err, want)
				}
			}
			if now := list(); len(now) != 1 || now[0] != both[0] {
				t.Errorf("left is %+v", now)
			}
			if _, err := s.ManifestContent(ctx, both[1]); !errors.Is(err, sqlstore.ErrManifestsChanged) {
				t.Errorf("one that is gone: %v", err)
			}
		})
	}
}

// Bounds are checked before anything is written.
func TestManifestsAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t, sqlite(t, 1))
	many := make([]sqlstore.Manifest, sqlstore.MaxManifests)
	for i := range many {
		many[i] = sqlstore.Manifest{Name: fmt.Sprint(i), Bytes: 1}
	}
	full := []sqlstore.Manifest{{Name: "a", Bytes: sqlstore.MaxAllManifests - 2}, {Name: "b", Bytes: 2}}
	for name, c := range map[string]struct {
		content []byte
		seen    []sqlstore.Manifest
		fits    bool
	}{
		"too long":           {make([]byte, sqlstore.MaxManifestBytes+1), nil, false},
		"too much":           {make([]byte, 1), full, false},
		"in its own place":   {make([]byte, 2), []sqlstore.Manifest{full[0], {Name: "new", Bytes: 2}}, true},
		"too many":           {make([]byte, 1), many, false},
		"one less":           {make([]byte, 1), many[1:], true},
		"one of many is new": {make([]byte, 1), append(many[1:], sqlstore.Manifest{Name: "new"}), true},
	} {
		err := s.PutManifest(t.Context(), "new", 1, c.content, 1, c.seen)
		if tooLarge := errors.Is(err, sqlstore.ErrManifestTooLarge); tooLarge == c.fits || !tooLarge && !errors.Is(err, sqlstore.ErrManifestsChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// If several writers have seen the same manifest, one of them writes and the others have to read it again.
func TestManifestsOfManyWriters(t *testing.T) {
	t.Parallel()
	s := open(t, mysql(testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)))
	if err := s.PutManifest(t.Context(), "first", 1, []byte("0"), 1, nil); err != nil {
		t.Fatal(err)
	}
	seen, err := s.Manifests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 8)
	var writing sync.WaitGroup
	for i := range errs {
		writing.Go(func() { errs[i] = s.PutManifest(t.Context(), fmt.Sprint("w", i), 1, []byte{byte(i)}, 1, seen) })
	}
	writing.Wait()
	written := 0
	for _, err := range errs {
		if err == nil {
			written++
		} else if !errors.Is(err, sqlstore.ErrManifestsChanged) {
			t.Error(err)
		}
	}
	if now, err := s.Manifests(t.Context()); err != nil || written != 1 || len(now) != 2 {
		t.Errorf("%d have written, there are %d (%v)", written, len(now), err)
	}
}
