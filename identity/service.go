package identity

import (
	"context"
	"log/slog"
)

// Service is everything about who is asking, as the settings want it.
type Service struct {
	Verifier  *Verifier
	Issuer    *Issuer // nil where only an identity provider signs: nobody logs in here
	Passwords *Passwords
	Limits    *Limits
	Proxies   Proxies

	// MadeSecret reports that no secret was configured and one was made for this run:
	// its tokens end with it, and other gateways do not know it.
	MadeSecret bool
}

// Open sets everything up; the caller closes it. Errors name the setting.
func (s *Settings) Open(ctx context.Context, logger *slog.Logger) (*Service, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	secret := []byte(s.JWTSecret)
	made := len(secret) == 0 && s.JWKS == ""
	if made {
		secret = RandomSecret()
	}
	service := &Service{
		Passwords:  NewPasswords(PasswordConfig{}),
		Limits:     NewLimits(LimitsConfig{PerHandle: s.LoginLimit, PerAddress: s.AddressLimit, PerUser: s.WriteLimit}),
		MadeSecret: made,
	}
	var err error
	if service.Proxies, err = ParseProxies(s.TrustedProxy); err != nil {
		return nil, misset("trusted-proxy", err)
	}
	if len(secret) > 0 {
		service.Issuer, err = NewIssuer(IssuerConfig{
			Secret: secret, Issuer: s.JWTIssuer, Audience: s.JWTAudience, UserClaim: s.JWTUserClaim, TTL: s.TokenTTL,
		})
		if err != nil {
			return nil, misset("jwt-secret", err)
		}
	}
	service.Verifier, err = NewVerifier(ctx, Config{
		Secret: secret, JWKS: s.JWKS, Issuer: s.JWTIssuer, Audience: s.JWTAudience, UserClaim: s.JWTUserClaim, Logger: logger,
	})
	if err != nil {
		return nil, misset("jwks", err)
	}
	return service, nil
}

// Close ends what runs in the background.
func (s *Service) Close() { s.Verifier.Close() }
