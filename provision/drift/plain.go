// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/baseline"
	"github.com/ironrail/ironrail/provision/agent/inspect"
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
const plainScript = `R=
say() { if [ -n "$4" ]; then printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4"; fi; }
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
` + rootScript + `
dpkg-query -W -f='packages\t\t${Package}:${Architecture}\t${Version}\t${db:Status-Status}\n' 2>/dev/null
[ -e /var/lib/dpkg/status ] || rpm --query --all --queryformat 'rpm\t\t\t` + baseline.RPMFormat + `' 2>/dev/null
true`

// rootScript tells which disks the root file system lies on, from what the agent reads
// too, so that serial numbers compare: those of udev and lsblk are written otherwise. R
// is where the node's root is.
const rootScript = `below() { # the disks below a block device, by its real path
  if [ -e "$1/partition" ]; then set -- "${1%/*}"; fi
  if [ -z "$(ls "$1/slaves" 2>/dev/null)" ]; then echo "${1##*/}"; return; fi
  for s in "$1"/slaves/*; do below "$(readlink -f "$s")"; done
}
of_root() {
  at= source=
  while read -r _ _ number _ where rest; do
    if [ "$where" = / ]; then at=$R/sys/dev/block/$number; source=${rest#*- * }; source=${source%% *}; fi
  done < "$R/proc/self/mountinfo"
  if [ -e "$at" ]; then below "$(readlink -f "$at")"; return; fi
  case $source in /dev/*) source=${source##*/} ;; *) return ;; esac # btrfs has a number of its own
  for f in "$R"/sys/fs/btrfs/*/devices/"$source"; do
    if [ -e "$f" ]; then
      for s in "${f%/*}"/*; do below "$(readlink -f "$s")"; done
      return
    fi
  done
  if [ -n "$source" ] && [ -e "$R/sys/class/block/$source" ]; then below "$(readlink -f "$R/sys/class/block/$source")"; fi
}
for d in $(of_root 2>/dev/null | sort -u); do
  b=$R/sys/block/$d
  say root "$d" path "$(readlink -f "$b")"
  for a in size removable hidden queue/rotational device/model serial device/serial wwid device/wwid; do
    say root "$d" "$a" "$(cat "$b/$a" 2>/dev/null)"
  done
  say root "$d" device/vpd_pg80 "$(tail -c +5 "$b/device/vpd_pg80" 2>/dev/null | tr -d '\000')"
done`

// readPlain asks a node by programs that every system has.
func readPlain(ctx context.Context, nodes onnode.Nodes, node string) (wire.Baseline, error) {
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
func parsePlain(text string) wire.Baseline {
	r := plainReader{root: map[string]map[string]string{}}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) < 4 || !strings.HasSuffix(line, "\n") || f[3] == "" {
			continue
		}
		r.read(f)
	}
	return r.done()
}

// plainReader reads the lines of plainScript.
type plainReader struct {
	b      wire.Baseline
	hw     wire.Hardware                // its cores are those of one socket
	status strings.Builder              // the packages, in the form of dpkg's status file
	rpm    strings.Builder              // those of rpm, in the form of baseline.RPMFormat
	root   map[string]map[string]string // of each disk of the root file system: its attributes
}

// read takes up the fields of one line: kind, part, name, value, and of a package its
// state.
func (r *plainReader) read(f []string) {
	kind, part, name, value := f[0], f[1], f[2], strings.TrimSpace(f[3])
	switch kind {
	case "boot":
		r.boot(name, value)
	case "root":
		if r.root[part] == nil {
			r.root[part] = map[string]string{}
		}
		r.root[part][name] = value
	case wire.ItemPackages:
		pkg, arch, _ := strings.Cut(name, ":")
		if len(f) > 4 {
			fmt.Fprintf(&r.status, "Package: %s\nArchitecture: %s\nVersion: %s\nStatus: install ok %s\n\n", pkg, arch, value, f[4])
		}
	case "rpm":
		r.rpm.WriteString(strings.Join(f[3:], "\t") + "\n")
	case "speed":
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n > 0 {
			r.item(wire.ItemLink, part, name, value+" Mb/s")
		}
	case "cpu", "mem":
		ofPlain(&r.hw, value)
	case wire.ItemKernel:
		r.item(kind, "", name, strings.Join(strings.Fields(value), " "))
	case wire.ItemHardware, wire.ItemFirmware, wire.ItemNetwork, wire.ItemLink:
		r.item(kind, part, name, value)
		if kind == wire.ItemHardware && name == "serial" {
			r.b.Identity.Serial = value
		}
	}
}

// boot reads the id of the boot, or how long ago it was.
func (r *plainReader) boot(name, value string) {
	if name == "id" {
		r.b.BootID = value
		return
	}
	seconds, _, _ := strings.Cut(value, " ")
	r.b.Uptime, _ = strconv.ParseFloat(seconds, 64)
}

func (r *plainReader) item(kind, part, name, value string) {
	r.b.Items = append(r.b.Items, wire.Item{Kind: kind, Part: part, Name: name, Value: value})
}

// done returns what was read.
func (r *plainReader) done() wire.Baseline {
	b, hw := r.b, r.hw
	b.Root = rootDisks(r.root)
	if hw.CPU.Sockets*hw.CPU.Cores*int(hw.Memory.Usable) != 0 { // half of it is of no use to a scheduler
		hw.CPU.Cores *= hw.CPU.Sockets
		hw.Identity = b.Identity
		b.Hardware = &hw
	}
	list, err := baseline.ParseStatus([]byte(r.status.String()))
	if err == nil && len(list) == 0 && r.rpm.Len() > 0 {
		list, err = baseline.ParseRPM([]byte(r.rpm.String()))
	}
	if err != nil || len(list) == 0 {
		b.Gaps = append(b.Gaps, wire.Gap{Kind: wire.ItemPackages, Why: "neither dpkg-query nor rpm lists anything"})
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

// rootDisks are the disks of the root file system, by the attributes that the kernel
// shows of each; none where one of them is no fixed disk.
func rootDisks(of map[string]map[string]string) (disks []wire.Disk) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		d, ok := inspect.DiskOf(name, of[name]["path"], func(attr string) string { return of[name][attr] })
		if !ok {
			return nil
		}
		disks = append(disks, d)
	}
	return disks
}
