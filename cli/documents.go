package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway/trusted"
	"kith/graph/generated"
	"kith/graph/limits"
	"kith/storage"
	"kith/storage/sqlstore"
	"kith/web"
)

// trustedInStore is the value of --trusted-documents for manifests in the store.
const trustedInStore = "store"

// manifests are the trusted documents in a store. A [trusted.Source].
type manifests struct{ store *sqlstore.Store }

// Stamp implements [trusted.Source].
func (m manifests) Stamp(ctx context.Context) (string, error) {
	list, err := m.store.Manifests(ctx)
	var stamp strings.Builder
	for _, one := range list {
		fmt.Fprintln(&stamp, one.Name, one.Digest)
	}
	return stamp.String(), err
}

// Each implements [trusted.Source].
func (m manifests) Each(ctx context.Context, f func(trusted.Manifest) error) error {
	list, err := m.store.Manifests(ctx)
	if err != nil {
		return err
	}
	for _, one := range list {
		documents, err := m.read(ctx, one)
		if err == nil {
			err = f(documents)
		}
		if err != nil {
			return fmt.Errorf("manifest %s: %w", one.Name, err)
		}
	}
	return nil
}

// maxUnpacked is how long a compressed manifest may be when uncompressed.
const maxUnpacked = 64 << 20

func (m manifests) read(ctx context.Context, one sqlstore.Manifest) (trusted.Manifest, error) {
	content, err := m.store.ManifestContent(ctx, one)
	if err != nil {
		return nil, err
	}
	packed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(packed, maxUnpacked+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxUnpacked {
		return nil, fmt.Errorf("it has more than %d bytes", maxUnpacked)
	}
	return trusted.Parse(text)
}

// put adds documents to those of a name, after checking them against all others. It returns how
// many are new.
func (m manifests) put(ctx context.Context, name string, documents trusted.Manifest) (added int, err error) {
	list, err := m.store.Manifests(ctx)
	if err != nil {
		return 0, err
	}
	all, mine := []trusted.Manifest{}, trusted.Manifest{}
	for _, one := range list {
		read, err := m.read(ctx, one)
		if err != nil {
			return 0, fmt.Errorf("manifest %s: %w", one.Name, err)
		}
		if all = append(all, read); one.Name == name {
			mine = maps.Clone(read)
		}
	}
	if err := trusted.Check(documents, all, documentSchema(), limits.Limits{}); err != nil {
		return 0, err
	}
	if added, err = mine.Join(documents); err != nil || added == 0 {
		return 0, err
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return 0, err
	}
	if len(text) > maxUnpacked {
		return 0, fmt.Errorf("a manifest may have %d bytes", maxUnpacked)
	}
	var content bytes.Buffer
	packing := gzip.NewWriter(&content)
	if _, err := packing.Write(text); err != nil {
		return 0, err
	}
	if err := packing.Close(); err != nil {
		return 0, err
	}
	return added, m.store.PutManifest(ctx, name, len(mine), content.Bytes(), storage.MicrosOf(time.Now()), list)
}

// DocumentsCmd is `kith documents`.
type DocumentsCmd struct {
	Add    DocumentsAddCmd    `cmd:"" help:"Register the documents of manifests in the store, under a name, for gateways with --trusted-documents=store."`
	List   DocumentsListCmd   `cmd:"" default:"1" help:"Which names there are, and how many documents each has."`
	Remove DocumentsRemoveCmd `cmd:"" help:"Remove the documents of names that no front end uses any more."`
}

// DocumentsAddCmd is `kith documents add NAME FILE…`.
type DocumentsAddCmd struct {
	Name  string   `arg:"" help:"What the documents are listed and removed by, such as web-1.42."`
	Files []string `arg:"" name:"file" help:"Manifests as of --trusted-documents, or folders of them."`

	documents trusted.Manifest
}

// Prepare implements [Preparer]: it reads the files.
func (c *DocumentsAddCmd) Prepare(*Settings, *kong.Context) error {
	if err := checkManifestName(c.Name); err != nil {
		return err
	}
	c.documents = trusted.Manifest{}
	for _, path := range c.Files {
		err := trusted.Folder(path).Each(context.Background(), func(m trusted.Manifest) error {
			_, err := c.documents.Join(m)
			return err
		})
		if err != nil {
			return err
		}
	}
	return trusted.Check(c.documents, nil, documentSchema(), limits.Limits{})
}

func checkManifestName(name string) error {
	isOther := func(r rune) bool { return r <= ' ' || r > '~' }
	if name == "" || len(name) > sqlstore.MaxManifestName || strings.ContainsFunc(name, isOther) {
		return fmt.Errorf("a name has 1 to %d printable ASCII characters without blanks", sqlstore.MaxManifestName)
	}
	return nil
}

// Run registers the documents. Another process may do so at the same time.
func (c *DocumentsAddCmd) Run(ctx context.Context, store *sqlstore.Store, k *kong.Context) error {
	const tries = 10
	added, err := 0, sqlstore.ErrManifestsChanged
	for try := 0; try < tries && errors.Is(err, sqlstore.ErrManifestsChanged); try++ {
		added, err = manifests{store}.put(ctx, c.Name, c.documents)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(k.Stdout, "%s: %s documents, %s of them new", c.Name, humanize.Comma(int64(len(c.documents))), humanize.Comma(int64(added)))
	if added > 0 {
		fmt.Fprintf(k.Stdout, "; gateways look every %s", trusted.CheckEvery)
	}
	fmt.Fprintln(k.Stdout)
	return nil
}

// DocumentsListCmd is `kith documents list`.
type DocumentsListCmd struct {
	Output
}

type manifestReport struct {
	Name      string    `json:"name"`
	Documents int       `json:"documents"`
	Bytes     int       `json:"bytes"`
	ChangedAt time.Time `json:"changedAt"`
}

// Run prints the list.
func (c *DocumentsListCmd) Run(ctx context.Context, store *sqlstore.Store, k *kong.Context) error {
	list, err := store.Manifests(ctx)
	if err != nil {
		return err
	}
	report := []manifestReport{}
	for _, m := range list {
		report = append(report, manifestReport{m.Name, m.Documents, m.Bytes, m.ChangedAt.Time()})
	}
	if c.JSON() {
		return WriteJSON(k.Stdout, report)
	}
	for _, m := range report {
		fmt.Fprintf(k.Stdout, "%s  %s  %s documents\n", m.ChangedAt.UTC().Format(time.DateTime), m.Name, humanize.Comma(int64(m.Documents)))
	}
	return nil
}

// DocumentsRemoveCmd is `kith documents remove NAME…`.
type DocumentsRemoveCmd struct {
	Names []string `arg:"" name:"name" help:"As kith documents list shows them."`
}

// Run removes the manifests. A name that does not exist is reported, but is no error: it may have been
// removed before.
func (c *DocumentsRemoveCmd) Run(ctx context.Context, store *sqlstore.Store, k *kong.Context) error {
	for _, name := range c.Names {
		found, err := store.RemoveManifest(ctx, name)
		if err != nil {
			return err
		}
		if found {
			fmt.Fprintf(k.Stdout, "%s is removed\n", name)
		} else {
			fmt.Fprintf(k.Stdout, "there is no %s\n", name)
		}
	}
	return nil
}

// trustedDocuments are the documents that clients may name by their ids; nil without --trusted-documents. The
// store is nil before it is open: then the documents of a folder are loaded, so that mistakes in them are
// found first.
func (c *ServeCmd) trustedDocuments(ctx context.Context, store *sqlstore.Store) (*trusted.Documents, error) {
	switch {
	case c.Trusted == "" || (c.Trusted == trustedInStore) == (store == nil):
		return nil, nil
	case store != nil:
		return c.load(ctx, manifests{store})
	}
	return c.load(ctx, trusted.Folder(c.Trusted))
}

// load reads the documents of a source, and those of the app, if it is served.
func (c *ServeCmd) load(ctx context.Context, source trusted.Source) (*trusted.Documents, error) {
	if c.App {
		app, err := web.Documents(web.Assets())
		if err != nil {
			return nil, err
		}
		source = trusted.All{source, trusted.Manifest(app)}
	}
	documents, err := trusted.Load(ctx, source, documentSchema(), c.limits())
	if err != nil {
		return nil, Misset("trusted-documents", err)
	}
	return documents, nil
}

// documentSchema is the schema that documents have to fit.
func documentSchema() *ast.Schema { return generated.NewExecutableSchema(generated.Config{}).Schema() }
