// Package trusted holds the documents that the builds of front ends have registered: clients then
// send an id instead of a text, and a gateway may answer nothing else.
package trusted

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/graph/limits"
)

// Bounds of what a folder may hold.
const (
	MaxDocuments = 20_000
	MaxID        = 256 // bytes
	maxFile      = 64 << 20
	maxFiles     = 1000
)

// prefix stands in front of an id that is the SHA-256 of its text, in hexadecimal digits
// (GraphQL over HTTP, appendix A).
const prefix = "sha256:"

// Documents are documents by their ids. Nil has none.
type Documents struct {
	byID  map[string]string
	texts map[string]*ast.QueryDocument
}

// Text is the text of a document, whose id may have the prefix `sha256:` or not.
func (d *Documents) Text(id string) (text string, ok bool) {
	if d == nil {
		return "", false
	}
	text, ok = d.byID[strings.TrimPrefix(id, prefix)]
	return text, ok
}

// Has reports whether a text is one of them, letter by letter.
func (d *Documents) Has(text string) bool { return d.Parsed(text) != nil }

// Parsed is what a text was parsed to; nil if it is not one of them.
func (d *Documents) Parsed(text string) *ast.QueryDocument {
	if d == nil {
		return nil
	}
	return d.texts[text]
}

// Len is how many there are.
func (d *Documents) Len() int {
	if d == nil {
		return 0
	}
	return len(d.texts)
}

// Operations are the names of their operations, each once.
func (d *Documents) Operations() (names map[string]bool) {
	names = make(map[string]bool)
	if d != nil {
		for _, doc := range d.texts {
			for _, operation := range doc.Operations {
				if operation.Name != "" {
					names[operation.Name] = true
				}
			}
		}
	}
	return names
}

// Load reads the manifests of a folder and of those in it: files *.json as graphql-codegen's client
// preset and Relay's compiler write them (an object of ids and texts), or as Apollo's
// generate-persisted-query-manifest does, and *.graphql and *.gql, whose ids are their hashes. Each
// document has to fit the schema and the limits. The error names the file and the document.
func Load(folder string, schema *ast.Schema, limit limits.Limits) (*Documents, error) {
	l := loader{&Documents{byID: map[string]string{}, texts: map[string]*ast.QueryDocument{}}, schema, limit}
	files := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		extension := filepath.Ext(path)
		if extension != ".json" && extension != ".graphql" && extension != ".gql" {
			return nil
		}
		if files++; files > maxFiles {
			return fmt.Errorf("there are more than %d files", maxFiles)
		}
		if err := l.file(path, extension == ".json"); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	if err == nil && l.Len() == 0 {
		err = errors.New("there are no documents in it: files *.json, *.graphql or *.gql")
	}
	return l.Documents, err
}

type loader struct {
	*Documents
	schema *ast.Schema
	limit  limits.Limits
}

func (l loader) file(path string, isManifest bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return fmt.Errorf("it is no file of at most %d bytes", maxFile)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !isManifest {
		return l.add(hashOf(string(content)), string(content))
	}
	operations, err := manifest(content)
	if err != nil {
		return err
	}
	for id, text := range operations {
		if err := l.add(id, text); err != nil {
			return fmt.Errorf("document %.100q: %w", id, err)
		}
	}
	return nil
}

// manifest reads a manifest in either form.
func manifest(content []byte) (map[string]string, error) {
	var apollo struct {
		Format     string
		Version    int
		Operations []struct{ ID, Body string }
	}
	if err := json.Unmarshal(content, &apollo); err == nil && apollo.Format != "" {
		if apollo.Format != "apollo-persisted-query-manifest" || apollo.Version != 1 {
			return nil, fmt.Errorf("it has the format %.50q, version %d; apollo-persisted-query-manifest, version 1, is known", apollo.Format, apollo.Version)
		}
		operations := make(map[string]string, len(apollo.Operations))
		for _, o := range apollo.Operations {
			operations[o.ID] = o.Body
		}
		return operations, nil
	}
	var operations map[string]string
	if err := json.Unmarshal(content, &operations); err != nil {
		return nil, errors.New("it is no manifest: an object of ids and texts, or Apollo's format")
	}
	return operations, nil
}

// add takes a document in, also by the hash of its text.
func (l loader) add(id, text string) error {
	id = strings.TrimPrefix(id, prefix)
	switch known, ok := l.byID[id]; {
	case id == "" || len(id) > MaxID:
		return fmt.Errorf("an id has 1 to %d bytes", MaxID)
	case ok && known != text:
		return errors.New("the id stands for another text already")
	case len(l.texts) == MaxDocuments:
		return fmt.Errorf("there are more than %d documents", MaxDocuments)
	}
	if l.texts[text] == nil {
		if err := l.limit.CheckText(text); err != nil {
			return err
		}
		parsed, errs := gqlparser.LoadQueryWithRules(l.schema, text, nil)
		if len(errs) > 0 {
			return errors.New(mistakes(errs))
		}
		l.texts[text] = parsed
	}
	l.byID[id], l.byID[hashOf(text)] = text, text
	return nil
}

func mistakes(errs gqlerror.List) string {
	e := errs[0]
	if len(e.Locations) == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Locations[0].Line, e.Locations[0].Column, e.Message)
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
