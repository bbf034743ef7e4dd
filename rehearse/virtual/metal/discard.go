// SPDX-License-Identifier: Apache-2.0

package metal

import "github.com/ironrail/ironrail/provision/agent/disk"

var _ disk.Discarder = (*handle)(nil)

// TryDiscard is disk.Discarder: what is discarded reads as zeroes.
func (h *handle) TryDiscard(off, length int64) error {
	if err := h.zero(off, length); err != nil {
		return err
	}
	if off == 0 {
		h.mu.Lock()
		h.counters.Erases++
		h.mu.Unlock()
	}
	return nil
}
