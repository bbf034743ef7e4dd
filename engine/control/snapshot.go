// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Snapshotter is a Backend whose state can be copied while it works with it.
type Snapshotter interface {
	// Snapshot writes the state file as it stands now to w.
	Snapshot(ctx context.Context, w io.Writer) error
}

// serveSnapshot streams a copy of the state file. One that cannot be ended is cut off,
// so that the client sees that it is not whole.
func serveSnapshot(w http.ResponseWriter, r *http.Request, b Backend) {
	s, ok := b.(Snapshotter)
	if !ok {
		writeError(w, errkind.New(errkind.Unsupported, "this owner has no state file to copy"))
		return
	}
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // nothing more is read
	w.Header().Set("Content-Type", "application/octet-stream")
	p := &deadlineWriter{w: w, out: out}
	if err := s.Snapshot(r.Context(), p); err != nil {
		if p.began {
			panic(http.ErrAbortHandler)
		}
		writeError(w, err)
	}
}

// deadlineWriter gives the client lineTime for each partSize that is written, and not for all.
type deadlineWriter struct {
	w     io.Writer
	out   *http.ResponseController
	began bool
}

// Write implements io.Writer.
func (p *deadlineWriter) Write(b []byte) (int, error) {
	p.began = true
	done := 0
	for part := range slices.Chunk(b, partSize) {
		_ = p.out.SetWriteDeadline(time.Now().Add(lineTime))
		n, err := p.w.Write(part)
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// Snapshot writes a copy of the owner's state file to w. What came before an error
// is not a state file.
func (c *Client) Snapshot(ctx context.Context, w io.Writer) error {
	resp, err := c.send(ctx, http.MethodGet, "/snapshot", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("control socket: copy of the state: %w", err)
	}
	return nil
}
