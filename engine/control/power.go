// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/ironrail/ironrail/internal/errkind"
)

// mostQuery bounds the names of nodes in a request; with more, all nodes are asked for.
const mostQuery = 8 << 10

// serveBMCs writes what the BMCs of the nodes of the query answer, of all without any: with
// stream=1 one JSON line for each BMC as soon as it has answered, without a limit for
// all of them; else one list, as owners did before.
func serveBMCs(b Backend) http.HandlerFunc {
	whole := serveJSON(func(r *http.Request) (any, error) {
		q, err := readQuestion(r)
		if err != nil {
			return nil, err
		}
		return b.AskBMCs(r.Context(), q, r.URL.Query()["node"], func(BMCAnswer) {})
	})
	return func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("stream") != "1" {
			whole(w, r)
			return
		}
		q, err := readQuestion(r)
		if err != nil {
			writeError(w, err)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		lines := newLineWriter(w)
		_, err = b.AskBMCs(ctx, q, r.URL.Query()["node"], func(p BMCAnswer) {
			if lines.write(p) != nil {
				cancel() // the client is gone: the others need not be asked
			}
		})
		if err != nil && !lines.began {
			writeError(w, err)
			return
		}
		lines.begin()
	}
}

// readQuestion reads what the BMCs are asked for: their power where nothing is said.
func readQuestion(r *http.Request) (q BMCQuestion, err error) {
	if q.For = r.FormValue("for"); q.For == "" {
		q.For = AskPower
	}
	if last := r.FormValue("last"); last != "" {
		q.Last, err = strconv.Atoi(last)
	}
	if err != nil || q.Last < 0 || !slices.Contains([]string{AskPower, AskLog, AskSensors}, q.For) {
		return q, errkind.New(errkind.Invalid, "BMCs cannot be asked for %q, the last %q", q.For, r.FormValue("last"))
	}
	return q, nil
}

// AskBMCs asks the BMCs of nodes, of all when none is named, and gives each answer to
// tell when it comes. An owner from before this could be asked for sends all in one
// piece; one that ends meanwhile leaves nodes without an answer, which is no error.
func (c *Client) AskBMCs(ctx context.Context, ask BMCQuestion, nodes []string, tell func(BMCAnswer)) error {
	q := url.Values{"stream": {"1"}, "for": {ask.For}, "last": {strconv.Itoa(ask.Last)}, "node": nodes}
	if len(q.Encode()) > mostQuery {
		q.Del("node")
	}
	resp, err := c.send(ctx, http.MethodGet, "/power/status?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") != jsonLines {
		var all []BMCAnswer
		if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&all); err != nil {
			return fmt.Errorf("control socket: %w", err)
		}
		for _, p := range all {
			tell(p.as(ask))
		}
		return nil
	}
	// Each answer may be so large: all event logs of a site are more.
	return readLines(ctx, resp.Body, maxAnswer, func(p BMCAnswer) error { tell(p.as(ask)); return nil })
}

// as is an answer to that question: an owner from before BMCs could be asked for more says their power,
// whatever it is asked.
func (a BMCAnswer) as(q BMCQuestion) BMCAnswer {
	if q.For != AskPower && a.State != "" {
		a.State, a.Error = "", "the ironrail that owns the state is older and asks BMCs for their power alone"
	}
	return a
}
