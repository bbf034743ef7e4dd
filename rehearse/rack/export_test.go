// SPDX-License-Identifier: Apache-2.0

package rack

import "github.com/ironrail/ironrail/fabric/infiniband"

// SubnetHost is where the subnet manager of a fabric runs on the rack.
func SubnetHost(c *Client, fabric string) infiniband.Host { return subnetHost{c, fabric} }
