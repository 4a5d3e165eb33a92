package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

// keyMethods are the methods that keys of a JWKS verify, one for each kind of key.
var keyMethods = []string{"RS256", "ES256", "EdDSA"}

// minRSA is how long an RSA key must be, in bits (RFC 7518 §3.3).
const minRSA = 2048

// keySet is the usable keys of a JWKS (RFC 7517).
type keySet []verificationKey

type verificationKey struct {
	kid    string
	method string
	key    jwt.VerificationKey
}

// parseKeys reads a JWKS. Keys that we cannot use, such as those for encryption or of unknown
// kinds, are skipped; a set without a usable key is refused.
func parseKeys(text []byte) (keySet, error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("it is no JWKS: %w", err)
	}
	var set keySet
	var reason error
	for _, raw := range document.Keys {
		key, err := parseKey(raw)
		if err != nil {
			reason = errors.Join(reason, err)
			continue
		}
		set = append(set, key)
	}
	if len(set) == 0 {
		return nil, errors.Join(fmt.Errorf("none of its %d keys is an RSA, P-256 or Ed25519 key for signatures", len(document.Keys)), reason)
	}
	return set, nil
}

func parseKey(raw []byte) (verificationKey, error) {
	// The library drops key_ops.
	var usage struct {
		Operations []string `json:"key_ops"`
	}
	var key jose.JSONWebKey
	if err := json.Unmarshal(raw, &usage); err != nil {
		return verificationKey{}, err
	}
	if err := key.UnmarshalJSON(raw); err != nil {
		return verificationKey{}, err
	}
	method, err := methodOf(key.Key)
	if err != nil {
		return verificationKey{}, err
	}
	switch {
	case key.Use != "" && key.Use != "sig",
		usage.Operations != nil && !slices.Contains(usage.Operations, "verify"):
		return verificationKey{}, errors.New("a key is not for signatures")
	case key.Algorithm != "" && key.Algorithm != method && (method != "EdDSA" || key.Algorithm != "Ed25519"): // RFC 9864
		return verificationKey{}, fmt.Errorf("a key is for %q, of which %s is accepted", key.Algorithm, method)
	}
	return verificationKey{key.KeyID, method, key.Key}, nil
}

// methodOf pins the method to the kind of the key.
func methodOf(key any) (string, error) {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < minRSA {
			return "", fmt.Errorf("an RSA key has %d bits, %d are the least", key.N.BitLen(), minRSA)
		}
		return "RS256", nil
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return "", errors.New("an EC key is not on P-256")
		}
		return "ES256", nil
	case ed25519.PublicKey:
		return "EdDSA", nil
	}
	return "", errors.New("a key is of a kind that is not used here") // private and symmetric ones, too
}

// has reports whether there is a key with this id, whatever its kind.
func (s keySet) has(kid string) bool {
	return slices.ContainsFunc(s, func(k verificationKey) bool { return k.kid == kid })
}

// find returns the keys of an id that fit a method. Without an id it must be
// clear which key is meant.
func (s keySet) find(kid, method string) []jwt.VerificationKey {
	var found []jwt.VerificationKey
	for _, k := range s {
		if k.method == method && (kid == "" || k.kid == kid) {
			found = append(found, k.key)
		}
	}
	if kid == "" && len(found) > 1 {
		return nil
	}
	return found
}
