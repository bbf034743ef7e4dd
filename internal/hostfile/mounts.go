// SPDX-License-Identifier: Apache-2.0

package hostfile

import (
	"fmt"
	"slices"
	"strings"
)

// MountUnitFile is the file of the systemd unit that mounts a file system at a path, such as
// etc/systemd/system/scratch-a\x2db.mount; the unit is its last element (systemd.mount(5)).
func MountUnitFile(path string) string { return "etc/systemd/system/" + MountUnitName(path) }

// MountUnitName is the name of the unit that mounts at an absolute, clean path: as
// `systemd-escape --path --suffix=mount` writes it (systemd.unit(5)).
func MountUnitName(path string) string {
	var b strings.Builder
	for i, c := range []byte(strings.TrimPrefix(path, "/")) {
		switch {
		case c == '/':
			b.WriteByte('-')
		case c == '.' && i > 0, c == ':', c == '_', c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String() + ".mount"
}

// MountUnit is the content of a unit that mounts source at path. It waits for the network, and
// a start of the system does not depend on it: a node whose server is down still comes up.
func MountUnit(path, kind, source string, options []string) string {
	own := slices.Clone(options)
	if !slices.Contains(own, "_netdev") {
		own = append(own, "_netdev")
	}
	whole := strings.NewReplacer("%", "%%") // specifiers of systemd.unit(5)
	return "# Written by ironrail, from a mount block of the site.\n" +
		"[Unit]\nDescription=" + whole.Replace(source) + " at " + whole.Replace(path) + "\n\n" +
		"[Mount]\nWhat=" + whole.Replace(source) + "\nWhere=" + whole.Replace(path) + "\nType=" + kind + "\nOptions=" + whole.Replace(strings.Join(own, ",")) + "\nTimeoutSec=90\n\n" +
		"[Install]\nWantedBy=remote-fs.target\n"
}

// Mounted is one line of /proc/self/mounts (proc_pid_mounts(5)).
type Mounted struct {
	Source, Path, Type string
	Options            []string
}

// MountAt finds what is mounted last at a path in the text of /proc/self/mounts.
func MountAt(text, path string) (m Mounted, ok bool) {
	plain := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#")
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) >= 4 && plain.Replace(f[1]) == path {
			m, ok = Mounted{plain.Replace(f[0]), path, f[2], strings.Split(f[3], ",")}, true
		}
	}
	return m, ok
}
