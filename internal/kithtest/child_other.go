//go:build unix && !linux

package kithtest

import "syscall"

// childAttr keeps the terminal's Ctrl-C from the program.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
