//go:build !unix

package bench

import "math"

// ownCPU is not known here.
func ownCPU() float64 { return math.NaN() }
