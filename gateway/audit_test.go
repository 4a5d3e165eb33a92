package gateway_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kith/gateway"
	"kith/internal/testenv"
)

// TestGraphQLOverHTTPAudit runs the public audit suite of the GraphQL-over-HTTP
// specification, 61 audits of which none may fail, be warned about or noted.
func TestGraphQLOverHTTPAudit(t *testing.T) {
	installAudit(t)
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
		if r.Status != "ok" {
			t.Errorf("%s %s: %s: %s", r.Status, r.ID, r.Name, r.Reason)
		}
	}
}

// installAudit fetches the suite into the git-ignored audit/node_modules once.
func installAudit(t *testing.T) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			testenv.Missing(t, program+" is not installed")
		}
	}
	if _, err := os.Stat(filepath.Join("audit", "node_modules", "graphql-http")); err == nil {
		return
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund")
	install.Dir = "audit"
	if out, err := install.CombinedOutput(); err != nil {
		testenv.Missing(t, "npm ci: "+err.Error()+": "+string(out))
	}
}
