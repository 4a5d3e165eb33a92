package idset

// What version 1 of the binary forms looks like.
const (
	storedChunk  = "c10500013f00000000000000000000000000000000f9000000000000c082ffffffffffff0ff03737d7"
	storedFlakes = "c1220200040104801c1300d0f77f3e00f4fd9f0f007dffe70340dffff900d0f77f3e00f4fd9f0f007dffe70340dffff900" +
		"d0f77f3e00f4fd9f0f007dffe70340dffff900d0f77f3e00f4fd9f0f007dffe70340dffff900d007a4281a5f"
	storedSet      = "c20529" + storedChunk
	storedTimeline = "c4030ec30300090404000802214083285c"
)
