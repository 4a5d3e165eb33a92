package resolvers

import (
	"context"
	"fmt"
	"strings"

	"kith/accounts/identity"
	"kith/graph/apierr"
	"kith/graph/model"
	"kith/reconcile"
	"kith/resolvers/prefetch"
)

// admin returns an error unless the caller may see what concerns operators.
func admin(ctx context.Context) error {
	caller, ok := identity.Caller(ctx)
	switch {
	case !ok:
		return apierr.NotSignedIn.Error("sign in first")
	case !caller.Has(identity.ScopeAdmin):
		return apierr.ScopeMissing.Error("that takes a token with the scope %s", identity.ScopeAdmin)
	}
	return nil
}

func (r queries) Consistency(ctx context.Context) (*model.Consistency, error) {
	if err := admin(ctx); err != nil {
		return nil, err
	}
	type key struct{}
	statuses, err := prefetch.Shared(ctx, key{}, func() ([]reconcile.Status, error) { return reconcile.Statuses(ctx, r.Statuses) })
	if err != nil {
		return nil, fmt.Errorf("read what reconciling has found: %w", err)
	}
	c := &model.Consistency{Modes: make([]*model.ReconcileStatus, len(statuses))}
	for i, s := range statuses {
		m := &model.ReconcileStatus{Mode: model.ReconcileMode(upper(s.Mode)), At: s.At.Time(), OldestUnpairedSeconds: s.OldestUnpaired}
		for _, kind := range reconcile.Kinds() {
			m.Kinds = append(m.Kinds, &model.ReconcileKind{Kind: model.Disagreement(upper(kind)), Found: int32(s.Found[kind]), Repaired: int32(s.Repaired[kind])})
		}
		if s.Mode == reconcile.ModeFull {
			c.LastFullScanAt = &m.At
		}
		c.Modes[i] = m
	}
	return c, nil
}

// upper writes a name as GraphQL's enums are written.
func upper[T ~string](name T) string { return strings.ToUpper(string(name)) }
