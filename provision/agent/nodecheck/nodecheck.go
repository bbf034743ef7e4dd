// SPDX-License-Identifier: Apache-2.0

// Package nodecheck says in short how an installed node is, on the node itself:
// which kernel and boot, what systemd thinks, and which install its disk carries.
package nodecheck

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/efiboot"
	"github.com/ironrail/ironrail/provision/agent/inspect"
	"github.com/ironrail/ironrail/provision/agent/memory"
	"github.com/ironrail/ironrail/provision/agent/secureboot"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// Checker looks at one node.
type Checker struct {
	FS        sysfs.FS                                                          // the root of the node
	Open      disk.Opener                                                       // of the disks that FS lists; nil: disk.Open
	Kernel    func() (hostname, release string, err error)                      // nil: uname(2)
	Systemctl func(ctx context.Context, args ...string) (out string, err error) // see Systemctl
}

// Check looks. It changes nothing.
func (c Checker) Check(ctx context.Context) wire.NodeCheck {
	inspector := inspect.Inspector{FS: c.FS, Open: c.Open}
	kernel := c.Kernel
	if kernel == nil {
		kernel = uname
	}
	hostname, release, err := kernel()
	if err != nil {
		return wire.NodeCheck{Error: &wire.TaskError{Kind: errkind.Internal.String(), Text: err.Error()}}
	}
	r := wire.NodeCheck{
		Hostname: hostname,
		Kernel:   release,
		BootID:   c.FS.Text("proc/sys/kernel/random/boot_id"),
		Identity: inspector.Identity(),
	}
	seconds, _, _ := strings.Cut(c.FS.Text("proc/uptime"), " ")
	r.Uptime, _ = strconv.ParseFloat(seconds, 64)
	c.systemd(ctx, &r)
	r.BootOrder, r.SecureBoot = efiboot.Shown{FS: c.FS}.Order(), secureboot.Read(c.FS)
	r.Arrays = Arrays(c.FS.Text("proc/mdstat"))
	roots := inspector.RootDisks()
	if len(roots) == 1 {
		r.Root = &roots[0]
	} else if len(roots) > 1 {
		r.Roots = roots
	}
	is, inMemory, err := memory.Installed(c.FS)
	if err != nil {
		r.Error = &wire.TaskError{Kind: errkind.Corrupt.String(), Text: err.Error()}
	}
	if inMemory {
		r.Marker, r.Install, r.Digest = is.Marker, string(disk.Configured), is.Digest
		return r
	}
	for _, d := range inspector.Marked() {
		// The disk that runs counts, not one beside it with an older install.
		if r.Marker == "" && (len(roots) == 0 || slices.ContainsFunc(roots, func(root wire.Disk) bool { return root.Name == d.Name })) {
			r.Marker, r.Install, r.Digest = d.Marker, d.State, disk.ManifestDigest(c.Open, d.Path)
		}
	}
	return r
}

// uname asks the running kernel.
func uname() (hostname, release string, err error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", "", err
	}
	return unix.ByteSliceToString(u.Nodename[:]), unix.ByteSliceToString(u.Release[:]), nil
}

// systemd asks for the state of the system and for failed units.
func (c Checker) systemd(ctx context.Context, r *wire.NodeCheck) {
	// is-system-running ends with 1 for every state but "running"; its output counts.
	out, err := c.Systemctl(ctx, "is-system-running")
	r.System = strings.TrimSpace(out)
	if r.System == "" {
		r.System = "unknown"
		r.Error = &wire.TaskError{Kind: errkind.Of(err).String(), Text: "systemctl is-system-running: no answer"}
		return
	}
	out, err = c.Systemctl(ctx, "list-units", "--failed", "--plain", "--no-legend", "--no-pager")
	if err != nil {
		r.Error = &wire.TaskError{Kind: errkind.Of(err).String(), Text: "systemctl list-units: " + err.Error()}
		return
	}
	for line := range strings.Lines(out) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" {
			r.Failed = append(r.Failed, name)
		}
	}
}

// Systemctl runs systemctl for at most 10 s. An exit status is not an error.
func Systemctl(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "systemctl", args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if _, status := errors.AsType[*exec.ExitError](err); status && ctx.Err() == nil {
		err = nil
	}
	return string(out), err
}
