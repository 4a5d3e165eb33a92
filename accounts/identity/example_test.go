package identity_test

import (
	"context"
	"fmt"

	"kith/accounts/identity"
)

// A gateway that signs users in issues tokens, and verifies them with the same secret.
func ExampleVerifier_Verify() {
	secrets := identity.NewSecrets([]byte("a secret of at least 32 bytes ...."))
	issuer, err := identity.NewIssuer(identity.IssuerConfig{Secrets: secrets})
	if err != nil {
		panic(err)
	}
	verifier, err := identity.NewVerifier(context.Background(), identity.Config{Secrets: secrets})
	if err != nil {
		panic(err)
	}
	defer verifier.Close()
	token, _, err := issuer.Issue(42, 0)
	if err != nil {
		panic(err)
	}
	viewer, err := verifier.Verify(context.Background(), token)
	fmt.Println(viewer.ID, err)
	_, err = verifier.Verify(context.Background(), token+"x")
	fmt.Println(err != nil)
	// Output:
	// 42 <nil>
	// true
}
