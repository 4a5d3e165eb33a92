package testenv

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// logFileSize is InnoDB's redo log: room for what tests import, and
// quick to copy.
const logFileSize = "16M"

// appUser gives tests their account. Bootstrap mode starts without grant tables,
// hence the FLUSH before it.
const appUser = `FLUSH PRIVILEGES;
CREATE USER 'app'@'%' IDENTIFIED BY 'app';
GRANT ALL ON *.* TO 'app'@'%' WITH GRANT OPTION;
CREATE USER 'app'@'localhost' IDENTIFIED BY 'app';
GRANT ALL ON *.* TO 'app'@'localhost' WITH GRANT OPTION;
`

// copyTemplate puts a fresh data directory into a server's folder. Initialising one takes a good
// part of a second, and some seconds on a slow disk, so it is done once per server version,
// options and user, and copied.
func copyTemplate(serverDir, name, bin string, options []string, initialise func(draft, scratch string) error) error {
	version, err := versionOf(bin)
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", bin, err)
	}
	recipe := fmt.Sprint(version, options, appUser, "2") // the number is that of this code's way to make it
	key := name + fmt.Sprintf("-%x", sha256.Sum256([]byte(recipe)))[:13]
	var template string
	err = withBase(func(base string) error {
		template = filepath.Join(base, key)
		if _, err := os.Stat(template); err == nil {
			return nil
		}
		return makeTemplate(template, initialise)
	})
	if err != nil {
		return err
	}
	return copyFolder(dataDir(serverDir), template)
}

// versionOf is what a program says of itself. To ask takes some hundredths of a second, so a program is asked once.
func versionOf(bin string) (string, error) {
	versions.Lock()
	defer versions.Unlock()
	if said := versions.said[bin]; said != "" {
		return said, nil
	}
	said, err := exec.Command(bin, "--no-defaults", "--version").Output()
	versions.said[bin] = string(said)
	return string(said), err
}

var versions = struct {
	sync.Mutex
	said map[string]string // by program
}{said: map[string]string{}}

// copyFolder copies a folder. Blocks of zeros, which are most of what InnoDB has at first, become holes: to write them all, and to
// give their memory back, took a fifth of the processor time of a server that starts.
func copyFolder(to, from string) error {
	block, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		return copyFile(target, path, block, zeros)
	})
}

func copyFile(to, from string, block, zeros []byte) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer target.Close()
	for at := int64(0); ; at += int64(len(block)) {
		n, err := io.ReadFull(source, block)
		if n > 0 && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := target.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return target.Truncate(at + int64(n)) // what was left out at the end is part of the file, too
		case err != nil:
			return err
		}
	}
}

// makeTemplate initialises a data directory beside path and moves it there when it
// is complete: an interrupted attempt leaves nothing that looks finished.
func makeTemplate(path string, initialise func(draft, scratch string) error) error {
	draft := path + ".draft"
	if err := os.RemoveAll(draft); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(path), "tmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := initialise(draft, scratch); err != nil {
		return err
	}
	return os.Rename(draft, path)
}
