//go:build unix && !linux

package kithtest

import "syscall"

// childAttr shields the program from the terminal's Ctrl-C.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
