// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
)

// The words of a GPU's name that two makers of lists write alike: H100, GB200, MI300X,
// L40S; and what memory it has.
var (
	gpuWord    = lazyregexp.New(`^(GB|GH|MI|[ABHLPTV])[0-9]{1,3}[A-Z]?$`)
	memoryWord = lazyregexp.New(`^[0-9]{2,3}GB$`)
)

// modelWords returns the words of a name by which models are compared; empty where it
// has none.
func modelWords(name string) (model, memory string) {
	for _, w := range strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
		switch {
		case model == "" && gpuWord.MatchString(w):
			model = w
		case memory == "" && memoryWord.MatchString(w):
			memory = w
		}
	}
	return model, memory
}

// sameModel reports whether two names can be of one model; known is false where they
// have nothing by which they could be compared.
func sameModel(want, is string) (same, known bool) {
	if strings.EqualFold(want, is) {
		return true, true
	}
	model, memory := modelWords(want)
	otherModel, otherMemory := modelWords(is)
	if model == "" || otherModel == "" {
		return false, false
	}
	return model == otherModel && (memory == "" || otherMemory == "" || memory == otherMemory), true
}

// compareModels holds the names of a host's GPUs against those of its hardware block.
func compareModels(h *inventory.Hardware, s survey) (faults []install.Fault) {
	for _, want := range h.GPUs {
		for _, is := range s.gpus() {
			if same, known := sameModel(want.Model, is.Model); is.Vendor == want.Vendor && known && !same {
				faults = append(faults, install.Fault{Part: "GPUs", Found: fmt.Sprintf("they are %s, and hardware.%s says %s", is.Model, h.Name, want.Model),
					Action: "Find out which board was delivered; or correct the model in the hardware block."})
			}
		}
	}
	return faults
}

// uncompared are the words of a hardware block that nothing is held against, in words.
func uncompared(h *inventory.Hardware) string {
	var list []string
	for _, w := range []struct {
		word  string
		given bool
	}{
		{"bios", len(h.BIOS) > 0}, {"tpm", h.TPM != ""}, {"secure_boot", h.SecureBoot}, {"power", h.Power.Supplies > 0}, {"dpu", len(h.DPUs) > 0},
		{"bmc of firmware", !h.Versions.BMC.IsZero()}, {"model of cpu", h.CPU.Model != ""},
	} {
		if w.given {
			list = append(list, w.word)
		}
	}
	for _, g := range h.GPUs {
		if g.Memory > 0 {
			list = append(list, "memory of gpu")
			break
		}
	}
	for _, n := range h.NICs {
		if n.Model != "" {
			list = append(list, "model of nic and hca")
			break
		}
	}
	return strings.Join(list, ", ")
}
