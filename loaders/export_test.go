package loaders

import (
	"context"
	"time"
)

// WithWait changes how long a lone Load waits for company, in the requests of a context.
func WithWait(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, waitKey{}, d)
}
