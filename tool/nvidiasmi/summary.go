// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"fmt"
	"strings"
)

// Summary is a line for the driver and one for each GPU.
func (l Log) Summary() []string {
	out := []string{fmt.Sprintf("%d GPUs, driver %s, CUDA %s", len(l.GPUs), textOr(l.Driver, "not said"), textOr(l.CUDA, "not said"))}
	for _, g := range l.GPUs {
		out = append(out, g.summary())
	}
	return out
}

// summary is what somebody wants to know of a GPU first, and what is not right.
func (g GPU) summary() string {
	words := []string{fmt.Sprintf("GPU %d %s %s", g.Index, g.BusID, g.Name)}
	if g.Serial != "" {
		words = append(words, "serial "+g.Serial)
	}
	if p := g.PCIe; p.Generation != nil && p.Width != nil {
		words = append(words, fmt.Sprintf("PCIe gen %d x%d", *p.Generation, *p.Width))
	}
	if n := g.ECC.Volatile.Uncorrectable; n != nil && *n > 0 {
		words = append(words, fmt.Sprintf("%d uncorrectable errors", *n))
	}
	if p := g.RemappedRows.Pending; p != nil && *p {
		words = append(words, "rows to be remapped at the next reset")
	}
	if f := g.RemappedRows.Failure; f != nil && *f {
		words = append(words, "remapping of a row failed")
	}
	if a := g.RecoveryAction; a != "" && a != "None" {
		words = append(words, "needs: "+a)
	}
	return strings.Join(words, ", ")
}

// textOr returns the first of two texts that is not empty.
func textOr(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
