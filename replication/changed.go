package replication

import "kith/storage"

// Changed is what a log tells of one transaction or, of a relation_log, by one of its entries.
type Changed struct {
	storage.Change // its Rows are those of the log: one that was deleted by hand has type None at time 0

	Comments []storage.CommentID // that were written, or are gone

	ID string                 // names it in its log, the same whenever it is read
	At func() (string, error) // the position after it, to be asked only during the call that passes it
}
