package loaders

import "time"

// SetWait changes how long a lone Load waits, for the loaders made from now on. It
// returns the time it was.
func SetWait(d time.Duration) time.Duration {
	before := wait
	wait = d
	return before
}
