package sqlstore

import (
	"errors"
	"strings"
	"testing"

	"kith/internal/must"
	"kith/storage"
)

// The exceptions of the test of plans, with their reasons.

// unexplained are statements that are not explained, by their names. Each finds its rows by a key.
var unexplained = map[string]string{
	"sizes":               "it asks the data dictionary once, for the estimate of a move",
	"sqlReadMeta":         "observers do not see it",
	"sqlLastWords":        "observers do not see it",
	"sqlUsersToFill":      "observers do not see it",
	"sqlPruneLog":         "observers do not see it",
	"sqlReadLog":          "only SQLite has the table",
	"sqlLastOfLog":        "only SQLite has the table",
	"sqlLeavePacking":     "it is run when packing is broken off",
	"sqlHasMigrations":    "observers do not see it",
	"sqlCountMigrations":  "observers do not see it",
	"sqlFirstMigration":   "observers do not see it",
	"sqlNewestMigration":  "observers do not see it",
	"sqlSizeOfDatabase":   "observers do not see it",
	"sqlReadBuckets":      "its tables have few rows",
	"sqlAddedShards":      "its table has few rows",
	"sqlEpoch":            "its tables have one row each",
	"sqlAnyTable":         "observers do not see it",
	"sqlLastTable":        "observers do not see it",
	"sqlNewLife":          "observers do not see it",
	"sqlAdmitted":         "observers do not see it",
	"sqlDismiss":          "observers do not see it",
	"sqlLockEpoch":        "its table has one row",
	"sqlRaiseEpoch":       "its table has one row",
	"sqlSteps":            "its table has one row",
	"sqlClaims":           "its table has few rows",
	"sqlRemoveClaim":      "its table has few rows",
	"sqlAllArrived":       "its table has few rows",
	"sqlClaimHeld":        "its table has few rows",
	"sqlLoadCheckpoint":   "its table has few rows",
	"sqlDeleteCheckpoint": "its table has few rows",
	"sqlReadSecret":       "its table has few rows",
	"sqlPresentEpoch":     "its table has one row",
	"sqlNoted":            "it is run by moves, see TestBucketsMoveUnderLoad",
	"sqlCopied":           "its table has few rows",
	"sqlForgetCopied":     "its table has few rows",
	"sqlForgetNoted":      "it is run by moves, see TestBucketsMoveUnderLoad",
	"sqlLockOneCounts":    "only TiDB runs it, where rows are locked by others",
}

// notOnTiDB are what the names of statements begin with that this engine does not run.
var notOnTiDB = []string{"sqlListTexts", "sqlNeighbourTexts", "sqlLockVersions"}

// mayTurn are the look-ups that may build a temporary table and sort it. The table holds a sample of
// a fixed size.
var mayTurn = []string{"popular"}

// ofShards are the look-ups of claims: at most a row for each shard or bucket, and all rows are read.
var ofShards = []string{"shards", "buckets", "shard.buckets"}

// isScan reports whether a statement reads all rows of a range of owners.
func isScan(st Statement) bool { return strings.HasPrefix(st.Lookup, "reconcile.") }

// changeImports runs every statement on the imports of a user.
func changeImports(t *testing.T, s *Store, user storage.UserID) {
	t.Helper()
	part := storage.ImportPart{ImportID: storage.ImportID{Owner: user, Number: 5}, Kind: "FOLLOWS", Lines: "x", Done: true, DueAt: 5}
	for range storage.MaxImports + 1 { // the oldest makes room
		_, err := s.AddImport(t.Context(), []storage.ImportPart{part})
		must.OK(t, err)
	}
	part.Number++
	_, finished := s.FinishImport(t.Context(), part)
	deferred := s.DeferImports(t.Context(), user, 6)
	_, err := storage.ImportLookups.Get(t.Context(), s, user)
	q := storage.ShardQuery[storage.ImportPart]{Shard: s.shards.Of(user), Limit: 2, Until: 9}
	_, due := storage.DueImportLookups.Get(t.Context(), s, q)
	_, lines := storage.RefusedLookups.Get(t.Context(), s, storage.RefusedQuery{ImportID: part.ImportID, To: 99})
	_, removed := s.RemoveImport(t.Context(), part.ImportID)
	must.OK(t, errors.Join(finished, deferred, err, lines, due, removed))
}

// changeLists runs every statement on the lists of a user.
func changeLists(t *testing.T, s *Store, user storage.UserID) {
	t.Helper()
	list := storage.UserList{ListID: storage.ListID{Owner: user, Number: 5}, Name: "x"}
	for _, list.Name = range []string{"x", "y"} { // one of them is deleted
		made, _, err := s.CreateList(t.Context(), list)
		must.OK(t, err)
		list = made
	}
	_, _, failed := s.UpdateList(t.Context(), list.ListID, storage.ListChange{Public: new(!list.Public)})
	_, err := s.DeleteList(t.Context(), list.ListID)
	read := storage.ListLookups.Read(t.Context(), s, storage.ListsQuery{Owner: user, UpTo: 9, Limit: 9})
	must.OK(t, errors.Join(failed, err, read[0].Err))
}
