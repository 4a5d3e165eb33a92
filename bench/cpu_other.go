//go:build !unix

package bench

// ownCPU is not known here.
func ownCPU() float64 { return unknown }
