// SPDX-License-Identifier: Apache-2.0

package ethtool

import (
	"errors"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Driver is what ethtool -i says of an interface. What it does not say is empty.
type Driver struct {
	Driver   string            `json:"driver,omitempty"`
	Version  string            `json:"version,omitempty"` // of the driver; of one in the kernel, the kernel's
	Firmware string            `json:"firmware_version,omitempty"`
	PSID     string            `json:"psid,omitempty"` // of an NVIDIA NIC, behind its firmware: MT_0000000838
	ROM      string            `json:"expansion_rom_version,omitempty"`
	Bus      string            `json:"bus_info,omitempty"` // PCI address
	Supports map[string]bool   `json:"supports"`           // by name, such as "statistics"
	All      map[string]string `json:"all"`                // all lines, as printed
}

// DriverFormat is what recognises and reads ethtool -i.
var DriverFormat = tool.Format{
	Name: "ethtool-i",
	Is: func(data []byte) int {
		if driverHead.Match(data) && firmwareLine.Match(data) {
			return 90
		}
		if driverFailed.Match(data) {
			return 60
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return ParseDriver(data) },
}

var (
	driverHead   = lazyregexp.New(`(?m)^[ \t]*driver: (\S.*?)[ \t]*\r?$`)
	firmwareLine = lazyregexp.New(`(?m)^[ \t]*firmware-version:`)
	driverFailed = lazyregexp.New(`(?m)^[ \t]*Cannot get driver information: .*$`)
	driverLine   = lazyregexp.New(`^([a-z][a-z-]*):(?: (.*))?$`)
	psid         = lazyregexp.New(`^(\S+) \(([A-Z0-9_]+)\)$`)
)

// mostFailures is how many failures are written out.
const mostFailures = 20

// driverLast is the line that stands last, in all versions since 2014.
const driverLast = "supports-priv-flags"

// ParseDriver reads what ethtool -i says of one interface.
func ParseDriver(data []byte) (*Driver, tool.Problems, error) {
	d, problems := Driver{Supports: map[string]bool{}, All: map[string]string{}}, tool.Problems(nil)
	n, failed := 0, false
	for text := range strings.SplitSeq(string(data), "\n") {
		n++
		if driverFailed.MatchString(text) && len(problems) < mostFailures {
			failed = true
			problems.Add(tool.Failed, n, "ethtool failed: %s", strings.TrimSpace(text))
		}
		m := driverLine.FindStringSubmatch(strings.TrimSpace(text))
		if m == nil || d.Driver == "" && m[1] != "driver" {
			continue
		}
		if m[1] == "driver" && d.Driver != "" {
			problems.Add(tool.Inconsistent, n, "The driver of a second interface is here.")
			break
		}
		d.line(m[1], strings.TrimSpace(m[2]), n, &problems)
	}
	if d.Driver == "" && failed {
		return &d, problems, nil
	}
	if d.Driver == "" {
		return nil, nil, errors.New("it has no driver of an interface")
	}
	if _, whole := d.All[driverLast]; !whole {
		problems.Add(tool.Truncated, 0, "The line %q, which is the last one, is not there.", driverLast)
	}
	return &d, problems, nil
}

func (d *Driver) line(name, value string, n int, problems *tool.Problems) {
	d.All[name] = value
	switch name {
	case "driver":
		d.Driver = value
	case "version":
		d.Version = value
	case "firmware-version":
		d.Firmware = value
		if m := psid.FindStringSubmatch(value); m != nil {
			d.Firmware, d.PSID = m[1], m[2]
		}
	case "expansion-rom-version":
		d.ROM = value
	case "bus-info":
		d.Bus = value
	default:
		what, found := strings.CutPrefix(name, "supports-")
		if !found {
			return
		}
		if value != "yes" && value != "no" {
			delete(d.All, name)
			problems.Add(tool.Truncated, n, "%s is %q, which is neither yes nor no.", name, value)
			return
		}
		d.Supports[what] = value == "yes"
	}
}

// Summary is one line.
func (d *Driver) Summary() []string {
	if d.Driver == "" {
		return []string{"the driver is not known"}
	}
	line := "driver " + d.Driver
	for _, part := range []struct{ name, value string }{{"version", d.Version}, {"firmware", d.Firmware}, {"at", d.Bus}} {
		if part.value != "" {
			line += ", " + part.name + " " + part.value
		}
	}
	return []string{line}
}
