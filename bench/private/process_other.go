//go:build !linux

package private

import "syscall"

// childAttr: only Linux relations a program's life to its parent's.
func childAttr() *syscall.SysProcAttr { return nil }
