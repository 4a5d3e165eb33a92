package trusted_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// TestManifestsOfRealTools: graphql-codegen, Relay's compiler and Apollo's tool write manifests for Kith's schema. A
// gateway that answers nothing else answers each document by the id in its manifest.
func TestManifestsOfRealTools(t *testing.T) {
	testenv.Clients(t)
	at := t.TempDir()
	in := func(folder, name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		must.That(t, err == nil, "%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	testenv.NPM(t, "tools")
	shared, err := filepath.Abs("tools/node_modules")
	must.OK(t, err)
	for _, name := range []string{"package.json", "codegen.mjs", "profile.graphql", "follow.graphql", "relay.config.json", "persisted-query-manifest.config.json", "src/profile.js"} {
		content := must.File(t, filepath.Join("tools", name))
		write(t, at, name, string(content))
	}
	must.OK(t, os.Symlink(shared, filepath.Join(at, "node_modules")))
	write(t, at, "schema.graphql", kithtest.Run(t, kithtest.Args("schema")).Stdout)
	write(t, at, "out/relay.json", "{}")
	write(t, at, "artifacts/.keep", "")
	in(at, "node", "codegen.mjs", "schema.graphql", "out/codegen.json")
	in(at, "node_modules/.bin/relay-compiler", "relay.config.json")
	in(at, "node_modules/.bin/generate-persisted-query-manifest", "--config", "persisted-query-manifest.config.json")

	gateway := kithtest.Start(t, kithtest.Args("--demo", "--trusted-documents", filepath.Join(at, "out"), "--only-trusted", "on"))
	for _, tool := range []string{"codegen", "relay", "apollo"} {
		ids := idsOf(t, filepath.Join(at, "out", tool+".json"))
		check.That(t, len(ids) == 2, "%s has registered %d documents", tool, len(ids))
		queries := 0
		for _, id := range ids {
			response, err := http.Get(gateway.URL + "/graphql?documentId=" + id + "&variables=" + url.QueryEscape(`{"id":"1"}`))
			must.OK(t, err)
			text, err := io.ReadAll(response.Body)
			response.Body.Close()
			must.OK(t, err)
			switch response.StatusCode {
			case http.StatusOK:
				queries++
				check.That(t, strings.Contains(string(text), `"followings":`) && !strings.Contains(string(text), `"errors"`), "%s, %s: %s", tool, id, text)
			case http.StatusMethodNotAllowed: // the mutation
			default:
				t.Errorf("%s, %s: %d %s", tool, id, response.StatusCode, text)
			}
		}
		check.That(t, queries == 1, "%s: %d queries were answered", tool, queries)
	}
	answer, err := gateway.Ask("{ viewer { user { id } } }", nil)
	check.That(t, err == nil && strings.Contains(fmt.Sprint(answer.Errors), "FORBIDDEN"), "another document: %+v, %v", answer, err)
}

// write writes a file into a folder.
func write(t *testing.T, folder, name, content string) {
	t.Helper()
	path := filepath.Join(folder, name)
	must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.OK(t, os.WriteFile(path, []byte(content), 0o644))
}

// idsOf are the ids in a manifest of either form.
func idsOf(t *testing.T, path string) (ids []string) {
	t.Helper()
	content := must.File(t, path)
	var manifest struct{ Operations []struct{ ID string } }
	if err := json.Unmarshal(content, &manifest); err == nil && manifest.Operations != nil {
		for _, o := range manifest.Operations {
			ids = append(ids, o.ID)
		}
		return ids
	}
	var operations map[string]string
	must.OK(t, json.Unmarshal(content, &operations))
	for id := range operations {
		ids = append(ids, id)
	}
	return ids
}
