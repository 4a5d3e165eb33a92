//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package exporter

import (
	"os"
	"syscall"
)

// lock keeps other exports out of a folder, until the file is closed or the process ends.
func lock(folder *os.File) error {
	return syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// syncFolder makes sure that names are on the disk.
func syncFolder(folder *os.File) error { return folder.Sync() }
