//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package exporter

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock keeps other exports out of a folder, until the file is closed or the process ends. [ErrFolder], if one is there; file systems
// without locks have other errors.
func lock(folder *os.File) error {
	err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%w: another export writes into it", ErrFolder)
	}
	return err
}

// syncFolder makes sure that names are on the disk.
func syncFolder(folder *os.File) error { return folder.Sync() }
