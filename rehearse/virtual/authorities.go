// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	_ "embed"
	"encoding/pem"

	"github.com/ironrail/ironrail/inventory"
)

// authorities are certificates with the names of those that servers have in db as delivered. They
// stand for Microsoft's, and their private keys were thrown away.
//
//go:embed authorities.pem
var authorities []byte

// authoritiesOf are the certificates in db of a node as delivered; none where the site does not
// ask for Secure Boot.
func authoritiesOf(h *inventory.Hardware) (list []string) {
	if !h.SecureBoot {
		return nil
	}
	for block, rest := pem.Decode(authorities); block != nil; block, rest = pem.Decode(rest) {
		list = append(list, string(pem.EncodeToMemory(block)))
	}
	return list
}
