// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// mostQuery bounds the names of nodes in a request; with more, all nodes are asked for.
const mostQuery = 8 << 10

// jsonLines is the type of an answer that comes line by line.
const jsonLines = "application/x-ndjson"

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
		out, enc := http.NewResponseController(w), json.NewEncoder(w)
		_ = out.SetReadDeadline(time.Time{}) // nothing more is read
		began := false
		begin := func() {
			if !began {
				w.Header().Set("Content-Type", jsonLines)
				began = true
			}
		}
		_, err = b.AskBMCs(ctx, q, r.URL.Query()["node"], func(p BMCAnswer) {
			begin()
			_ = out.SetWriteDeadline(time.Now().Add(lineTime))
			if enc.Encode(p) != nil || out.Flush() != nil {
				cancel() // the client is gone: the others need not be asked
			}
		})
		if err != nil && !began {
			writeError(w, err)
			return
		}
		begin()
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
	body := &io.LimitedReader{R: resp.Body, N: maxAnswer} // of a stream each answer may be so large: all event logs of a site are more
	d := json.NewDecoder(body)
	if resp.Header.Get("Content-Type") != jsonLines {
		var all []BMCAnswer
		if err := d.Decode(&all); err != nil {
			return fmt.Errorf("control socket: %w", err)
		}
		for _, p := range all {
			tell(p.as(ask))
		}
		return nil
	}
	for {
		var p BMCAnswer
		err := d.Decode(&p)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("control socket: %w", err)
		}
		tell(p.as(ask))
		body.N = maxAnswer
	}
}

// as is an answer to that question: an owner from before BMCs could be asked for more says their power,
// whatever it is asked.
func (a BMCAnswer) as(q BMCQuestion) BMCAnswer {
	if q.For != AskPower && a.State != "" {
		a.State, a.Error = "", "the ironrail that owns the state is older and asks BMCs for their power alone"
	}
	return a
}
