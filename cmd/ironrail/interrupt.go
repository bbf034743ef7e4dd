// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interruptible waits for f, and ends it with exit code 130 at Ctrl-C. A second Ctrl-C
// ends the program at once.
func (a *app) interruptible(ctx context.Context, f func(context.Context) error) error {
	waiting, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(waiting, stop)()
	err := f(waiting)
	if waiting.Err() != nil && ctx.Err() == nil {
		return exit{code: exitInterrupted}
	}
	return err
}
