package gateway

import (
	"log/slog"
	"net/http"
	"time"

	"kith/graph/apierr"
)

// logged writes one line for each request.
func logged(logger *slog.Logger, level slog.Level, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !logger.Enabled(r.Context(), level) {
			next.ServeHTTP(w, r)
			return
		}
		start := time.Now()
		recorder := &recorder{ResponseWriter: w}
		defer func() {
			x := exchangeOf(r.Context())
			attrs := []slog.Attr{
				slog.String("request_id", x.id),
				slog.String("method", r.Method),
				slog.String("path", r.URL.Path), // never the query string: it holds the query's text
				slog.Int("status", recorder.status),
				slog.Int64("bytes", recorder.bytes),
				slog.Duration("took", time.Since(start)),
				slog.String("remote", r.RemoteAddr),
			}
			if x.outcome != "" {
				attrs = append(attrs,
					slog.String("operation", x.operation),
					slog.String("name", apierr.Shortened(x.name, 100)),
					slog.String("outcome", string(x.outcome)))
			}
			if id := x.span.TraceID(); id != "" {
				attrs = append(attrs, slog.String("trace_id", id))
			}
			if x.stream != nil {
				attrs = append(attrs,
					slog.String("transport", x.stream.transport),
					slog.Int64("operations", x.stream.operations.Load()),
					slog.Int64("answers", x.stream.answers.Load()),
					slog.String("ended", x.stream.ended))
			}
			logger.LogAttrs(r.Context(), level, "request", attrs...)
		}()
		next.ServeHTTP(recorder, r)
	})
}

// recorder notes the outcome of an answer.
type recorder struct {
	http.ResponseWriter
	status int // 0 until something was sent
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 || r.status < 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the writer below.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Flush passes the call on; streaming answers look for it.
func (r *recorder) Flush() { _ = http.NewResponseController(r.ResponseWriter).Flush() }
