package kithtest

import "syscall"

// childAttr makes the program die with the test process, and shields it from the terminal's Ctrl-C.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
