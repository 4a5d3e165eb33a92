package bench

// OwnCPU is the CPU seconds of this process.
var OwnCPU = ownCPU
