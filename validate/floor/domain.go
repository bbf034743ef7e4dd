// SPDX-License-Identifier: Apache-2.0

package floor

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/inventory"
)

// domainFigure is what somebody measured of an all-reduce over the NVLink of a domain.
type domainFigure struct {
	model  string
	trays  int
	busbw  float64 // bytes per second, at 8 or 16 GiB
	source string
}

// domainFigures are the published ones. There is none for 9 trays, nor for any other
// number: these are held against no limit.
var domainFigures = []domainFigure{
	{"GB200", 2, 838e9, "838 GB/s of Google Cloud"},
	{"GB200", 4, 882e9, "882 GB/s at 16 GiB of NVIDIA's NVCRE"},
	{"GB200", 18, 835e9, "835 GB/s at 8 GiB of CoreWeave (nccl-tests, pull request 43)"},
	{"GB300", 8, 923e9, "923 GB/s of NVIDIA's NVCRE"},
}

// domainShare is the part of one published measurement that is asked for, percent. No
// vendor publishes a limit: a tenth is ours, more than two runs of the same rack differ by
// (835 and 847), and far above the rails, which a fall-back takes (200).
const domainShare = 90

// ExpectDomain returns what an all-reduce over so many trays of an NVLink domain must show.
// Least is 0 where nobody has published a figure.
func ExpectDomain(h *inventory.Hardware, trays int) Expected {
	for _, g := range h.GPUs {
		for _, f := range domainFigures {
			if strings.EqualFold(g.Model, f.model) && f.trays == trays && g.Count == 4 {
				return Expected{Least: f.busbw * domainShare / 100, Source: fmt.Sprintf("%d%% of %s", domainShare, f.source)}
			}
		}
	}
	return Expected{}
}
