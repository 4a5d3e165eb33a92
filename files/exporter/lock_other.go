//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package exporter

import "os"

// lock does nothing: folders cannot be locked here.
func lock(*os.File) error { return nil }

// syncFolder does nothing: folders cannot be synced here.
func syncFolder(*os.File) error { return nil }
