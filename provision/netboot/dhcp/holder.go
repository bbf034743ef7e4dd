// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// portHolder names the processes of this controller that have a UDP socket on the
// port, from /proc. It is for a message only: what cannot be read is left out.
func portHolder(port uint16) string {
	inodes := udpInodes(port)
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	var found []string
	seen := map[string]bool{}
	for _, fd := range fds {
		target, err := os.Readlink(fd)
		if err != nil || !inodes[target] {
			continue
		}
		dir := filepath.Dir(filepath.Dir(fd))
		if seen[dir] {
			continue
		}
		seen[dir] = true
		name, _ := os.ReadFile(filepath.Join(dir, "comm"))
		found = append(found, fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), filepath.Base(dir)))
	}
	if len(found) == 0 {
		return "another process"
	}
	return strings.Join(found, " and ")
}

// udpInodes returns the link targets ("socket:[123]") of UDP sockets on port.
func udpInodes(port uint16) map[string]bool {
	out := map[string]bool{}
	for _, table := range []string{"/proc/net/udp", "/proc/net/udp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		for sc := bufio.NewScanner(f); sc.Scan(); {
			c := strings.Fields(sc.Text()) // sl, local address, ..., inode in column 10
			if len(c) > 9 && strings.HasSuffix(c[1], fmt.Sprintf(":%04X", port)) {
				out["socket:["+c[9]+"]"] = true
			}
		}
		f.Close()
	}
	return out
}
