// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"bytes"
	"os"
	"strconv"
)

// meter measures memory.
type meter struct{}

// startMeter begins to measure. The kernel keeps the peak of the process by
// itself; where it lets us, it is set back first (proc(5), clear_refs).
func startMeter() meter {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5\n"), 0o200) // else the peak is the process's
	return meter{}
}

// stop returns the peak of the resident memory in bytes; 0 where the kernel does
// not report.
func (meter) stop() uint64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kb, err := strconv.ParseUint(string(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte(" kB"))), 10, 64)
			if err == nil {
				return kb << 10
			}
		}
	}
	return 0
}
