//go:build unix && !linux

package binlog_test

import "syscall"

func childAttr() *syscall.SysProcAttr { return nil }
