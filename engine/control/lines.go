// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// jsonLines is the type of an answer that comes line by line.
const jsonLines = "application/x-ndjson"

// lineWriter writes an answer as JSON lines, each at once. Its owner sees to it that one is written at a
// time.
type lineWriter struct {
	w     http.ResponseWriter
	out   *http.ResponseController
	enc   *json.Encoder
	began bool
}

// newLineWriter returns the writer of an answer whose request is read.
func newLineWriter(w http.ResponseWriter) *lineWriter {
	l := &lineWriter{w: w, out: http.NewResponseController(w), enc: json.NewEncoder(w)}
	_ = l.out.SetReadDeadline(time.Time{}) // nothing more is read, or at any time
	return l
}

// begin says that lines follow; until then an error may be the answer.
func (l *lineWriter) begin() {
	if !l.began {
		l.w.Header().Set("Content-Type", jsonLines)
		l.began = true
	}
}

// write writes one line; an error says that the client is gone.
func (l *lineWriter) write(v any) error {
	l.begin()
	_ = l.out.SetWriteDeadline(time.Now().Add(lineTime))
	if err := l.enc.Encode(v); err != nil {
		return err
	}
	return l.out.Flush()
}

// readLines gives each line of an answer to f, until f fails, ctx is done or the owner ends, which is no
// error. A line has at most so many bytes.
func readLines[T any](ctx context.Context, body io.Reader, most int64, f func(T) error) error {
	in := &io.LimitedReader{R: body, N: most}
	d := json.NewDecoder(in)
	for {
		var x T
		err := d.Decode(&x)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("control socket: %w", err)
		}
		if err := f(x); err != nil {
			return err
		}
		in.N = most
	}
}
