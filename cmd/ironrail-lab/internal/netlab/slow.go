// SPDX-License-Identifier: Apache-2.0

package netlab

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// RailRate is what one rail carries under emulation, in kbit/s: 13 MB/s of
// ib_write_bw between two machines. A slow rail by a factor is a part of it.
const RailRate = 104_000

// Rate is a bandwidth in kbit/s.
type Rate int

var ratePattern = lazyregexp.New(`^([0-9]{1,6})(kbit|mbit)$`)

// ParseRate reads "8mbit" or "800kbit".
func ParseRate(s string) (Rate, error) {
	m := ratePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("rate %q: want a number with kbit or mbit", s)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, fmt.Errorf("rate %q: %w", s, err)
	}
	if m[2] == "mbit" {
		n *= 1000
	}
	if n < 64 {
		return 0, fmt.Errorf("rate %q: want 64kbit or more", s)
	}
	return Rate(n), nil
}

// SlowRail limits the machine's rail in both directions: what leaves the tap
// goes to the machine, what enters comes from it. The queue holds 400 ms of
// traffic; more is dropped, as by a switch.
func SlowRail(ctx context.Context, namespace string, m rack.Machine, r Rate) error {
	if err := ClearRail(ctx, namespace, m); err != nil {
		return err
	}
	return slow(ctx, namespace, m, append([][]string{shape(namespace, m.RailTap(), r)}, shapeInput(namespace, m.RailTap(), ifbName(m), r)...))
}

// SlowBoot limits what the machine sends over the boot network; what it receives is not held.
func SlowBoot(ctx context.Context, namespace string, m rack.Machine, r Rate) error {
	if err := ClearBoot(ctx, namespace, m); err != nil {
		return err
	}
	return slow(ctx, namespace, m, shapeInput(namespace, m.BootTap(), bootIFB(m), r))
}

func slow(ctx context.Context, namespace string, m rack.Machine, commands [][]string) error {
	for _, args := range commands {
		if _, err := runIP(ctx, nil, args...); err != nil {
			return errkind.New(errkind.Unsupported, "machine %s: slow network: %w", m.Name, err).Do("the kernel needs tbf, ifb, cls_u32 and act_mirred")
		}
	}
	return nil
}

// shape holds what leaves a device.
func shape(namespace, dev string, r Rate) []string {
	return []string{"tc", "-n", namespace, "qdisc", "replace", "dev", dev, "root", "tbf", "rate", strconv.Itoa(int(r)) + "kbit", "burst", "16kb", "latency", "400ms"}
}

// shapeInput holds what enters a tap: it is led over an ifb device, and held back there.
func shapeInput(namespace, tap, ifb string, r Rate) [][]string {
	return [][]string{
		{"ip", "-n", namespace, "link", "add", ifb, "type", "ifb"},
		{"ip", "-n", namespace, "link", "set", ifb, "up"},
		shape(namespace, ifb, r),
		{"tc", "-n", namespace, "qdisc", "add", "dev", tap, "ingress"},
		{"tc", "-n", namespace, "filter", "add", "dev", tap, "parent", "ffff:", "protocol", "all", "u32", "match", "u32", "0", "0", "action", "mirred", "egress", "redirect", "dev", ifb},
	}
}

// ClearRail gives the rail its full rate again; no limit is no error.
func ClearRail(ctx context.Context, namespace string, m rack.Machine) error {
	return unshape(ctx, namespace, m, m.RailTap(), ifbName(m))
}

// ClearBoot gives the boot network its full rate again; no limit is no error.
func ClearBoot(ctx context.Context, namespace string, m rack.Machine) error {
	return unshape(ctx, namespace, m, m.BootTap(), bootIFB(m))
}

func unshape(ctx context.Context, namespace string, m rack.Machine, tap, ifb string) error {
	if _, err := runIP(ctx, nil, "ip", "-n", namespace, "link", "show", "dev", tap); err != nil {
		return fmt.Errorf("machine %s: %s: %w", m.Name, tap, err)
	}
	// Each of these may be absent; what counts is that none is left.
	_, _ = runIP(ctx, nil, "tc", "-n", namespace, "qdisc", "delete", "dev", tap, "ingress")
	_, _ = runIP(ctx, nil, "tc", "-n", namespace, "qdisc", "delete", "dev", tap, "root")
	_, _ = runIP(ctx, nil, "ip", "-n", namespace, "link", "delete", ifb)
	return nil
}

func ifbName(m rack.Machine) string { return m.Name + "-slow" }

func bootIFB(m rack.Machine) string { return m.Name + "-slowb" }
