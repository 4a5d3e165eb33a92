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
	cfg, proxies, err := s.read()
	if err != nil {
		return nil, err
	}
	service := &Service{
		Passwords:  NewPasswords(),
		Limits:     NewLimits(LimitsConfig{PerHandle: s.LoginLimit, PerAddress: s.AddressLimit, PerUser: s.WriteLimit}),
		Proxies:    proxies,
		Providers:  cfg.Providers,
		MadeSecret: cfg.Secrets == nil && len(cfg.Providers) == 0,
	}
	if service.MadeSecret {
		cfg.Secrets = RandomSecret()
	}
	if cfg.Secrets != nil {
		service.Issuer, err = NewIssuer(IssuerConfig{Secrets: cfg.Secrets, TTL: s.TokenTTL, SessionTTL: s.SessionTTL})
		if err != nil {
			return nil, misset("jwt-secret", err)
		}
	}
	cfg.Logger = logger
	if service.Verifier, err = NewVerifier(ctx, cfg); err != nil {
		return nil, misset("identity", err)
	}
	if s.JWTSecretFile != "" {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		service.stop = stop
		service.running.Go(func() { cfg.Secrets.follow(ctx, s.JWTSecretFile, secretEvery, logger) })
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
