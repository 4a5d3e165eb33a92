package gateway_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"

	"kith/gateway"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

// TestGraphQLOverHTTPAudit runs the public audit suite of the GraphQL-over-HTTP specification. None
// of its 61 audits may fail, warn or leave a note.
func TestGraphQLOverHTTPAudit(t *testing.T) {
	testenv.NPM(t, "audit")
	s := serve(t, gateway.Config{})
	out, err := exec.CommandContext(t.Context(), "node", "audit/audit.mjs", s.url+"/graphql").Output()
	must.That(t, err == nil, "run the audits: %v", err)
	var results []struct{ ID, Name, Status, Reason string }
	must.OK(t, json.Unmarshal(out, &results))
	check.Least(t, "audits", len(results), 61)
	for _, r := range results {
		check.Equal(t, fmt.Sprintf("%s: %s: %s", r.ID, r.Name, r.Reason), r.Status, "ok")
	}
}
