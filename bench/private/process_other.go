//go:build !linux

package private

import "syscall"

// childAttr is nil, because only Linux can tie a program's life to its parent's.
func childAttr() *syscall.SysProcAttr { return nil }
