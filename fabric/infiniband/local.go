// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
)

// Local is the Host that is this machine, with opensm as a service of systemd. Its
// zero value is a controller with the packages opensm and infiniband-diags.
type Local struct {
	// LogFiles is a pattern of the files that opensm may log to, of which the
	// newest counts; empty: /var/log/opensm*.log.
	LogFiles string
	// Environ is added to the environment of every program.
	Environ []string
	// Folder is where programs run; empty: the root folder.
	Folder string
	// Restarted and Signalled reload an opensm that is no service; nil: systemctl.
	Restarted, Signalled func(context.Context) error
}

// Bounds of programs on this machine.
const (
	localPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	localMost = 64 << 20 // bytes that a program may print; a sweep of 8,832 devices prints 6 MiB
	localEnd  = 5 * time.Second
	logMost   = 16 << 20 // bytes of the log that are read at a time
)

// Run implements Host.
func (l Local) Run(ctx context.Context, argv ...string) (onnode.Output, error) {
	program := ""
	for dir := range strings.SplitSeq(localPath, ":") {
		if p, err := exec.LookPath(filepath.Join(dir, argv[0])); err == nil {
			program = p
			break
		}
	}
	if program == "" {
		return onnode.Output{}, errkind.New(errkind.Unsupported, "there is no %s on this controller", argv[0]).
			Do("Install opensm and infiniband-diags on the controller that runs the subnet manager.")
	}
	cmd := exec.CommandContext(ctx, program, argv[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = append([]string{"PATH=" + localPath, "LC_ALL=C"}, l.Environ...), cmp.Or(l.Folder, "/"), localEnd
	out, errs := &limited{}, &limited{}
	cmd.Stdout, cmd.Stderr = out, errs
	err := cmd.Run()
	result := onnode.Output{Stdout: out.Bytes(), Stderr: errs.Bytes()}
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		result.Exit = ended.ExitCode()
		err = nil
	}
	switch {
	case ctx.Err() != nil:
		return result, errkind.New(errkind.Timeout, "%s does not end: %w", argv[0], context.Cause(ctx))
	case err != nil:
		return result, errkind.New(errkind.Internal, "%s: %w", argv[0], err)
	case out.full:
		return result, errkind.New(errkind.Invalid, "%s prints more than %d MiB", argv[0], localMost>>20)
	}
	return result, nil
}

// limited keeps the first localMost bytes that are written to it.
type limited struct {
	bytes.Buffer
	full bool
}

// Write keeps what fits and takes the rest.
func (c *limited) Write(p []byte) (int, error) {
	room := max(0, localMost-c.Len())
	c.full = c.full || len(p) > room
	c.Buffer.Write(p[:min(room, len(p))])
	return len(p), nil
}

// Read implements Host.
func (l Local) Read(_ context.Context, path string) ([]byte, error) { return os.ReadFile(path) }

// Write implements Host. A file is there whole or as it was before, also when the
// machine loses power.
func (l Local) Write(_ context.Context, path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return durable.Write(path, content, 0o644)
}

// Reload implements Host. Debian's units are opensm.service and one
// opensm@GUID.service for each port; NVIDIA's is opensmd.service.
func (l Local) Reload(ctx context.Context, restart bool) error {
	switch {
	case restart && l.Restarted != nil:
		return l.Restarted(ctx)
	case !restart && l.Signalled != nil:
		return l.Signalled(ctx)
	}
	units, err := l.units(ctx)
	if err != nil {
		return err
	}
	if !restart && len(units) > 0 {
		return l.systemctl(ctx, append([]string{"kill", "--signal=HUP"}, units...)...)
	}
	unit := "opensm.service"
	if out, err := l.Run(ctx, "systemctl", "cat", unit); err != nil {
		return err
	} else if out.Exit != 0 {
		unit = "opensmd.service"
	}
	return l.systemctl(ctx, "restart", unit)
}

// units are the services of opensm that run a process now.
func (l Local) units(ctx context.Context) ([]string, error) {
	out, err := l.Run(ctx, "systemctl", "list-units", "--type=service", "--state=running", "--plain", "--no-legend", "opensm*")
	if err != nil {
		return nil, err
	}
	var units []string
	for line := range strings.Lines(string(out.Stdout)) {
		if words := strings.Fields(line); len(words) > 0 {
			units = append(units, words[0])
		}
	}
	return units, nil
}

func (l Local) systemctl(ctx context.Context, args ...string) error {
	out, err := l.Run(ctx, append([]string{"systemctl"}, args...)...)
	if err == nil && out.Exit != 0 {
		err = errkind.New(errkind.Refused, "systemctl %s: %s", args[0], firstComplaint(out)).Do("See `systemctl status opensm` on the controller.")
	}
	return err
}

// Log implements Host. A log that is shorter than the offset was begun anew.
func (l Local) Log(_ context.Context, from int64) ([]byte, int64, error) {
	name := l.newest()
	if name == "" {
		return nil, 0, nil // opensm never ran
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // it was read only
	info, err := f.Stat()
	if err != nil || from == fromEnd {
		return nil, sizeOf(info, err), err
	}
	size := info.Size()
	if from > size {
		from = 0
	}
	from = max(from, size-logMost)
	text, err := io.ReadAll(io.NewSectionReader(f, from, size-from))
	return text, size, err
}

func sizeOf(info os.FileInfo, err error) int64 {
	if err != nil {
		return 0
	}
	return info.Size()
}

// newest is the log that was written last; empty: there is none.
func (l Local) newest() string {
	pattern := l.LogFiles
	if pattern == "" {
		pattern = "/var/log/opensm*.log"
	}
	names, err := filepath.Glob(pattern)
	if err != nil {
		return ""
	}
	best, when := "", time.Time{}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && !info.IsDir() && info.ModTime().After(when) {
			best, when = name, info.ModTime()
		}
	}
	return best
}
