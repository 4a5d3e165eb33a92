//go:build unix

package db

import "golang.org/x/sys/unix"

// freeBytes is how much this user may still write on the disk of a folder.
func freeBytes(folder string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil //nolint:unconvert // their types differ by system
}
