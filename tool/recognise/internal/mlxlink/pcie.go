// SPDX-License-Identifier: Apache-2.0

package mlxlink

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// pcie is the title of the part of each PCI Express link.
const pcie = "PCIe Operational (Enabled) Info"

// mostPCIe is how many PCI Express links are read; a NIC with a switch has some ten.
const mostPCIe = 64

// PCIe is one PCI Express link of a NIC, or of the switch on it.
type PCIe struct {
	Depth        int    `json:"depth"`
	Index        int    `json:"pcie_index"`
	Node         int    `json:"node"`
	Speed        string `json:"speed,omitempty"` // that the link runs at, such as "16G-Gen 4"
	Width        string `json:"width,omitempty"` // such as 16X
	EnabledSpeed string `json:"enabled_speed,omitempty"`
	EnabledWidth string `json:"enabled_width,omitempty"`
	Status       string `json:"device_status,omitempty"` // errors that the device has noted
	Downgraded   bool   `json:"downgraded,omitempty"`    // slower or narrower than enabled
}

var (
	pcieHeading = lazyregexp.New(`(?m)^[ \t]*PCIe Operational \(Enabled\) Info[ \t]*\r?\n[ \t]*-{8,}`)
	place       = lazyregexp.New(`^(\d{1,3}), (\d{1,3}), (\d{1,3})$`)
	enabled     = lazyregexp.New(`^(.*?) \(([^()]*)\)$`)
	leadingInt  = lazyregexp.New(`^\d+`)
)

// finishPCIe makes the typed links of the parts that mlxlink writes of them.
func (l *Link) finishPCIe(problems *tool.Problems) {
	seen := map[string]bool{}
	for name := pcie; l.Sections[name] != nil; name = l.nextPCIe() {
		values := l.Sections[name]
		var p PCIe
		at := values["Depth, pcie index, node"]
		m := place.FindStringSubmatch(at)
		if m == nil || values["Link Width Active (Enabled)"] == "" {
			problems.Add(tool.Truncated, 0, "The part %q ends before its end.", name)
		} else {
			p.Depth, p.Index, p.Node = parseDigits(m[1]), parseDigits(m[2]), parseDigits(m[3])
		}
		if seen[at] {
			problems.Add(tool.Inconsistent, 0, "PCIe link %s is there twice: outputs of two devices are in one file.", at)
		}
		seen[at] = true
		p.Speed, p.EnabledSpeed = splitActive(values["Link Speed Active (Enabled)"])
		p.Width, p.EnabledWidth = splitActive(values["Link Width Active (Enabled)"])
		if status := values["Device Status"]; status != "N/A" {
			p.Status = status
		}
		p.Downgraded = parseDigits(p.Speed) < parseDigits(p.EnabledSpeed) || parseDigits(p.Width) < parseDigits(p.EnabledWidth)
		l.PCIe = append(l.PCIe, p)
	}
}

// nextPCIe is the name of the part behind those that were read.
func (l *Link) nextPCIe() string { return fmt.Sprintf("%s %d", pcie, len(l.PCIe)+1) }

// splitActive reads "8G-Gen 3 (16G-Gen 4)": what is, and what is enabled.
func splitActive(text string) (active, most string) {
	if m := enabled.FindStringSubmatch(text); m != nil {
		return m[1], m[2]
	}
	return text, ""
}

// parseDigits returns the number that a text begins with; 0 when it begins with none.
func parseDigits(text string) int {
	n, err := strconv.Atoi(leadingInt.FindString(text))
	if err != nil {
		return 0
	}
	return n
}

// line says what a link runs at, for a person.
func (p PCIe) line() string {
	line := strings.TrimSpace(fmt.Sprintf("PCIe %d, %d, %d runs at %s %s", p.Depth, p.Index, p.Node, p.Speed, p.Width))
	if p.Downgraded {
		line += fmt.Sprintf(" of %s %s", p.EnabledSpeed, p.EnabledWidth)
	}
	return line
}
