// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// A disk with two ports (SAS, Fibre Channel) that are both cabled is two block
// devices where no multipath driver runs, as in the ramdisk.

// samePath reports whether two block devices are certainly one disk: a World Wide
// Name is of one disk only, and both show the same content. A serial number alone
// does not do: some controllers report their own for each disk.
func samePath(a, b wire.Disk) bool {
	return a.Path != b.Path && sameDisk(a, b) && a.WWN != "" && b.WWN != "" && a.Size == b.Size && a.Content == b.Content && a.Marker == b.Marker
}

// onePath reports whether all of several block devices are certainly one disk.
func onePath(list []wire.Disk) bool {
	for i := range list[1:] {
		if !samePath(list[0], list[i+1]) {
			return false
		}
	}
	return len(list) > 1
}

// describePaths says which of these block devices are one disk, and by what; "" when
// none are.
func describePaths(list []wire.Disk) string {
	var words []string
	reported := map[string]bool{} // by path
	for i, d := range list {
		group := []wire.Disk{d}
		for _, x := range list[i+1:] {
			if !reported[x.Path] && x.Path != d.Path && sameDisk(d, x) {
				group = append(group, x)
			}
		}
		if reported[d.Path] || len(group) < 2 {
			continue
		}
		var names, by []string
		for _, x := range group {
			names, reported[x.Path] = append(names, x.Name), true
		}
		if s := strings.TrimSpace(d.Serial); s != "" {
			by = append(by, "one serial number "+s)
		}
		if d.WWN != "" {
			by = append(by, "one WWN "+d.WWN)
		}
		text := fmt.Sprintf("%s have %s: they are one disk that is seen over %d paths", listOf(names), listOf(by), len(group))
		if !onePath(group) {
			text += ", or two disks that report one number"
		}
		words = append(words, text)
	}
	if len(words) == 0 {
		return ""
	}
	return "; " + strings.Join(words, "; ")
}

// suggestPathSelector says what to write so that as many of these paths are meant as the block
// counts.
func suggestPathSelector(n *inventory.Node, d inventory.Disk, among []wire.Disk) string {
	var ways []string
	add := func(name string, value func(wire.Disk) string) {
		count, values := map[string]int{}, []string{}
		for _, x := range among {
			count[value(x)]++
		}
		for _, x := range among {
			if v := value(x); v != "" && count[v] == max(1, d.Count) {
				values, count[v] = append(values, fmt.Sprintf("%q", v)), 0
			}
		}
		if len(values) > 0 {
			ways = append(ways, name+" = "+strings.Join(values, " or "))
		}
	}
	add("pci", func(x wire.Disk) string { return x.PCI })
	add("by_path", func(x wire.Disk) string { return x.ByPath })
	text := "Nothing was erased. "
	if len(ways) > 0 {
		text += fmt.Sprintf("Say which path to use: in hardware.%s disk %q, %s (of all its nodes). Or l", n.Hardware.Name, d.Name, strings.Join(ways, ", or "))
	} else {
		text += "L"
	}
	return text + "eave one path to each disk: unplug the other cables, or switch those ports of the controller off."
}

// listOf writes names in words: sda, sdb and sdc.
func listOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// declaredPath returns the path that the disk block of the layout names, where these
// block devices are one disk and it names one of them; nil where it does not.
func declaredPath(n *inventory.Node, list []wire.Disk) *wire.Disk {
	if n.Disks == nil || !onePath(list) {
		return nil
	}
	d, ok := n.Hardware.Disk(n.Disks.On)
	if !ok {
		return nil
	}
	var found *wire.Disk
	for i := range list {
		if !diskFits(*d, list[i]) {
			continue
		}
		if found != nil {
			return nil
		}
		found = &list[i]
	}
	return found
}
