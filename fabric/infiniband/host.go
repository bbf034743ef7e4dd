// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
)

// Host is where a subnet manager and the diagnostic programs run: a controller
// with a port on the fabric, or a rehearsal's. Its methods may block and are safe
// for concurrent use.
type Host interface {
	// Run runs a program to its end; a status other than zero is no error.
	Run(ctx context.Context, argv ...string) (onnode.Output, error)
	// Read returns a file; the error is fs.ErrNotExist where there is none.
	Read(ctx context.Context, path string) ([]byte, error)
	// Write replaces a file, atomically.
	Write(ctx context.Context, path string, content []byte) error
	// Reload makes opensm read its files again. By a signal it sweeps and reads the
	// partitions, lists of GUIDs and names; its options it reads when it starts only
	// (opensm(8), SIGNALS), so that it is restarted for these.
	Reload(ctx context.Context, restart bool) error
	// Log returns what opensm logged from an offset on, and the offset of its end.
	// fromEnd returns the end alone.
	Log(ctx context.Context, from int64) (text []byte, end int64, err error)
}

// fromEnd is the offset of the end of a log.
const fromEnd = -1

// askTimeout is how long one diagnostic program may take. A sweep of 8,832 devices
// takes some seconds; a program without a fabric would wait forever.
const askTimeout = time.Minute

// complaints are what the diagnostic programs print when they failed, some of them
// with status 0.
var complaints = []string{"ibpanic:", "iberror:", "Query SA failed", "Failed to open", "can't resolve"}

// runDiagnostic runs a diagnostic program and judges its status and its words.
func runDiagnostic(ctx context.Context, h Host, argv ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out, err := h.Run(ctx, argv...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], err)
	}
	text := firstComplaint(out)
	if out.Exit == 0 && text == "" {
		return out.Stdout, nil
	}
	kind := errkind.Unreachable
	if out.Exit == onnode.NoProgram {
		kind = errkind.Unsupported
	}
	return out.Stdout, errkind.New(kind, "%s ended with status %d: %s", strings.Join(argv, " "), out.Exit, text).
		Do("See whether the controller's own HCA has a link (`ibstat`), and whether opensm runs.")
}

// firstComplaint is the line in which a program says what is wrong; where none
// does and it failed, its last line.
func firstComplaint(out onnode.Output) string {
	lines := strings.FieldsFunc(string(out.Stderr)+"\n"+string(out.Stdout), func(r rune) bool { return r == '\n' })
	for _, line := range lines {
		if slices.ContainsFunc(complaints, func(c string) bool { return strings.Contains(line, c) }) {
			return strings.TrimSpace(line)
		}
	}
	if out.Exit != 0 && len(lines) > 0 {
		return strings.TrimSpace(lines[len(lines)-1])
	}
	return ""
}
