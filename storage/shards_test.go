package storage_test

import (
	"fmt"

	"kith/storage"
)

// A user is in one of 1,024 buckets permanently, and each shard owns a range of buckets.
func ExampleShardMap_Of() {
	four := storage.NewShardMap(4)
	its := storage.EvenBuckets(four.Of(42), 4)
	fmt.Println("bucket", storage.UserID(42).Bucket(), "is on shard", four.Of(42), "with the buckets", its.First, "to", its.Last)
	// Output:
	// bucket 136 is on shard 0 with the buckets 0 to 255
}
