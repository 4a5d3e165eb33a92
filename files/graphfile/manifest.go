package graphfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"kith/storage"
	"kith/storage/sides"
)

// ManifestName is the file of an export that says what the others are.
const ManifestName = "kith-export.json"

// ManifestFormat is the form of a manifest and of the files that it names.
const ManifestFormat = 1

// maxManifest is how many bytes a manifest may have: each of 1,024 parts with a file of 250 bytes for each kind is far less.
const maxManifest = 16 << 20

// Manifest says what an export is of, and which of its parts are whole.
type Manifest struct {
	Format int          `json:"format"`
	Store  string       `json:"store"` // the identity of the store
	Gzip   bool         `json:"gzip"`
	Cursor string       `json:"cursor,omitempty"` // of the changes of the store, from before its first part; "" if its logs cannot be read
	Done   []ExportPart `json:"done"`             // ascending
}

// ExportPart is what a shard had at one moment of the buckets that other parts do not have. A shard
// is one part, unless buckets have moved between shards meanwhile.
type ExportPart struct {
	Part    int                   `json:"part"` // the number in the names of its files
	Shard   int                   `json:"shard"`
	Buckets []storage.BucketRange `json:"buckets"`
	At      time.Time             `json:"at"` // just before the moment, by the clock of the exporter
	Files   []File                `json:"files"`
}

// File is one file of an export. Files without rows are not written.
type File struct {
	Name   string `json:"name"`
	Kind   Kind   `json:"kind"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"` // of the file, as it lies on disk
	Digest Mixed  `json:"digest"`
}

// Mixed is the digest of a file's rows: the exclusive or over all rows, so that digests of shards add
// up to the same whatever the number of shards. Edges are mixed by [storage.Edge.Mix].
type Mixed uint64

// MarshalText writes 16 hexadecimal digits: JSON's numbers do not hold 64 bits everywhere.
func (m Mixed) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(m)), nil }

// UnmarshalText reads what MarshalText writes.
func (m *Mixed) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	*m = Mixed(n)
	return err
}

// Missing are the buckets that no part has.
func (m Manifest) Missing() storage.Choice {
	missing := storage.ChooseBuckets(storage.BucketRange{Last: storage.Buckets - 1})
	for _, p := range m.Done {
		missing = missing.Without(storage.ChooseBuckets(p.Buckets...))
	}
	return missing
}

// Totals adds up the digests of the whole parts by kind.
func (m Manifest) Totals() map[Kind]sides.Digest {
	totals := make(map[Kind]sides.Digest)
	for _, s := range m.Done {
		for _, f := range s.Files {
			totals[f.Kind] = totals[f.Kind].Plus(sides.Digest{Rows: f.Rows, Mixed: uint64(f.Digest)})
		}
	}
	return totals
}

// ReadManifest reads the manifest in a folder; found is false where there is none.
func ReadManifest(dir string) (m Manifest, found bool, err error) {
	file, err := os.Open(filepath.Join(dir, ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	if err == nil && len(text) > maxManifest {
		err = fmt.Errorf("it has more than %d bytes", maxManifest)
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err == nil && len(m.Done) > storage.Buckets {
		err = fmt.Errorf("it has %d parts, more than there are buckets", len(m.Done))
	}
	if err != nil {
		return m, false, fmt.Errorf("read %s: %w", filepath.Join(dir, ManifestName), err)
	}
	if m.Format != ManifestFormat {
		return m, false, fmt.Errorf("%s has the format %d, this program knows %d", filepath.Join(dir, ManifestName), m.Format, ManifestFormat)
	}
	return m, true, nil
}

// Check sees that the files of a part are there and as long as they were.
func (s ExportPart) Check(dir string) error {
	for _, f := range s.Files {
		if filepath.Base(f.Name) != f.Name {
			return fmt.Errorf("%s names %q, which is not in its folder", ManifestName, f.Name)
		}
		info, err := os.Stat(filepath.Join(dir, f.Name))
		if err != nil {
			return err
		}
		if info.Size() != f.Bytes {
			return fmt.Errorf("%s has %d bytes, not the %d that were exported", filepath.Join(dir, f.Name), info.Size(), f.Bytes)
		}
	}
	return nil
}

// WholeExport lists the files of an export, with their folder. An error says why it is none, or is
// not whole.
func WholeExport(dir string) (files []string, err error) {
	m, found, err := ReadManifest(dir)
	missing := bytes.Count(m.Missing(), []byte{'1'})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, fmt.Errorf("%s is a directory without %s: it is no export", dir, ManifestName)
	case missing > 0:
		return nil, fmt.Errorf("the export in %s has %d of %d buckets: run the export again to finish it", dir, storage.Buckets-missing, storage.Buckets)
	}
	for _, s := range m.Done {
		if err := s.Check(dir); err != nil {
			return nil, err
		}
		for _, f := range s.Files {
			files = append(files, filepath.Join(dir, f.Name))
		}
	}
	return files, nil
}
