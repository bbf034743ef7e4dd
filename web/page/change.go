// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// serveChange puts a node on hold, or releases it. Whoever guards the server has checked
// that the request is of a session or has the token.
func (s *Server) serveChange(hold bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTime)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		node, who := r.PathValue("name"), "web page"
		if s.Who != nil {
			who = s.Who(r)
		}
		if err := s.change(ctx, hold, node, who, r.FormValue("reason")); err != nil {
			s.fail(w, r, err)
			return
		}
		if strings.HasPrefix(r.URL.Path, prefix) {
			writeJSON(w, r, http.StatusOK, struct {
				Node string `json:"node"`
				Held bool   `json:"held"`
			}{node, hold})
			return
		}
		http.Redirect(w, r, "/node/"+url.PathEscape(node), http.StatusSeeOther)
	}
}

func (s *Server) change(ctx context.Context, hold bool, node, who, reason string) error {
	snap, err := s.Keeper.Current(ctx)
	switch {
	case err != nil:
		return err
	case s.Change == nil || snap.Rehearsal:
		return errkind.New(errkind.Refused, "nothing can be changed here").Do("A rehearsal that was kept is for looking at.")
	}
	if _, ok := snap.Inv.Node(node); !ok {
		return errkind.New(errkind.NotFound, "%q is not a node of this site", node)
	}
	if hold {
		err = s.Change.Hold(ctx, node, who, reason)
	} else {
		err = s.Change.Release(ctx, node, who)
	}
	if err == nil {
		s.Keeper.Forget()
	}
	return err
}
