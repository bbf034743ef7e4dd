package drift

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/provision/agent/baseline"
	"github.com/ironrail/ironrail/provision/agent/wire"
	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/onnode"
)

// noAgent reports whether a node has no agent program, or one that does not know
// the question.
func noAgent(err error) bool {
	const missing, notThere, usage = 126, 127, 64
	e, ok := errors.AsType[*onnode.ExitError](err)
	return ok && (e.Output.Exit == missing || e.Output.Exit == notThere || e.Output.Exit == usage)
}

// plainScript tells what matters of a node without an agent: it reads, and leaves
// nothing behind. A line is kind, part, name and value between tabs.
const plainScript = `say() { if [ -n "$4" ]; then printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4"; fi; }
say boot '' id "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
say boot '' uptime "$(cat /proc/uptime 2>/dev/null)"
say kernel '' release "$(uname -r)"
say kernel '' arguments "$(cat /proc/cmdline 2>/dev/null)"
say hardware '' serial "$(cat /sys/class/dmi/id/product_serial 2>/dev/null)"
say firmware BIOS version "$(cat /sys/class/dmi/id/bios_version 2>/dev/null)"
for n in /sys/class/net/*; do
  if [ -e "$n/device" ]; then
    p=$(basename "$(readlink -f "$n/device")")
    say hardware "$p" MAC "$(cat "$n/address" 2>/dev/null)"
    say network "$p" mtu "$(cat "$n/mtu" 2>/dev/null)"
    say link "$p" state "$(cat "$n/operstate" 2>/dev/null)"
    say speed "$p" speed "$(cat "$n/speed" 2>/dev/null)"
  fi
done
for d in /sys/class/infiniband/*; do
  if [ -e "$d/device" ]; then
    p=$(basename "$(readlink -f "$d/device")")
    say firmware "$p" HCA "$(cat "$d/fw_ver" 2>/dev/null)"
    say link "$p" 'RDMA rate' "$(cat "$d/ports/1/rate" 2>/dev/null)"
  fi
done
say mem '' total "$(grep MemTotal /proc/meminfo 2>/dev/null)"
lscpu 2>/dev/null | while read -r line; do say cpu '' lscpu "$line"; done
dpkg-query -W -f='packages\t\t${Package}:${Architecture}\t${Version}\t${db:Status-Status}\n' 2>/dev/null
true`

// plain asks a node by programs that every system has.
func plain(ctx context.Context, nodes onnode.Nodes, node string) (wire.Baseline, error) {
	out, err := nodes.Run(ctx, node, onnode.Command{Argv: []string{"sh", "-c", plainScript}})
	if err != nil {
		return wire.Baseline{}, fmt.Errorf("node %s: %w", node, err)
	}
	b := parsePlain(string(out.Stdout))
	if b.BootID == "" {
		return b, errkind.New(errkind.Unsupported, "node %s answers SSH and does not say what it runs", node)
	}
	return b, nil
}

// parsePlain reads what plainScript prints. Lines that are not understood, and
// the last one when it was cut, are passed over.
func parsePlain(text string) (b wire.Baseline) {
	status := strings.Builder{}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) < 4 || !strings.HasSuffix(line, "\n") || f[3] == "" {
			continue
		}
		kind, part, name, value := f[0], f[1], f[2], strings.TrimSpace(f[3])
		switch kind {
		case "boot":
			if name == "id" {
				b.BootID = value
				continue
			}
			seconds, _, _ := strings.Cut(value, " ")
			b.Uptime, _ = strconv.ParseFloat(seconds, 64)
		case wire.ItemPackages:
			pkg, arch, _ := strings.Cut(name, ":")
			if len(f) > 4 {
				fmt.Fprintf(&status, "Package: %s\nArchitecture: %s\nVersion: %s\nStatus: install ok %s\n\n", pkg, arch, value, f[4])
			}
		case "speed":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil && n > 0 {
				b.Items = append(b.Items, wire.Item{Kind: wire.ItemLink, Part: part, Name: name, Value: value + " Mb/s"})
			}
		case "cpu", "mem":
			if b.Hardware == nil {
				b.Hardware = &wire.Hardware{}
			}
			ofPlain(b.Hardware, value)
		case wire.ItemKernel:
			b.Items = append(b.Items, wire.Item{Kind: kind, Name: name, Value: strings.Join(strings.Fields(value), " ")})
		case wire.ItemHardware, wire.ItemFirmware, wire.ItemNetwork, wire.ItemLink:
			b.Items = append(b.Items, wire.Item{Kind: kind, Part: part, Name: name, Value: value})
			if kind == wire.ItemHardware && name == "serial" {
				b.Identity.Serial = value
			}
		}
	}
	if b.Hardware != nil && b.Hardware.CPU.Sockets*b.Hardware.CPU.Cores*int(b.Hardware.Memory.Usable) == 0 {
		b.Hardware = nil // half of it is of no use to a scheduler
	} else if b.Hardware != nil {
		b.Hardware.CPU.Cores *= b.Hardware.CPU.Sockets
		b.Hardware.Identity = b.Identity
	}
	list, err := baseline.ParseStatus([]byte(status.String()))
	if err != nil || len(list) == 0 {
		b.Gaps = append(b.Gaps, wire.Gap{Kind: wire.ItemPackages, Why: "dpkg-query lists nothing"})
		return b
	}
	b.List, b.Packages = list, baseline.Digest(list)
	return b
}

// ofPlain takes up one line of lscpu(1) or of /proc/meminfo. Cores are those of
// one socket until all lines are read.
func ofPlain(hw *wire.Hardware, line string) {
	key, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	n, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	switch strings.TrimSpace(key) {
	case "CPU(s)":
		hw.CPU.Threads = int(n)
	case "Socket(s)":
		hw.CPU.Sockets = int(n)
	case "Core(s) per socket":
		hw.CPU.Cores = int(n)
	case "Model name":
		hw.CPU.Model = value
	case "MemTotal":
		hw.Memory.Usable = n << 10
	}
}
