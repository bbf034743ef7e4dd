// SPDX-License-Identifier: Apache-2.0

package configure

import "github.com/ironrail/ironrail/provision/agent/interfaces"

// Files of NetworkManager, below the root.
const (
	managerFolder = "etc/NetworkManager"
	managerConf   = managerFolder + "/conf.d/10-ironrail.conf"
	bootProfile   = interfaces.ManagerPrefix + "boot.nmconnection"
)
