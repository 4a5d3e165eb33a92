package identity

import (
	"encoding/json"
	"net/http"
	"strings"

	"kith/graph/apierr"
)

// refuse answers as the gateway does: a GraphQL response with a code.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	known, ok := apierr.Of(err)
	if !ok {
		known = apierr.ServerAtFault.Error("internal error")
	}
	status := http.StatusInternalServerError
	switch known.Code {
	case apierr.CodeUnauthenticated:
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", challenge(r))
	case apierr.CodeForbidden:
		status = http.StatusForbidden
		w.Header().Set("WWW-Authenticate", `Bearer realm="kith", error="insufficient_scope", scope="`+ScopeActAs+`"`)
	case apierr.CodeBadInput:
		status = http.StatusBadRequest
	case apierr.CodeUnavailable:
		status = http.StatusServiceUnavailable
	}
	body, err := json.Marshal(map[string]any{"errors": []any{
		map[string]any{"message": known.Message, "extensions": known.Extensions()},
	}})
	if err != nil {
		panic(err) // texts and booleans
	}
	media := "application/json"
	if strings.Contains(r.Header.Get("Accept"), "application/graphql-response+json") {
		media = "application/graphql-response+json"
	}
	w.Header().Set("Content-Type", media+"; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(body)
}

// challenge names the error only to clients that sent a token (RFC 6750 §3.1).
func challenge(r *http.Request) string {
	if r.Header.Get(headerAuthorization) == "" {
		return `Bearer realm="kith"`
	}
	return `Bearer realm="kith", error="invalid_token"`
}
