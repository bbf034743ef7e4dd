// SPDX-License-Identifier: Apache-2.0

package addresses

import (
	"fmt"
	"io"
)

// Hosts writes a hosts file (hosts(5)): the address, the name with the domain and
// the name without. Without a domain there is the short name only.
func Hosts(w io.Writer, list []Entry, domain string) error {
	for _, e := range list {
		var err error
		if domain == "" {
			_, err = fmt.Fprintf(w, "%s\t%s\n", e.Address.Addr(), e.Name)
		} else {
			_, err = fmt.Fprintf(w, "%s\t%s.%s %s\n", e.Address.Addr(), e.Name, domain, e.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
