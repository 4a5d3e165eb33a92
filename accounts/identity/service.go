package identity

import (
	"context"
	"log/slog"
	"sync"
)

// Service is everything that finds out who is asking, made from the settings.
type Service struct {
	Verifier  *Verifier
	Issuer    *Issuer // nil if only an identity provider signs: nobody logs in here
	Passwords *Passwords
	Limits    *Limits
	Proxies   Proxies
	Providers []Provider // whose tokens are accepted

	// MadeSecret reports that no secret was configured and one was made for this run:
	// its tokens end with it, and other gateways do not know it.
	MadeSecret bool

	stop    context.CancelFunc // stops following the file of secrets; nil without one
	running sync.WaitGroup
}

// Open sets everything up; the caller closes it. Errors name the setting.
func (s *Settings) Open(ctx context.Context, logger *slog.Logger) (*Service, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	secrets, err := s.secrets()
	if err != nil {
		return nil, err
	}
	providers, err := s.providers()
	if err != nil {
		return nil, err
	}
	made := secrets == nil && len(providers) == 0
	if made {
		secrets = RandomSecret()
	}
	service := &Service{
		Passwords:  NewPasswords(PasswordConfig{}),
		Limits:     NewLimits(LimitsConfig{PerHandle: s.LoginLimit, PerAddress: s.AddressLimit, PerUser: s.WriteLimit}),
		MadeSecret: made,
		Providers:  providers,
	}
	if service.Proxies, err = ParseProxies(s.TrustedProxy); err != nil {
		return nil, misset("trusted-proxy", err)
	}
	if secrets != nil {
		service.Issuer, err = NewIssuer(IssuerConfig{
			Secrets: secrets, Issuer: s.JWTIssuer, Audience: s.JWTAudience, UserClaim: s.JWTUserClaim, TTL: s.TokenTTL, SessionTTL: s.SessionTTL,
		})
		if err != nil {
			return nil, misset("jwt-secret", err)
		}
	}
	service.Verifier, err = NewVerifier(ctx, Config{
		Secrets: secrets, Issuer: s.JWTIssuer, Audience: s.JWTAudience, UserClaim: s.JWTUserClaim, Providers: providers, Logger: logger,
	})
	if err != nil {
		flag := "jwks"
		if s.JWKS == "" {
			flag = "jwt-issuers"
		}
		return nil, misset(flag, err)
	}
	if s.JWTSecretFile != "" {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		service.stop = stop
		service.running.Go(func() { secrets.follow(ctx, s.JWTSecretFile, secretEvery, logger) })
	}
	return service, nil
}

// Close ends what runs in the background.
func (s *Service) Close() {
	if s.stop != nil {
		s.stop()
	}
	s.running.Wait()
	s.Verifier.Close()
}
