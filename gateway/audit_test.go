package gateway_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"

	"kith/gateway"
	"kith/internal/check"
	"kith/internal/testenv"
)

// TestGraphQLOverHTTPAudit runs the public audit suite of the GraphQL-over-HTTP specification. None
// of its 61 audits may fail, warn or leave a note.
func TestGraphQLOverHTTPAudit(t *testing.T) {
	testenv.NPM(t, "audit")
	s := serve(t, gateway.Config{})
	out, err := exec.CommandContext(t.Context(), "node", "audit/audit.mjs", s.url+"/graphql").Output()
	if err != nil {
		t.Fatalf("run the audits: %v", err)
	}
	var results []struct{ ID, Name, Status, Reason string }
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatalf("read %s: %v", out, err)
	}
	if len(results) < 61 {
		t.Errorf("%d audits ran; want 61", len(results))
	}
	for _, r := range results {
		check.Equal(t, fmt.Sprintf("%s: %s: %s", r.ID, r.Name, r.Reason), r.Status, "ok")
	}
}
