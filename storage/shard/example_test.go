package shard_test

import (
	"fmt"

	"kith/storage/shard"
)

// A user is in one of 1,024 buckets permanently, and each shard owns a range of buckets.
func ExampleMap_Of() {
	four := shard.NewMap(4)
	its := shard.Even(four.Of(42), 4)
	fmt.Println("bucket", shard.BucketOf(42), "is on shard", four.Of(42), "with the buckets", its.First, "to", its.Last)
	// Output:
	// bucket 136 is on shard 0 with the buckets 0 to 255
}
