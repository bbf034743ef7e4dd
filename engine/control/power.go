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
	"time"
)

// mostQuery bounds the names of nodes in a request; with more, all nodes are asked for.
const mostQuery = 8 << 10

// jsonLines is the type of an answer that comes line by line.
const jsonLines = "application/x-ndjson"

// servePower writes the power of the nodes of the query, of all without any: with
// stream=1 one JSON line for each BMC as soon as it has answered, without a limit for
// all of them; else one list, as owners did before.
func servePower(b Backend) http.HandlerFunc {
	whole := serveJSON(func(r *http.Request) (any, error) {
		return b.Power(r.Context(), r.URL.Query()["node"], func(BMCAnswer) {})
	})
	return func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("stream") != "1" {
			whole(w, r)
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
		_, err := b.Power(ctx, r.URL.Query()["node"], func(p BMCAnswer) {
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

// Power asks for the power of nodes, of all when none is named, and gives each answer to
// tell when it comes. An owner from before this could be asked for sends all in one
// piece; one that ends meanwhile leaves nodes without an answer, which is no error.
func (c *Client) Power(ctx context.Context, nodes []string, tell func(BMCAnswer)) error {
	q := url.Values{"stream": {"1"}, "node": nodes}
	if len(q.Encode()) > mostQuery {
		q.Del("node")
	}
	resp, err := c.send(ctx, http.MethodGet, "/power/status?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	d := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer))
	if resp.Header.Get("Content-Type") != jsonLines {
		var all []BMCAnswer
		if err := d.Decode(&all); err != nil {
			return fmt.Errorf("control socket: %w", err)
		}
		for _, p := range all {
			tell(p)
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
		tell(p)
	}
}
