//go:build !unix

package cli

import "errors"

func openFiles() (uint64, error) { return 0, errors.ErrUnsupported }
