// SPDX-License-Identifier: Apache-2.0

package uniform

// Names of what a site may allow to differ among the nodes of a role.
const (
	OddFirmware = "odd-firmware"
	OddSettings = "odd-settings"
	OddSystem   = "odd-system"
	OddModel    = "odd-model"
)
