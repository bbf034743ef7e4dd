// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"io"
)

// WithContext returns a reader of r that fails with the cause of ctx once that has ended.
func WithContext(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(b)
}

// OnRead returns a reader of r that calls came after each read that brought something.
func OnRead(r io.Reader, came func()) io.Reader { return observedReader{r, came} }

type observedReader struct {
	io.Reader
	came func()
}

func (r observedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if n > 0 {
		r.came()
	}
	return n, err
}
