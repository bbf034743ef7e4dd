// SPDX-License-Identifier: Apache-2.0

// Package netlab makes the lab's network: a network namespace with a boot
// bridge, a rail bridge, the BMCs' addresses, and two taps a machine. It works
// through ip(8) and tc(8) with argument vectors; every call has a deadline. The
// caller must be root.
package netlab

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/internal/errkind"
)

// The interfaces and the controller's addresses, as in the site's HCL.
const (
	bootBridge = "lab-boot"
	railBridge = "lab-rail"
	OOB        = "lab-oob"

	// The boot bridge has one port of its own, so that it has carrier, and with it
	// its IPv6 link-local address, before the first machine is switched on.
	carrier, carrierPeer = "lab-carrier", "lab-carrier-p"

	bootAddress = "10.77.0.2/24"
	oobAddress  = "10.77.1.1/24"
)

// taggedMTU is the MTU of the controller where machines tag: OVMF's driver of virtio takes 1,514 bytes
// with the tag.
const taggedMTU = 1496

// callTimeout bounds one call of ip or tc; they answer in milliseconds.
const callTimeout = 15 * time.Second

// Exists reports whether the namespace is there.
func Exists(name string) bool {
	_, err := os.Stat("/run/netns/" + name)
	return err == nil
}

// OwnerOf returns the state folder that made the namespace, "" if it does not say.
func OwnerOf(ctx context.Context, name string) string {
	out, err := runIP(ctx, nil, "ip", "-n", name, "-o", "link", "show", "dev", OOB)
	if err != nil {
		return ""
	}
	_, alias, ok := strings.Cut(out, "alias ")
	if !ok {
		return ""
	}
	alias, _, _ = strings.Cut(alias, "\\")
	return strings.TrimSpace(alias)
}

// Up makes the namespace and all that is in it, and notes owner, the state
// folder, on it. On an error it removes what it made.
func Up(ctx context.Context, name, owner string, ms []rack.Machine) error {
	if _, err := runIP(ctx, nil, "ip", "netns", "add", name); err != nil {
		return errkind.New(errkind.Refused, "namespace %s: %w", name, err).Do("run as root; if it is left over from an older run, ironrail-lab down removes it")
	}
	if _, err := runIP(ctx, batchCommands(owner, ms), "ip", "-n", name, "-batch", "-"); err != nil {
		_ = Down(context.WithoutCancel(ctx), name)
		return fmt.Errorf("namespace %s: links: %w", name, err)
	}
	return nil
}

// batchCommands returns the list of commands for ip -batch. The out-of-band network is a
// bridge without ports: like a dummy link, but in every kernel. Multicast
// snooping is off, since without a querier it may swallow router solicitations.
func batchCommands(owner string, ms []rack.Machine) []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("link set lo up")
	for _, br := range []string{bootBridge, railBridge, OOB} {
		line("link add %s type bridge stp_state 0 forward_delay 0 mcast_snooping 0", br)
	}
	line("link add %s type veth peer name %s", carrier, carrierPeer)
	for _, port := range []string{carrier, carrierPeer} {
		line("link set %s addrgenmode none", port)
		line("link set %s up", port)
	}
	line("link set %s master %s", carrier, bootBridge)
	line("link set %s alias %s", OOB, owner)
	line("addr add %s dev %s", bootAddress, bootBridge)
	line("addr add %s dev %s", oobAddress, OOB)
	for _, m := range ms {
		line("addr add %s dev %s", netip.PrefixFrom(m.BMCAddress, m.BMCAddress.BitLen()), OOB)
		for tap, bridge := range map[string]string{m.BootTap(): bootBridge, m.RailTap(): railBridge} {
			line("tuntap add dev %s mode tap", tap)
			line("link set %s addrgenmode none", tap)
			line("link set %s master %s up", tap, bridge)
		}
	}
	if slices.ContainsFunc(ms, func(m rack.Machine) bool { return m.Hardware == rack.Tagged }) {
		line("link set %s mtu %d", bootBridge, taggedMTU)
	}
	// Only the boot bridge speaks IPv6: it has to answer router solicitations.
	line("link set %s addrgenmode none", railBridge)
	line("link set %s addrgenmode none", OOB)
	for _, br := range []string{bootBridge, railBridge, OOB} {
		line("link set %s up", br)
	}
	return b.Bytes()
}

// Down removes the namespace; its links go with it once no process is left in
// it. A namespace that is not there is no error.
func Down(ctx context.Context, name string) error {
	if !Exists(name) {
		return nil
	}
	if _, err := runIP(ctx, nil, "ip", "netns", "delete", name); err != nil {
		return fmt.Errorf("namespace %s: delete: %w", name, err)
	}
	return nil
}

// PIDs returns the processes inside the namespace.
func PIDs(ctx context.Context, name string) (string, error) {
	out, err := runIP(ctx, nil, "ip", "netns", "pids", name)
	if err != nil {
		return "", fmt.Errorf("namespace %s: processes: %w", name, err)
	}
	return strings.Join(strings.Fields(out), " "), nil
}

// ExecArgs returns the argument vector that runs command inside the namespace.
func ExecArgs(name string, command ...string) []string {
	return append([]string{"ip", "netns", "exec", name}, command...)
}

// runIP runs one program and returns what it printed; an error carries what it
// said.
func runIP(ctx context.Context, stdin []byte, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Stdin = bytes.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		text := strings.Join(strings.Fields(errs.String()), " ")
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, text)
	}
	return out.String(), nil
}
