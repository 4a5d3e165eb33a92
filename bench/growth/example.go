package growth

import (
	_ "embed"
	"encoding/json"
)

//go:embed example.json
var example []byte

// Example is the plan of bench/results/scale.md, which also says where its figures come from.
func Example() Plan {
	var p Plan
	if err := json.Unmarshal(example, &p); err != nil {
		panic(err) // it is part of the program, and a test reads it
	}
	return p
}
