// SPDX-License-Identifier: Apache-2.0

package ibverbs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// List is the content of ibv_devices.
type List struct {
	Devices []Listed `json:"devices"`
}

// Listed is a device.
type Listed struct {
	Name     string    `json:"name"`
	NodeGUID addr.GUID `json:"node_guid"`
}

// ListFormat is what recognises and reads the output of ibv_devices.
var ListFormat = tool.Format{
	Name: "ibv_devices",
	Is: func(data []byte) int {
		if listHead.Match(data) {
			return 95
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return ParseList(data) },
}

var (
	listHead = lazyregexp.New(`(?m)^[ \t]*device[ \t]+node GUID[ \t]*\r?$`)
	listRow  = lazyregexp.New(`^(\S+)\s+([0-9a-f]{16})$`)
	listCut  = lazyregexp.New(`^[a-z]\w*(?:\s+[0-9a-f]{0,15})?$`)
)

// ParseList reads the output of ibv_devices.
func ParseList(data []byte) (*List, tool.Problems, error) {
	l, problems := List{Devices: []Listed{}}, tool.Problems(nil)
	n, begun, indented := 0, 0, false
	for text := range strings.SplitSeq(string(data), "\n") {
		n++
		apart := strings.TrimLeft(text, " \t") != text
		text = strings.TrimSpace(text)
		m := listRow.FindStringSubmatch(text)
		switch {
		case listHead.MatchString(text):
			if begun > 0 {
				problems.Add(tool.Inconsistent, n, "A second list begins here: outputs of two nodes are in one file.")
				continue
			}
			begun = n
		case begun == 0 || text == "" || strings.HasPrefix(text, "---"):
		case indented && !apart: // devices are indented: this is of another program
		case m != nil:
			indented = indented || apart
			guid, _ := strconv.ParseUint(m[2], 16, 64)
			l.Devices = append(l.Devices, Listed{Name: m[1], NodeGUID: addr.GUID(guid)})
		case listCut.MatchString(text):
			problems.Add(tool.Truncated, n, "The line of a device ends before its end.")
		}
	}
	if begun == 0 {
		return nil, nil, errors.New("it has no head of ibv_devices")
	}
	if len(l.Devices) == 0 && len(problems) == 0 {
		problems.Add(tool.Missing, begun, "It lists no device: the driver is not loaded, or the list ends here.")
	}
	return &l, problems, nil
}

// Summary names the devices.
func (l *List) Summary() []string {
	lines := []string{fmt.Sprintf("%d devices", len(l.Devices))}
	for _, d := range l.Devices {
		lines = append(lines, fmt.Sprintf("%s %s", d.Name, d.NodeGUID))
	}
	return lines
}
