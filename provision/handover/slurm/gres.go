// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/place"
)

// gpuSet is the GPUs of a node.
type gpuSet struct {
	vendor string // "nvidia" or "amd"
	model  string // as a type of GRES: lower case, without what a list would take for its own
	count  int
}

// gpusOf returns the GPUs of a node's hardware, whose number its inspection has proved.
// A chassis with several models has the type of the first: Slurm's other types
// need gres = "autodetect".
func gpusOf(n *inventory.Node) gpuSet {
	var g gpuSet
	if n.Hardware == nil {
		return g
	}
	for _, x := range n.Hardware.GPUs {
		if g.model == "" {
			g.vendor, g.model = x.Vendor, strings.ReplaceAll(strings.ToLower(place.PlainName(x.Model)), "-", "_")
		}
		g.count += max(x.Count, 1)
	}
	return g
}

// Device files of GPUs. NVIDIA's driver numbers them from 0 in the order of the
// bus; render nodes begin at 128 (Linux, drivers/gpu/drm: minors of DRM_MINOR_RENDER).
const firstRender = 128

// device is the File= of so many GPUs from the first one on.
func (g gpuSet) device(from, count int) string {
	first, name := from, "/dev/nvidia"
	if g.vendor == "amd" {
		first, name = firstRender+from, "/dev/dri/renderD"
	}
	if count == 1 {
		return fmt.Sprintf("%s%d", name, first)
	}
	return fmt.Sprintf("%s[%d-%d]", name, first, first+count-1)
}

// autodetect is the library that finds the GPUs by itself.
func (g gpuSet) autodetect() string {
	if g.vendor == "amd" {
		return "rsmi"
	}
	return "nvml"
}

// nearestSockets returns the sockets of a node's GPUs in the order of the bus, which is that
// of their device files, and the cores of a socket: "0 0 1 1/56". It is empty where
// it is not known of every GPU, or the sockets are not alike.
func nearestSockets(g gpuSet, hw wire.Hardware) string {
	c := hw.CPU
	if c.Sockets < 2 || socketWords(c) == nil { // of one socket all cores are as near
		return ""
	}
	sockets := place.Sockets(g.vendor, g.count, hw)
	if sockets == nil {
		return ""
	}
	words := make([]string, len(sockets))
	for i, s := range sockets {
		words[i] = strconv.Itoa(s)
	}
	return strings.Join(words, " ") + "/" + strconv.Itoa(c.Cores/c.Sockets)
}

// lines are the Name=gpu lines of one kind of node. Cores are counted as Slurm does,
// socket by socket, whatever the kernel's numbers are (gres.conf(5), Cores).
func (g gpuSet) lines(near string) (list []string) {
	at, cores, known := strings.Cut(near, "/")
	if !known {
		return []string{fmt.Sprintf("Name=gpu Type=%s File=%s", g.model, g.device(0, g.count))}
	}
	of := strings.Fields(at)
	per, _ := strconv.Atoi(cores)
	for from := 0; from < len(of); {
		to := from
		for to < len(of) && of[to] == of[from] {
			to++
		}
		socket, _ := strconv.Atoi(of[from])
		list = append(list, fmt.Sprintf("Name=gpu Type=%s File=%s Cores=%d-%d", g.model, g.device(from, to-from), socket*per, socket*per+per-1))
		from = to
	}
	return list
}

// gresConf is gres.conf(5): lines for the nodes that have the same GPUs on the same
// sockets; nil where there are none.
func gresConf(t handover.Target, members []handover.Member) []byte {
	how := readSettings(t.Handover).gres
	type kind struct {
		gpuSet
		near string
	}
	nodes := map[kind][]string{}
	var order []kind
	for _, m := range members {
		g := gpusOf(m.Node)
		if g.count == 0 || how == "none" {
			continue
		}
		k := kind{gpuSet: g}
		if how != "autodetect" { // the library knows the cores by itself
			k.near = nearestSockets(g, m.Hardware)
		}
		if nodes[k] == nil {
			order = append(order, k)
		}
		nodes[k] = append(nodes[k], m.Node.Name)
	}
	if len(order) == 0 {
		return nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# GPUs of handover %q, written by ironrail. Changes by hand are lost.\n", t.Name)
	for _, k := range order {
		if how == "autodetect" {
			fmt.Fprintf(&b, "NodeName=%s AutoDetect=%s Name=gpu Type=%s\n", writeHostlist(nodes[k]), k.autodetect(), k.model)
			continue
		}
		for _, line := range k.lines(k.near) {
			fmt.Fprintf(&b, "NodeName=%s AutoDetect=off %s\n", writeHostlist(nodes[k]), line)
		}
	}
	return b.Bytes()
}
