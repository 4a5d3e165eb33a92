//go:build !race

package limits_test

// slowdown stretches time limits under the race detector.
const slowdown = 1
