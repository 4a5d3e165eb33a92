package exporter

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"kith/files/graphfile"
)

// ErrFolder: the folder cannot take this export, and trying again does not help.
var ErrFolder = errors.New("the folder does not fit")

// folder is where an export goes, locked until it is closed.
type folder struct {
	path string
	file *os.File
}

// openFolder makes the folder if it is missing. No other account may read what users do.
func openFolder(path string) (*folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := lock(file); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &folder{path, file}, nil
}

func (f *folder) close() { _ = f.file.Close() }

func (f *folder) sync() error { return syncFolder(f.file) }

// named matches the files of an export, complete or not. The number is the part's.
var named = regexp.MustCompile(`^[a-z_]+-[0-9]{4,}\.(?:csv|txt)(?:\.gz)?(?:\.part)?$`)

// partSuffix ends the name of a file that is not complete.
const partSuffix = ".part"

// fileName is the name of the file of one kind and part.
func fileName(kind graphfile.Kind, part int, gzip bool) string {
	name := fmt.Sprintf("%s-%04d.txt", kind, part)
	if kind.IsRecords() {
		name = fmt.Sprintf("%s-%04d.csv", kind, part)
	}
	if gzip {
		name += ".gz"
	}
	return name
}

// examine reads the manifest, and refuses a folder with files that do not belong to an export.
func (f *folder) examine() (m graphfile.Manifest, found bool, err error) {
	if m, found, err = graphfile.ReadManifest(f.path); err != nil {
		return m, false, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return m, false, err
	}
	for _, e := range entries {
		name := e.Name()
		isManifest := name == graphfile.ManifestName || name == graphfile.ManifestName+partSuffix
		if !isManifest && !(found && named.MatchString(name)) {
			return m, false, fmt.Errorf("%w: %s holds %s, which is no file of an export: choose an empty folder", ErrFolder, f.path, name)
		}
	}
	return m, found, nil
}

// removeBut removes all files that the manifest does not name: those of parts that were not completed.
func (f *folder) removeBut(m graphfile.Manifest) error {
	named := map[string]bool{graphfile.ManifestName: true}
	for _, p := range m.Done {
		for _, file := range p.Files {
			named[file.Name] = true
		}
	}
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if named[e.Name()] {
			continue
		}
		if err := os.Remove(filepath.Join(f.path, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// save replaces the manifest: after a crash there is the old one or the new one.
func (f *folder) save(m graphfile.Manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	file, err := newFile(filepath.Join(f.path, graphfile.ManifestName), false)
	if err != nil {
		return err
	}
	defer file.abandon()
	if err := file.write(append(text, '\n')); err != nil {
		return err
	}
	if _, err := file.finish(); err != nil {
		return err
	}
	return f.sync()
}
