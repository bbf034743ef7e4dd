// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// Fitted is a part that is in a node, by what is printed on it: what a vendor asks for
// when it is returned. Texts are as the part tells them.
type Fitted struct {
	Kind     string `json:"kind"`           // GPU, transceiver, DIMM, disk
	At       string `json:"at"`             // PCI address of it or of its NIC, or the slot
	Name     string `json:"name,omitempty"` // as findings call it
	Model    string `json:"model,omitempty"`
	Serial   string `json:"serial,omitempty"`
	Firmware string `json:"firmware,omitempty"`
	Power    string `json:"power,omitempty"` // of a transceiver: received and sent, by lane
}

// The kinds of fitted parts.
const (
	FittedGPU         = "GPU"
	FittedTransceiver = "transceiver"
	FittedDIMM        = "DIMM"
	FittedDisk        = "disk"
)

// listFitted are the parts of a node that its programs and its kernel tell of.
func listFitted(s look.Seen) (list []Fitted) {
	names := judge.PartNames(nil, s)
	if s.NVIDIA != nil {
		for _, g := range s.NVIDIA.GPUs {
			list = append(list, Fitted{Kind: FittedGPU, At: g.BusID, Name: names[g.BusID], Model: join(g.Name, "part", cmp.Or(g.PartNumber, g.BoardPartNumber)), Serial: g.Serial, Firmware: join("", "VBIOS", g.VBIOS)})
		}
	}
	if s.AMD != nil {
		for _, g := range s.AMD.GPUs {
			if x := g.Static; x != nil && (g.Partition == nil || *g.Partition == 0) {
				list = append(list, Fitted{Kind: FittedGPU, At: g.BDF, Name: names[g.BDF], Model: join(cmp.Or(x.ProductName, x.Name), "part", x.Model), Serial: cmp.Or(x.ProductSerial, x.Serial), Firmware: join("", "VBIOS", x.VBIOS)})
			}
		}
	}
	for _, l := range s.Health.PCI {
		if t := l.Transceiver; t != nil {
			list = append(list, Fitted{Kind: FittedTransceiver, At: l.Address, Model: strings.TrimSpace(t.Maker + " " + t.Part), Serial: t.Serial, Firmware: t.Firmware, Power: powerText(*t)})
		}
	}
	for _, m := range s.Health.DIMMs {
		if m.Size > 0 {
			list = append(list, Fitted{Kind: FittedDIMM, At: m.Slot, Name: "DIMM " + m.Slot, Model: strings.TrimSpace(m.Maker + " " + m.Part), Serial: m.Serial})
		}
	}
	for _, d := range s.Health.Drives {
		at := d.Name
		if d.Bay != "" {
			at += ", bay " + d.Bay
		}
		list = append(list, Fitted{Kind: FittedDisk, At: at, Name: "disk " + d.Name, Model: d.Model, Serial: d.Serial})
	}
	return list
}

// join puts a word and a value behind a text; a value that is not known is left out.
func join(text, word, value string) string {
	if value == "" {
		return text
	}
	return strings.TrimPrefix(fmt.Sprintf("%s, %s %s", text, word, value), ", ")
}

// powerText says how much light a transceiver receives and sends, by lane.
func powerText(t wire.Transceiver) string {
	lanes := func(list []float64) string {
		words := make([]string, len(list))
		for i, v := range list {
			words[i] = fmt.Sprintf("%.1f", v)
		}
		return strings.Join(words, " ")
	}
	var words []string
	if len(t.Received) > 0 {
		words = append(words, "receives "+lanes(t.Received)+" dBm")
	}
	if len(t.Sent) > 0 {
		words = append(words, "sends "+lanes(t.Sent)+" dBm")
	}
	return strings.Join(words, ", ")
}
