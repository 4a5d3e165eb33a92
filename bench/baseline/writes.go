package baseline

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// The writes of the mixed load, one transaction each, in Kith's lock order and with Kith's counts, so that the tables are as Kith would
// leave them. Rows that Kith writes for other processes (the relation_log of SQLite) and its marks and requests are left out.
const (
	sqlLockTwo = `
SELECT user_id
FROM user_counts
WHERE user_id IN (?, ?)
ORDER BY user_id /*! FOR UPDATE */`

	sqlTwoEdges = `
SELECT from_user_id, type, update_time
FROM following
WHERE from_user_id = ? AND to_user_id = ? OR from_user_id = ? AND to_user_id = ?`

	sqlAddCounts = `
UPDATE user_counts
SET following_count = following_count + ?, follower_count = follower_count + ?, friend_count = friend_count + ?, version = version + 1
WHERE user_id = ?`

	sqlRemark = `
REPLACE INTO edge_marks (from_user_id, to_user_id, special, remark)
SELECT from_user_id, to_user_id, 0, ?
FROM following
WHERE from_user_id = ? AND to_user_id = ? AND type = 1`

	sqlRename = `
UPDATE users
SET name = ?, updated_at = ?
WHERE user_id = ?`

	sqlAddHandle = `
INSERT INTO handles (handle, user_id, claimed_at)
VALUES (?, ?, ?)`

	sqlAddUser = `
INSERT INTO users (user_id, handle, name, bio, avatar_url, created_at, updated_at)
VALUES (?, ?, ?, '', '', ?, ?)`

	sqlNoCounts = `
INSERT INTO user_counts (user_id)
VALUES (?)`

	sqlPeers = `
SELECT f.to_user_id, 1, COALESCE(back.type, 0) = 1
FROM following f
LEFT JOIN follower back ON back.to_user_id = f.from_user_id AND back.from_user_id = f.to_user_id
WHERE f.from_user_id = ? AND f.type = 1
UNION ALL
SELECT from_user_id, 2, 0
FROM follower
WHERE to_user_id = ? AND type = 1`

	sqlDropUser = `
DELETE FROM users
WHERE user_id = ?`

	sqlRestHandle = `
UPDATE handles
SET claimed_at = ?
WHERE handle = (SELECT handle FROM users WHERE user_id = ?)`

	sqlDropCounts = `
DELETE FROM user_counts
WHERE user_id = ?`
)

var (
	sqlInsertEdge = ofBothTables(`
INSERT INTO following (from_user_id, to_user_id, type, update_time)
VALUES (?, ?, ?, ?)`)

	sqlUpdateEdge = ofBothTables(`
UPDATE following
SET type = ?, update_time = ?
WHERE from_user_id = ? AND to_user_id = ?`)
)

// ofBothTables is a statement of following and of follower.
func ofBothTables(text string) [2]string {
	return [2]string{text, strings.Replace(text, "following", "follower", 1)}
}

// writes holds a prepared statement for everything that is written.
type writes struct {
	db        *sql.DB
	isolation sql.IsolationLevel
	statements
}

func newWrites(db *sql.DB) (*writes, error) {
	isolation := sql.LevelReadCommitted
	if _, isMySQL := db.Driver().(*mysql.MySQLDriver); !isMySQL {
		isolation = sql.LevelDefault // here a transaction that writes has locked the file
	}
	all, err := prepare(db, sqlLockTwo, sqlTwoEdges, sqlAddCounts, sqlRemark, sqlRename, sqlAddHandle, sqlAddUser, sqlNoCounts, sqlPeers,
		sqlDropUser, sqlRestHandle, sqlDropCounts, sqlInsertEdge[0], sqlInsertEdge[1], sqlUpdateEdge[0], sqlUpdateEdge[1])
	return &writes{db, isolation, all}, err
}

// transaction runs statements until the first error, after which it does nothing.
type transaction struct {
	*sql.Tx
	statements
	err error
}

func (tx *transaction) exec(text string, args ...any) {
	if tx.err == nil {
		_, tx.err = tx.Stmt(tx.statements[text]).Exec(args...)
	}
}

func (tx *transaction) each(text string, args []any, row func(*sql.Rows) error) {
	if tx.err == nil {
		tx.err = each(tx.Stmt(tx.statements[text]), args, row)
	}
}

// transact runs a transaction, and runs it again after a deadlock.
func (w *writes) transact(do func(tx *transaction)) error {
	const tries = 10
	for try := 1; ; try++ {
		err := w.try(do)
		var lost *mysql.MySQLError
		if !errors.As(err, &lost) || lost.Number != 1213 && lost.Number != 1205 || try == tries {
			return err
		}
		time.Sleep(time.Duration(rand.IntN(try)+1) * time.Millisecond)
	}
}

func (w *writes) try(do func(tx *transaction)) error {
	began, err := w.db.BeginTx(context.Background(), &sql.TxOptions{Isolation: w.isolation})
	if err != nil {
		return err
	}
	tx := &transaction{began, w.statements, nil}
	if do(tx); tx.err != nil {
		return errors.Join(tx.err, tx.Rollback())
	}
	return tx.Commit()
}

// setFollow makes one user follow another, or ends the follow. It reports whether that was a change.
func (w *writes) setFollow(from, to int64, follows bool) (changed bool, err error) {
	err = w.transact(func(tx *transaction) {
		tx.each(sqlLockTwo, []any{from, to}, func(*sql.Rows) error { return nil })
		var there, back bool
		was, at := 0, int64(0)
		tx.each(sqlTwoEdges, []any{from, to, to, from}, func(rows *sql.Rows) error {
			var owner, time int64
			var kind int
			err := rows.Scan(&owner, &kind, &time)
			if owner == from {
				there, was, at = true, kind, time
			} else {
				back = kind == 1
			}
			return err
		})
		if changed = follows != (was == 1) && (there || follows); !changed {
			return
		}
		kind, step, friends := 0, -1, 0
		if follows {
			kind, step = 1, 1
		}
		if back {
			friends = step
		}
		now := max(time.Now().UnixMicro(), at+1)
		for i := range sqlInsertEdge {
			if there {
				tx.exec(sqlUpdateEdge[i], kind, now, from, to)
			} else {
				tx.exec(sqlInsertEdge[i], from, to, kind, now)
			}
		}
		tx.exec(sqlAddCounts, step, 0, friends, from)
		tx.exec(sqlAddCounts, 0, step, friends, to)
	})
	return changed, err
}

func (w *writes) remark(from, to int64, text string) (changed bool, err error) {
	result, err := w.statements[sqlRemark].Exec(text, from, to)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	if n == 0 && err == nil {
		err = sql.ErrNoRows // it does not follow
	}
	return n > 0, err
}

func (w *writes) rename(id int64, name string) ([]byte, error) {
	err := w.transact(func(tx *transaction) {
		tx.exec(sqlRename, name, time.Now().UnixMicro(), id)
		tx.exec(sqlAddCounts, 0, 0, 0, id)
	})
	b := append(make([]byte, 0, 160), `{"data":{"updateProfile":{"viewer":{"user":`...)
	b = appendNode(b, id, []byte(name))
	return append(b, `}}}}`...), err
}

func (w *writes) addUser(id int64, handle, name string) ([]byte, error) {
	err := w.transact(func(tx *transaction) {
		now := time.Now().UnixMicro()
		tx.exec(sqlAddHandle, handle, id, now)
		tx.exec(sqlAddUser, id, handle, name, now, now)
		tx.exec(sqlNoCounts, id)
	})
	b := append(make([]byte, 0, 160), `{"data":{"createUser":{"user":`...)
	b = appendNode(b, id, []byte(name))
	return append(b, `}}}`...), err
}

// deleteUser ends all edges between a user and others, and removes the user.
func (w *writes) deleteUser(id int64) error {
	return w.transact(func(tx *transaction) {
		peers, now := peersOf(tx, id), time.Now().UnixMicro()
		for _, peer := range slices.Sorted(maps.Keys(peers)) {
			part(tx, id, peer, *peers[peer], now)
		}
		tx.exec(sqlRestHandle, now+(30*24*time.Hour).Microseconds(), id)
		tx.exec(sqlDropUser, id)
		tx.exec(sqlDropCounts, id)
	})
}

// tie is how a peer is related to a user, as ones and zeroes.
type tie struct{ followed, follows, friends int }

// peersOf lists the peers that have an edge with a user.
func peersOf(tx *transaction, id int64) map[int64]*tie {
	peers := map[int64]*tie{}
	tx.each(sqlPeers, []any{id, id}, func(rows *sql.Rows) error {
		var peer int64
		var side, mutual int
		err := rows.Scan(&peer, &side, &mutual)
		if peers[peer] == nil {
			peers[peer] = &tie{}
		}
		if side == 1 {
			peers[peer].followed, peers[peer].friends = 1, mutual
		} else {
			peers[peer].follows = 1
		}
		return err
	})
	return peers
}

// part ends the edges between a user who is being deleted and one peer, whose counts the first statement locks.
func part(tx *transaction, id, peer int64, is tie, now int64) {
	tx.exec(sqlAddCounts, -is.follows, -is.followed, -is.friends, peer)
	for i := range sqlUpdateEdge {
		if is.followed > 0 {
			tx.exec(sqlUpdateEdge[i], 0, now, id, peer)
		}
		if is.follows > 0 {
			tx.exec(sqlUpdateEdge[i], 0, now, peer, id)
		}
	}
}

func each(statement *sql.Stmt, args []any, row func(*sql.Rows) error) error {
	rows, err := statement.Query(args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// viewerOf reads the user from a request's token, which it does not verify.
func viewerOf(r *http.Request) (int64, error) {
	_, rest, _ := strings.Cut(r.Header.Get("Authorization"), ".")
	payload, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return 0, err
	}
	var claims struct{ Sub string }
	if err := json.Unmarshal(text, &claims); err != nil {
		return 0, fmt.Errorf("a token without claims: %w", err)
	}
	return strconv.ParseInt(claims.Sub, 10, 64)
}
