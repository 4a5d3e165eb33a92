// Package trusted holds the documents that the builds of front ends have registered: clients then
// send an id instead of a text, and a gateway may be set to answer no other documents.
package trusted

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"kith/graph/apierr"
	"kith/graph/limits"
	"kith/graph/selections"
	"kith/storage/metrics"
	"kith/storage/sleep"
)

// Bounds of what may be registered.
const (
	MaxDocuments = 20_000 // and as many ids that are not their hashes
	MaxID        = 256    // bytes
)

// CheckEvery is how often a gateway looks whether other documents are registered.
const CheckEvery = 5 * time.Second

// prefix is in front of an id that is the SHA-256 of its text, in hexadecimal digits (GraphQL over
// HTTP, appendix A).
const prefix = "sha256:"

// A Manifest is texts of documents by their ids.
type Manifest map[string]string

// Documents are documents by their ids. Nil has none. They are safe for concurrent use.
type Documents struct {
	folder Folder
	own    []Manifest // that never change
	schema selections.Schemas
	limit  limits.Limits
	now    atomic.Pointer[content]
	failed atomic.Pointer[string] // why the last look failed; nil if it succeeded
}

// content is what is registered at one time.
type content struct {
	stamp string // of the folder, before it was read
	byID  map[string]string
	texts map[string]Document
}

// Document is a text that is valid.
type Document struct {
	Parsed    *ast.QueryDocument
	Operators bool // only operators may ask it
}

// Load reads the manifests of a folder, besides other ones. Each document has to fit the schema, at least as operators have it, and
// the limits. The error names the manifest and the document.
func Load(folder Folder, schema selections.Schemas, limit limits.Limits, own ...Manifest) (*Documents, error) {
	d := &Documents{folder: folder, own: own, schema: schema, limit: limit}
	d.now.Store(&content{})
	stamp, err := folder.stamp()
	if err != nil {
		return nil, err
	}
	return d, d.read(stamp)
}

// read adopts the documents of all manifests. Documents that were parsed before are not parsed again.
func (d *Documents) read(stamp string) error {
	next := &content{stamp, map[string]string{}, map[string]Document{}}
	take := func(m Manifest) error {
		for id, text := range m {
			if err := d.add(next, strings.TrimPrefix(id, prefix), text); err != nil {
				return fmt.Errorf("document %.100q: %w", id, err)
			}
		}
		return nil
	}
	if err := d.folder.each(take); err != nil {
		return err
	}
	for _, m := range d.own {
		if err := take(m); err != nil {
			return err
		}
	}
	d.now.Store(next)
	return nil
}

// add adds a document, also under the hash of its text.
func (d *Documents) add(to *content, id, text string) error {
	switch known, ok := to.byID[id]; {
	case id == "" || len(id) > MaxID:
		return fmt.Errorf("an id has 1 to %d bytes", MaxID)
	case ok && known != text:
		return errors.New("the id stands for another text already")
	case len(to.texts) == MaxDocuments && to.texts[text].Parsed == nil, len(to.byID) >= 2*MaxDocuments && !ok:
		return fmt.Errorf("there are more than %d documents, or ids of them", MaxDocuments)
	}
	if to.texts[text].Parsed == nil {
		found := d.now.Load().texts[text]
		if found.Parsed == nil {
			var err error
			if found, err = d.parse(text); err != nil {
				return err
			}
		}
		to.texts[text] = found
	}
	to.byID[id], to.byID[HashOf(text)] = text, text
	return nil
}

func (d *Documents) parse(text string) (Document, error) {
	if !utf8.ValidString(text) {
		return Document{}, errors.New("it is no UTF-8")
	}
	parsed, errs := Validate(text, d.limit, d.schema, true, nil)
	if errs == nil {
		return parsed, nil
	}
	e := errs[0]
	if len(e.Locations) > 0 {
		return Document{}, fmt.Errorf("line %d, column %d: %s", e.Locations[0].Line, e.Locations[0].Column, e.Message)
	}
	return Document{}, errors.New(e.Message)
}

// Validate parses and validates a text, as an operator asks it or anybody else, by a set of rules, nil for the usual ones. Its shape is checked
// in between: validation itself is quadratic in places.
func Validate(text string, limit limits.Limits, schema selections.Schemas, isOperator bool, set *rules.Rules) (Document, gqlerror.List) {
	parsed, err := limit.Parse(text)
	if err != nil {
		return Document{}, gqlerror.List{gqlerror.WrapIfUnwrapped(err)}
	}
	if len(parsed.Operations) == 0 {
		return Document{}, gqlerror.List{gqlerror.Wrap(apierr.InvalidQuery.Error("no operation provided"))}
	}
	operators, errs := schema.Validate(parsed, isOperator, set)
	for _, err := range errs {
		errcode.Set(err, errcode.ValidationFailed)
	}
	if errs == nil {
		if err := selections.Settle(parsed); err != nil {
			errs = gqlerror.List{err}
		}
	}
	return Document{parsed, operators}, errs
}

// Follow looks now and then whether other documents are registered, until the context is done. While they
// cannot be read, or one of them does not fit, the present documents stay.
func (d *Documents) Follow(ctx context.Context, every time.Duration, logger *slog.Logger) {
	for sleep.For(ctx, every) == nil {
		changed, err := d.look()
		switch before := d.failed.Load(); {
		case ctx.Err() != nil:
		case err != nil && (before == nil || *before != err.Error()): // once, not every five seconds
			text := err.Error()
			d.failed.Store(&text)
			logger.Warn("cannot read the trusted documents: keeping the previous ones", "error", err)
		case err == nil:
			d.failed.Store(nil)
			changed = changed || before != nil // that what was wrong is undone is said, too
		}
		if changed {
			logger.Info("trusted documents reloaded", "documents", d.Len())
		}
	}
}

// look adopts the documents of the folder, if they have changed.
func (d *Documents) look() (changed bool, err error) {
	stamp, err := d.folder.stamp()
	if err != nil || stamp == d.now.Load().stamp {
		return false, err
	}
	err = d.read(stamp)
	return err == nil, err
}

// Ready returns an error while the registered documents are not the ones that are answered.
func (d *Documents) Ready(context.Context) error {
	if failed := d.failed.Load(); failed != nil {
		return errors.New(*failed)
	}
	return nil
}

// Text is the text of a document, whose id may have the prefix `sha256:` or not.
func (d *Documents) Text(id string) (text string, ok bool) {
	if d == nil {
		return "", false
	}
	text, ok = d.now.Load().byID[strings.TrimPrefix(id, prefix)]
	return text, ok
}

// Has reports whether a text is exactly that of a document.
func (d *Documents) Has(text string) bool { return d.Parsed(text).Parsed != nil }

// Parsed is the document of a text; an empty one if there is none.
func (d *Documents) Parsed(text string) Document {
	if d == nil {
		return Document{}
	}
	return d.now.Load().texts[text]
}

// Len is how many documents there are.
func (d *Documents) Len() int {
	if d == nil {
		return 0
	}
	return len(d.now.Load().texts)
}

// Register registers a metric of how many documents there are.
func (d *Documents) Register(registerer prometheus.Registerer) {
	metrics.In(registerer).GaugeOf("kith_trusted_documents", "Trusted documents that this gateway knows.", func() float64 { return float64(d.Len()) })
}

// HashOf is the hash of a text, in hexadecimal digits.
func HashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
