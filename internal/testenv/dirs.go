package testenv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Everything is under one folder per user:
//
//	/tmp/kith-testenv-<uid>/
//	  lock                    taken while folders are made or swept, across test processes
//	  ports/<port>            locked while a server of the tests has the port, up or down; always in /tmp
//	  <engine>-<key>/         an initialised data directory, copied for each new server
//	  run-<random>/           one test process; its lock is held as long as the process lives
//	    <kind>-<random>/      one server

// maxTemp keeps socket paths under the 107 bytes a unix socket address can hold.
const maxTemp = 36

var runDir struct {
	sync.Mutex
	path string
	lock *os.File // open for the life of the process: its flock says "in use"
}

// serverDir makes a new, empty folder for one server of this test process.
func serverDir(kind string) (string, error) {
	runDir.Lock()
	defer runDir.Unlock()
	if runDir.path == "" {
		err := withBase(func(base string) (err error) {
			sweep(base)
			if runDir.path, err = os.MkdirTemp(base, "run-"); err != nil {
				return err
			}
			runDir.lock, err = lockFile(filepath.Join(runDir.path, "lock"), syscall.LOCK_EX|syscall.LOCK_NB)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("make folder for test servers: %w", err)
		}
	}
	return os.MkdirTemp(runDir.path, kind+"-")
}

// removeRunDir removes this process's folder; its servers must be gone.
func removeRunDir() {
	runDir.Lock()
	defer runDir.Unlock()
	if runDir.path == "" {
		return
	}
	_ = os.RemoveAll(runDir.path)
	_ = runDir.lock.Close()
	runDir.path, runDir.lock = "", nil
}

// sweep removes the folders of processes that ended without cleaning up. The
// caller holds the base lock, so a folder whose lock is free has no owner.
func sweep(base string) {
	runs, _ := filepath.Glob(filepath.Join(base, "run-*"))
	for _, run := range runs {
		lock, err := lockFile(filepath.Join(run, "lock"), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(run)
		_ = lock.Close()
	}
}

// withBase calls f with the base folder, locked against other test processes.
func withBase(f func(base string) error) error {
	base, err := baseDir()
	if err != nil {
		return err
	}
	lock, err := lockFile(filepath.Join(base, "lock"), syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	return f(base)
}

// baseDir makes and returns the user's base folder.
func baseDir() (string, error) {
	if folder := os.TempDir(); len(folder) <= maxTemp {
		return baseIn(folder)
	}
	return baseIn("/tmp")
}

// baseIn makes and returns the user's base folder within another. Its name can be guessed, so a folder that another account made is refused.
func baseIn(folder string) (string, error) {
	base := filepath.Join(folder, fmt.Sprintf("kith-testenv-%d", os.Getuid()))
	if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(base)
	if err != nil {
		return "", err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Getuid() {
		return "", fmt.Errorf("%s is not a folder of this user", base)
	}
	return base, nil
}

// lockFile opens path and takes its flock, which ends with the returned file or
// the process. how is LOCK_EX, with LOCK_NB to fail instead of waiting.
func lockFile(path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return file, nil
}
