package db

import (
	"context"
	"regexp"

	"kith/storage/sqlstore/internal/db/prepared"
)

// requestID is what may be in a comment: nothing that ends it, or that makes a server take it for an executable
// one.
var requestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// commented puts the id of the request into a statement. The comment is in front, because a list of processes shows only
// how a statement begins. Statements with an id are all different, so that none is prepared: see [prepared.Once].
func (d *DB) commented(ctx context.Context, text string) string {
	if d.cfg.RequestID == nil {
		return text
	}
	id := d.cfg.RequestID(ctx)
	if !requestID.MatchString(id) {
		return text
	}
	return prepared.Once + "request=" + id + " */ " + text
}
