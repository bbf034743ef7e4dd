// SPDX-License-Identifier: Apache-2.0

// Package nodes makes the list that the site beside it is made from: as many nodes
// as asked for, eight in a rack.
package nodes

import (
	"bufio"
	"fmt"
	"io"
)

// Chassis of 4 rack units in one rack, and racks in one row.
const (
	perRack = 8
	perRow  = 40
)

// Write writes the list of so many nodes. Serials and MACs are made up.
func Write(out io.Writer, nodes int) error {
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, "name,rack,number,row,unit,serial,bmc_mac,boot_mac")
	for i := range nodes {
		rack, slot := i/perRack+1, i%perRack
		fmt.Fprintf(w, "n%05d,r%04d,%d,%03d,%d,MADE%05d,%s,%s\n", i+1, rack, rack, (rack-1)/perRow+1, 1+4*slot, i+1, mac(1, i+1), mac(2, i+1))
	}
	return w.Flush()
}

// mac is a locally administered address.
func mac(kind, i int) string {
	return fmt.Sprintf("02:00:%02x:%02x:%02x:%02x", kind, i>>16&0xff, i>>8&0xff, i&0xff)
}
