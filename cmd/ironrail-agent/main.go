// SPDX-License-Identifier: Apache-2.0

// Command ironrail-agent is the program that runs on a node: /init of the install
// ramdisk, modprobe there, and the commands that ironrail calls on an installed
// node. Everything it does lives in provision/agent.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/baseline"
	"github.com/ironrail/ironrail/provision/agent/burn"
	"github.com/ironrail/ironrail/provision/agent/health"
	"github.com/ironrail/ironrail/provision/agent/infiniband"
	"github.com/ironrail/ironrail/provision/agent/interfaces"
	"github.com/ironrail/ironrail/provision/agent/lldp"
	"github.com/ironrail/ironrail/provision/agent/nodecheck"
	"github.com/ironrail/ironrail/provision/agent/ramdisk"
	"github.com/ironrail/ironrail/provision/agent/roce"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/speed"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
	"github.com/ironrail/ironrail/provision/agent/throughput"
	"github.com/ironrail/ironrail/provision/agent/userdata"
)

const usage = `usage: ironrail-agent COMMAND   (on an installed node; ironrail calls it)
  roce apply   make the rails as the JSON on stdin says, now and at every boot
  roce check   compare the rails with the JSON on stdin
  roce up      make the rails as they were saved; the unit ironrail-roce calls it
  network apply   make the interfaces of networks as the JSON on stdin says, now and at every boot
  network check   compare the interfaces of networks with the JSON on stdin
  check        how the node is
  baseline     what could drift: packages, kernel, firmware, parts, links, error counters
  health       PCIe links and their errors, memory errors, governors, RDMA ports
  burn         load all GPUs with the program in the JSON on stdin, and watch them
  speed        measure memory, CPUs and disks as the JSON on stdin says; disks are only read
  throughput   measure TCP with another node over a network, as the JSON on stdin says: the end
               that listens prints where, as a JSON object of its own, before its result
  infiniband   its RDMA ports: GUIDs, links, partitions
  neighbours   whom its NICs hear by LLDP within 35 s
  user-data    run the user data of the site, once, and record how it ended; its unit calls it
  flush        write the root out, so that GRUB, which reads no log of XFS, finds a new kernel
               there if power is lost; hooks of the package manager call it; it prints nothing
Each prints one JSON object. Exit 0, or 1 with "error" set, or 64 for wrong usage.
`

// bootTimeout is how long roce up waits for NICs.
const bootTimeout = time.Minute

func main() {
	if os.Getpid() == 1 {
		ramdisk.Init(os.Stdout) // never returns
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(runAgent(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// runAgent sorts the ways in which the agent is called and returns the exit status.
func runAgent(ctx context.Context, args []string, in io.Reader, out, talk io.Writer) int {
	if filepath.Base(args[0]) == "modprobe" {
		if ramdisk.Modprobe(args[1:]) != nil {
			return 1 // quiet: the kernel asks for much that does not exist
		}
		return 0
	}
	switch command := strings.Join(args[1:], " "); command {
	case ramdisk.ChildArg:
		if err := ramdisk.Main(ctx, out); err != nil {
			fmt.Fprintln(talk, "ironrail:", err)
			return 1
		}
		return 0
	case "check":
		r := nodecheck.Checker{FS: sysfs.Dir("/"), Systemctl: nodecheck.Systemctl}.Check(ctx)
		return writeAnswer(out, r, r.Error)
	case "baseline":
		var p wire.BaselineParams
		if status := decodeParams(in, talk, &p); status != 0 {
			return status
		}
		r := baseline.Reader{FS: sysfs.Dir("/"), RPM: baseline.RPM}.Read(p)
		return writeAnswer(out, r, r.Error)
	case "health":
		r := health.Read(sysfs.Dir("/"))
		r.Disks = health.Disks(sysfs.Dir("/"), health.ReadSMART)
		health.Transceivers(sysfs.Dir("/"), r.PCI, health.ReadEEPROM)
		return writeAnswer(out, r, r.Error)
	case "burn", "speed", "throughput":
		return runLoad(ctx, command, in, out, talk)
	case "infiniband", "neighbours":
		return runLinks(ctx, command, out)
	case "user-data":
		return runUserData(ctx, talk)
	case "flush":
		return flush(talk)
	case "roce up", "roce apply", "roce check":
		return runRoCE(ctx, command, in, out, talk)
	case "network apply", "network check":
		return runNetwork(ctx, command, in, out, talk)
	}
	fmt.Fprint(talk, usage)
	return 64
}

// runLinks is run for the commands that look at links.
func runLinks(ctx context.Context, command string, out io.Writer) int {
	if command == "infiniband" {
		r := infiniband.Read(sysfs.Dir("/"))
		return writeAnswer(out, r, r.Error)
	}
	r := lldp.ListenNode(ctx, lldp.Packets{}, sysfs.Dir("/"))
	return writeAnswer(out, r, r.Error)
}

// runUserData runs the user data of the site, and ends as that did.
func runUserData(ctx context.Context, talk io.Writer) int {
	r, err := userdata.Runner{Root: func() (rootfs.Root, error) { return rootfs.Open("/") }, Clock: clock.Wall{}, Run: userdata.Command}.Once(ctx)
	if err != nil {
		fmt.Fprintln(talk, "ironrail:", err)
		return 1
	}
	return r.Status()
}

// runLoad is run for the commands that load the node: one at a time.
func runLoad(ctx context.Context, command string, in io.Reader, out, talk io.Writer) int {
	switch command {
	case "throughput":
		var p wire.ThroughputParams
		if status := decodeParams(in, talk, &p); status != 0 {
			return status
		}
		r := throughput.Meter{FS: sysfs.Dir("/"), Machine: throughput.Host{}, Lock: speed.Host{}.Lock, Ready: out}.Run(ctx, p)
		return writeAnswer(out, r, r.Error)
	case "speed":
		var p wire.SpeedParams
		if status := decodeParams(in, talk, &p); status != 0 {
			return status
		}
		r := speed.Meter{FS: sysfs.Dir("/"), Machine: speed.Host{}, Lock: speed.Host{}.Lock}.Measure(ctx, p)
		return writeAnswer(out, r, r.Error)
	}
	var p wire.BurnParams
	if status := decodeParams(in, talk, &p); status != 0 {
		return status
	}
	host := &burn.Host{}
	r := burn.Burner{FS: sysfs.Dir("/"), Clock: clock.Wall{}, Run: host.Run, Lock: host.Lock, Beat: out}.Burn(ctx, p)
	return writeAnswer(out, r, r.Error)
}

// flush writes the root file system out for the loader.
func flush(talk io.Writer) int {
	if err := rootfs.Flush("/"); err != nil {
		fmt.Fprintln(talk, "ironrail: the loader may not find the newest kernel if power is lost now:", err)
		return 1
	}
	return 0
}

// runRoCE is run for the commands about rails.
func runRoCE(ctx context.Context, command string, in io.Reader, out, talk io.Writer) int {
	node := roce.Node{
		FS: sysfs.Dir("/"), Root: func() (rootfs.Root, error) { return rootfs.Open("/") },
		Network: roce.Kernel{}, RDMA: roce.Kernel{}, QoS: roce.Tools{Root: "/", Run: roce.Program},
		Reload: func(ctx context.Context) error {
			_, err := roce.Program(ctx, "nmcli", "general", "reload", "conf")
			return err
		},
		Held: func(ctx context.Context, netdev string) (bool, error) {
			state, err := roce.Program(ctx, "nmcli", "--get-values", "GENERAL.STATE", "device", "show", netdev)
			return !bytes.HasPrefix(state, []byte("10 ")), err // 10 (unmanaged)
		},
	}
	if command == "roce up" {
		node.Settle = bootTimeout
		r := node.Up(ctx)
		return writeAnswer(out, r, r.Error)
	}
	var p wire.RoCEParams
	if status := decodeParams(in, talk, &p); status != 0 {
		return status
	}
	var r wire.RoCEResult
	if command == "roce apply" {
		r = node.Apply(ctx, p)
	} else {
		r = node.Check(p)
	}
	return writeAnswer(out, r, r.Error)
}

// runNetwork is run for the commands about the interfaces of networks.
func runNetwork(ctx context.Context, command string, in io.Reader, out, talk io.Writer) int {
	node := interfaces.Node{FS: sysfs.Dir("/"), Root: func() (rootfs.Root, error) { return rootfs.Open("/") }, Link: roce.Kernel{}.SetLink, Addresses: roce.Kernel{}.Addresses, Run: roce.Program}
	var p wire.NetworkParams
	if status := decodeParams(in, talk, &p); status != 0 {
		return status
	}
	r := node.Look(p)
	if command == "network apply" {
		r = node.Set(ctx, p)
	}
	return writeAnswer(out, r, r.Error)
}

// decodeParams reads the JSON on stdin; it returns the exit status when that is not JSON.
func decodeParams(in io.Reader, talk io.Writer, into any) int {
	if err := json.NewDecoder(io.LimitReader(in, 1<<20)).Decode(into); err != nil {
		fmt.Fprintln(talk, "error: stdin:", err)
		return 64
	}
	return 0
}

// writeAnswer prints the one JSON object.
func writeAnswer(out io.Writer, result any, failed *wire.TaskError) int {
	if err := json.NewEncoder(out).Encode(result); err != nil || failed != nil {
		return 1
	}
	return 0
}
