//go:build !unix

package bench

// ownCPU is not known on this system.
func ownCPU() float64 { return unknown }
