// SPDX-License-Identifier: Apache-2.0

package firmware

import (
	"encoding/json"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/bootfile"
)

// Boot returns what the node is told in its own initrd segment. The error, of
// kind Mismatch, is what the kernel's /init would say.
func (k Kernel) Boot() (wire.Boot, error) {
	var w wire.Boot
	b, err := bootfile.Find(k.Initrd)
	if err != nil {
		return w, err
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return w, errkind.New(errkind.Invalid, "boot file %s: %w", wire.BootFile, err)
	}
	return w, nil
}
