package testenv

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	version, err := exec.Command(bin, "--no-defaults", "--version").Output()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", bin, err)
	}
	recipe := fmt.Sprint(string(version), options, appUser)
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
	return os.CopyFS(dataDir(serverDir), os.DirFS(template))
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
