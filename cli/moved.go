package cli

import (
	"errors"
	"os"
	"strings"
)

// moved are flags that are gone, and what to write instead. Their variables are gone as well.
var moved = map[string]string{
	"jwks":           `it is in the file of --identity now, as [{"issuer": "ISS", "jwks": "FILE or URL", "audience": ["AUD"]}]`,
	"jwt-issuer":     `it is in the file of --identity now, as "issuer"; of tokens that are signed with the secret, iss does not count`,
	"jwt-audience":   `it is in the file of --identity now, as "audience": ["AUD"]; of tokens that are signed with the secret, aud does not count`,
	"jwt-user-claim": `it is in the file of --identity now, as "userClaim": "CLAIM"; in tokens that are signed with the secret, it is sub`,
	"jwt-subjects":   `it is in the file of --identity now, as "subjects": "mapped" or "ids"`,
	"jwt-issuers":    `it is --identity FILE (KITH_IDENTITY) now, with the same file`,
}

// checkMoved refuses flags and variables that are gone: to start without what they say may let in more than was meant.
func checkMoved(args []string) error {
	for _, given := range append(os.Environ(), args...) {
		name, _, _ := strings.Cut(given, "=")
		if variable, ok := strings.CutPrefix(name, "KITH_"); ok {
			name = "--" + strings.ToLower(strings.ReplaceAll(variable, "_", "-"))
		}
		flag, isFlag := strings.CutPrefix(name, "--")
		if says, ok := moved[flag]; ok && isFlag {
			return Misset(flag, errors.New(says))
		}
	}
	return nil
}
