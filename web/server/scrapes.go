// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/ironrail/ironrail/web/guard"
	"github.com/ironrail/ironrail/web/metrics"
)

// Scrapes is a socket for metrics alone.
type Scrapes struct {
	*socket
	guard *guard.Guard
}

// OpenScrapes opens a socket for metrics. Who may ask is as for the page: on loopback everybody who
// reaches it, elsewhere, over TLS, who has the token in folder, that of the state.
func OpenScrapes(l Listen, folder string, now func() time.Time) (*Scrapes, error) {
	at, err := listen(l, "metrics")
	if err != nil {
		return nil, err
	}
	g, err := at.protect(l, folder, false, now)
	if err != nil {
		return nil, errors.Join(err, at.Close())
	}
	return &Scrapes{at, g}, nil
}

// Serve answers scrapes until ctx is done, and then closes the socket.
func (s *Scrapes) Serve(ctx context.Context, m *metrics.Metrics) error {
	mux := http.NewServeMux()
	mux.Handle("GET "+metrics.Path, m.Handler())
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "Metrics for Prometheus are at "+metrics.Path+"\n")
	})
	s.http.Handler = s.guard.Handler(mux, func(w http.ResponseWriter, _ *http.Request, _ int, _ guard.Login) {
		http.Error(w, "Metrics need the token of the site: Authorization: Bearer TOKEN", http.StatusUnauthorized)
	})
	return s.answer(ctx)
}
