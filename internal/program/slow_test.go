package program_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// slowLine is a log line about a slow operation, in JSON.
type slowLine struct {
	Level, Msg, Operation, Name, SHA256 string
	RequestID                           string  `json:"request_id"`
	Took                                float64 `json:"took_ms"`
	Cost, Statements, Rows              int
	Shards                              []int
	Errors                              *int
}

// slowLineOf waits for the line about the operation of a request.
func slowLineOf(t *testing.T, g *kithtest.Gateway, id string) (line slowLine) {
	t.Helper()
	g.Until(t, "log the slow operation "+id, func() bool {
		for text := range strings.Lines(g.Stderr()) {
			line = slowLine{}
			if json.Unmarshal([]byte(text), &line) == nil && line.RequestID == id && line.Msg == "slow operation" {
				return true
			}
		}
		return false
	})
	return line
}

// adminToken is a token of a service with the scope admin, for gateways with --jwt-secret.
func adminToken(t *testing.T) string { t.Helper(); return signed(t, jwt.MapClaims{"scope": "admin"}) }

// signed makes a token that is valid for an hour, for gateways with --jwt-secret.
func signed(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	claims["exp"] = time.Now().Add(time.Hour).Unix()
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	must.OK(t, err)
	return text
}

// Lines that are records are all in the log: each document that is not trusted, and each slow operation.
func TestRecordsAreNotSampled(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(folder, "manifest.json"), []byte(`{"known": "{ __typename }"}`), 0o600))
	g := kithtest.Start(t, kithtest.Args("--store", kithtest.DemoStore(t, 1), "--trusted-documents", folder, "--only-trusted", "log", "--slow-operation", "1ns"))
	const documents = 40
	for i := range documents {
		g.Query(t, fmt.Sprintf(`query Q%d { user(by: {id: "1"}) { name } }`, i), nil, new(any))
	}
	g.Until(t, "each is logged", func() bool {
		log := g.Stderr()
		return strings.Count(log, "a document is not trusted") == documents && strings.Count(log, "slow operation") == documents
	})
}

// TestASlowOperationIsFound: while its statement runs, the database server shows for which request. Once the operation has
// ended, the log says what it took, and an admin who repeats it sees what was read.
func TestASlowOperationIsFound(t *testing.T) {
	testenv.NotOn(t, "reads wait for no lock of another session", "tidb")
	t.Parallel()
	shards := newMariaDB(t, 2)
	g := kithtest.Start(t, kithtest.Args("--store", location(shards...), "--redundancy", "sync", "--jwt-secret", secret, "--cache-bytes", "0",
		"--statement-timeout", "60s", "--request-timeout", "60s", "--log-level", "debug", "--slow-operation", "1ms", "--log-format", "json"))
	token := adminToken(t)
	create := "mutation {"
	for id := range 10 {
		create += fmt.Sprintf(` u%d: createUser(id: %d, handle: \"user%d\", name: \"U\") { user { id } }`, id, id+1, id)
	}
	wholeAnswer(t, g, `{"query":"`+create+` }"}`, "Authorization", "Bearer "+token)

	for sent, c := range map[string]struct{ shown, id string }{
		"slow-1":               {"slow-1", "slow-1"},
		"*/ DROP TABLE users;": {"________________", ""}, // the gateway makes its own id
	} {
		db := shards[0].open(t)
		db.SetMaxOpenConns(1) // LOCK TABLES is for one connection only
		_, err := db.Exec("LOCK TABLES users WRITE")
		must.OK(t, err)
		ended := make(chan string)
		go func() {
			_, answer, err := send(g, tenUsers, "X-Request-Id", sent)
			ended <- fmt.Sprint(answer, err)
		}()
		g.Until(t, "the statement of "+sent, func() bool {
			return shards[0].text(t, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE '/* request="+c.shown+" */ %SELECT%'") == "1"
		})
		time.Sleep(2 * time.Millisecond) // longer than --slow-operation, because the server's answer alone may be faster
		_, err = db.Exec("UNLOCK TABLES")
		must.OK(t, err)
		check.Equal(t, "users in the answer", strings.Count(<-ended, `"name":"U"`), 10)
		if c.id == "" {
			continue
		}
		line := slowLineOf(t, g, c.id)
		if line.Level != "WARN" || line.Operation != "query" || line.Name != "Ten" || len(line.SHA256) != 64 || line.Took < 1 || line.Cost < 10 ||
			line.Statements != 2 || line.Rows != 10 || !slices.Equal(line.Shards, []int{0, 1}) || line.Errors == nil || *line.Errors != 0 {
			t.Errorf("%+v", line)
		}
	}
}
