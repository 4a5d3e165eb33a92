package trusted

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Bounds of files.
const (
	maxFile  = 64 << 20
	maxFiles = 1000
)

// Folder is a folder of manifests: files *.json as graphql-codegen's client preset and Relay's compiler write
// them (an object of ids and texts), or as Apollo's generate-persisted-query-manifest does, and *.graphql and
// *.gql, whose ids are their hashes. Files in subfolders count, too. The folder must have documents.
type Folder string

// stamp changes whenever a manifest is changed, added or removed: names, sizes and times of the files.
func (f Folder) stamp() (string, error) {
	var stamp strings.Builder
	err := f.files(func(path string, info fs.FileInfo) error {
		fmt.Fprintf(&stamp, "%s\x00%d\x00%d\n", path, info.Size(), info.ModTime().UnixNano())
		return nil
	})
	return stamp.String(), err
}

// each reads the manifests. If take returns an error, each ends with it, and adds where the manifest is.
func (f Folder) each(take func(Manifest) error) error {
	documents := 0
	err := f.files(func(path string, info fs.FileInfo) error {
		m, err := readFile(path, info)
		documents += len(m)
		if err == nil {
			err = take(m)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return err
	})
	if err == nil && documents == 0 {
		err = errors.New("there are no documents in it: files *.json, *.graphql or *.gql")
	}
	return err
}

// files calls one for each file that may be a manifest. A folder may be a single file, or a link to a folder, of which the stamp has the
// name behind the link: files of two releases may have the same sizes and times.
func (f Folder) files(one func(path string, info fs.FileInfo) error) error {
	files, root := 0, string(f)
	if info, err := os.Stat(root); err == nil && info.IsDir() {
		if root, err = filepath.EvalSymlinks(root); err != nil {
			return err
		}
	}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if extension := filepath.Ext(path); extension != ".json" && extension != ".graphql" && extension != ".gql" {
			return nil
		}
		if files++; files > maxFiles {
			return fmt.Errorf("there are more than %d files", maxFiles)
		}
		info, err := os.Stat(path) // follows links
		if err != nil {
			return err
		}
		return one(path, info)
	})
}

func readFile(path string, info fs.FileInfo) (Manifest, error) {
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("it is no file of at most %d bytes", maxFile)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(path) != ".json" {
		return Manifest{HashOf(string(content)): string(content)}, nil
	}
	return Parse(content)
}

// Parse reads a manifest in either form.
func Parse(content []byte) (Manifest, error) {
	m := Manifest{}
	var apollo map[string]json.RawMessage // by exact names
	var format string
	if json.Unmarshal(content, &apollo) == nil && json.Unmarshal(apollo["format"], &format) == nil && format != "" {
		if version := string(apollo["version"]); format != "apollo-persisted-query-manifest" || version != "1" {
			return nil, fmt.Errorf("it has the format %.50q, version %.50s; apollo-persisted-query-manifest, version 1, is known", format, version)
		}
		var operations []map[string]any
		if err := json.Unmarshal(apollo["operations"], &operations); err != nil {
			return nil, fmt.Errorf("its operations are no list: %w", err)
		}
		for _, o := range operations {
			id, _ := o["id"].(string)
			text, _ := o["body"].(string)
			if known, ok := m[id]; ok && known != text {
				return nil, fmt.Errorf("document %.100q: the id stands for another text already", id)
			}
			m[id] = text
		}
		return m, nil
	}
	if err := json.Unmarshal(content, &m); err != nil {
		return nil, errors.New("it is no manifest: an object of ids and texts, or Apollo's format")
	}
	return m, nil
}
