package loaders

import "time"

// SetWait changes how long a lone Load waits for company, for the loaders made
// from now on, until undo is called.
func SetWait(d time.Duration) (undo func()) {
	before := wait
	wait = d
	return func() { wait = before }
}
