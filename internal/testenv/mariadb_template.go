package testenv

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// logFileSize is InnoDB's redo log: room for a bulk import without stalls, and
// quick to copy.
const logFileSize = "64M"

// appUser gives tests their account. Bootstrap mode starts without grant tables,
// hence the FLUSH before it.
const appUser = `FLUSH PRIVILEGES;
CREATE USER 'app'@'%' IDENTIFIED BY 'app';
GRANT ALL ON *.* TO 'app'@'%' WITH GRANT OPTION;
CREATE USER 'app'@'localhost' IDENTIFIED BY 'app';
GRANT ALL ON *.* TO 'app'@'localhost' WITH GRANT OPTION;
`

// copyTemplate puts a fresh data directory at dir. Initialising one takes a good
// part of a second, and some seconds on a slow disk, so it is done once per server
// version and user, and copied.
func copyTemplate(dir, mariadbd, installDB string) error {
	version, err := exec.Command(mariadbd, "--no-defaults", "--version").Output()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", mariadbd, err)
	}
	recipe := fmt.Sprint(string(version), commonArgs(), appUser)
	key := fmt.Sprintf("mariadb-%x", sha256.Sum256([]byte(recipe)))[:20]
	var template string
	err = withBase(func(base string) error {
		template = filepath.Join(base, key)
		if _, err := os.Stat(template); err == nil {
			return nil
		}
		return makeTemplate(template, mariadbd, installDB)
	})
	if err != nil {
		return err
	}
	return os.CopyFS(dir, os.DirFS(template))
}

// makeTemplate initialises a data directory beside path and moves it there when it
// is complete: an interrupted attempt leaves nothing that looks finished.
func makeTemplate(path, mariadbd, installDB string) error {
	draft := path + ".draft"
	if err := os.RemoveAll(draft); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(path), "tmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	options := append([]string{"--no-defaults", "--datadir=" + draft, "--tmpdir=" + tmp}, commonArgs()...)

	install := exec.Command(installDB, append(options, "--auth-root-authentication-method=normal", "--skip-test-db")...)
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", installDB, err, out)
	}
	bootstrap := exec.Command(mariadbd, append(options, "--bootstrap")...)
	bootstrap.Stdin = strings.NewReader(appUser)
	if out, err := bootstrap.CombinedOutput(); err != nil {
		return fmt.Errorf("%s --bootstrap: %w\n%s", mariadbd, err, out)
	}
	return os.Rename(draft, path)
}
