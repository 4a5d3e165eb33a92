package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/gateway/trusted"
	"kith/graph/apierr"
)

// parameterDocument is the parameter that names a document by its id, after appendix A of GraphQL over
// HTTP. It is passed on among the extensions, where a client cannot put it.
const parameterDocument = "documentId"

// OnlyTrusted is what happens to texts that are not among [Config.Trusted].
type OnlyTrusted string

// The ways to treat them.
const (
	TrustAll   OnlyTrusted = "off" // they are answered; the default
	TrustLog   OnlyTrusted = "log" // they are answered, counted, and the hash of each is logged once
	TrustKnown OnlyTrusted = "on"  // they are refused
)

// mostLogged is how many texts are remembered as logged; further ones are not logged.
const mostLogged = 1000

// registered lets clients send something shorter than a query's text: the id of a trusted document, or the
// hash of a text that the server has seen. It also finds texts that are not trusted.
type registered struct {
	trusted *trusted.Documents
	only    OnlyTrusted
	metrics *Metrics
	logger  *slog.Logger
	logged  *cache[bool] // by hash
	apq     extension.AutomaticPersistedQuery
}

func newRegistered(cfg Config) *registered {
	return &registered{
		trusted: cfg.Trusted, only: cfg.OnlyTrusted, metrics: cfg.Metrics, logger: cfg.Logger,
		logged: newCache(mostLogged, mostLogged, func(string, bool) int { return 1 }),
		apq: extension.AutomaticPersistedQuery{
			Cache: textCache{newCache(persistedEntries, persistedBytes, func(hash, text string) int { return len(hash) + len(text) })},
		},
	}
}

// ExtensionName names the extension in gqlgen's messages.
func (*registered) ExtensionName() string { return "Registered" }

// Validate implements [graphql.HandlerExtension].
func (r *registered) Validate(schema graphql.ExecutableSchema) error { return r.apq.Validate(schema) }

// resolve puts the text of a trusted document in for its id.
func (r *registered) resolve(params *graphql.RawParams) error {
	id, has := params.Extensions[parameterDocument].(string)
	if has {
		if params.Query != "" {
			return apierr.BadInput("send query or documentId, not both")
		}
		text, ok := r.trusted.Text(id)
		if !ok {
			return &apierr.Error{Code: codePersistedNotFound, Message: "there is no document with this id"}
		}
		delete(params.Extensions, parameterDocument)
		params.Query = text
		return nil
	}
	if persisted, ok := params.Extensions[extensionPersisted].(map[string]any); ok && r.trusted.Len() > 0 { // as Apollo's clients name documents of a manifest
		hash, _ := persisted["sha256Hash"].(string)
		if text, ok := r.trusted.Text(hash); ok && (params.Query == "" || params.Query == text) {
			delete(params.Extensions, extensionPersisted)
			params.Query = text
		}
	}
	return nil
}

// MutateOperationParameters finds the text of a query. gqlgen gives an unknown hash an error of its own
// kind, and no other error has one.
func (r *registered) MutateOperationParameters(ctx context.Context, params *graphql.RawParams) *gqlerror.Error {
	if err := r.resolve(params); err != nil {
		return gqlerror.Wrap(err)
	}
	if params.Query != "" && !r.answers(params.Query) { // then it is not kept by its hash, either
		return gqlerror.Wrap(r.check(ctx, params.Query, params.OperationName))
	}
	if err := r.apq.MutateOperationParameters(ctx, params); err != nil {
		if err.Extensions["code"] == nil {
			return gqlerror.Wrap(apierr.BadInput("%s", err.Message))
		}
		return err
	}
	if err := r.check(ctx, params.Query, params.OperationName); err != nil {
		return gqlerror.Wrap(err)
	}
	return nil
}

// answers reports whether a text is answered. A text that was answered before may no longer be.
func (r *registered) answers(text string) bool { return r.only != TrustKnown || r.trusted.Has(text) }

// check counts a text that is not trusted. If the text is refused, it returns an error that says
// so.
func (r *registered) check(ctx context.Context, text, operation string) error {
	switch {
	case r.only != TrustKnown && r.only != TrustLog || r.trusted.Has(text):
	case r.only == TrustKnown:
		r.metrics.untrusted("refused")
		return apierr.Forbidden("this server answers registered documents only: send a documentId")
	default:
		r.metrics.untrusted("answered")
		sum := sha256.Sum256([]byte(text))
		hash := hex.EncodeToString(sum[:])
		if _, ok := r.logged.Get(ctx, hash); !ok {
			r.logged.Add(ctx, hash, true)
			r.logger.WarnContext(ctx, "a document is not trusted", "sha256", hash, "operation", apierr.Shortened(operation, maxMessage))
		}
	}
	return nil
}
