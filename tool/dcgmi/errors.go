// SPDX-License-Identifier: Apache-2.0

package dcgmi

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

var (
	errorTable = lazyregexp.New(`(?m)^\s*\|\s*N[vV](?:LINK|Link) Error Counts\s*\|`)
	errorGPU   = lazyregexp.New(`^\s*\|\s*GPU (\d+)\s*\|\s*$`)
	errorOf    = lazyregexp.New(`^\s*\|\s*(Link \d+|Error Detail)\s*\|\s*\|\s*$`)
	errorCount = lazyregexp.New(`^\s*\|\s*-> (\S.*?)\s*\|\s*(\S+)\s*\|\s*$`)
)

// mostCounts is how many names of counts a GPU has, over all its links.
const mostCounts = 4096

// parseErrors reads dcgmi nvlink -e, of one GPU or of several one after another
// (DisplayNvLinkErrorCountsForGpu of Nvlink.cpp).
func parseErrors(data []byte, problems *tool.Problems) Content {
	c := Content{Command: "nvlink", GPUs: []GPU{}}
	link, n, counts, closed := "", 0, 0, false
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimRight(line, " \t\r\n")
		if m := errorGPU.FindStringSubmatch(line); m != nil {
			id, _ := strconv.Atoi(m[1])
			c.GPUs = append(c.GPUs, GPU{ID: id, Errors: map[string]map[string]float64{}})
			link = ""
		} else if m := errorOf.FindStringSubmatch(line); m != nil {
			link = m[1]
		} else if m := errorCount.FindStringSubmatch(line); m != nil && link != "" && len(c.GPUs) > 0 {
			v, err := strconv.ParseFloat(m[2], 64)
			if err != nil || v != v || v > 1e18 || v < 0 {
				problems.Add(tool.Inconsistent, n, "%s: %q is no count", m[1], m[2])
			} else if counts++; counts <= mostCounts {
				c.GPUs[len(c.GPUs)-1].counted(link, m[1], v)
			}
		}
		if text := strings.TrimSpace(line); text != "" {
			closed = strings.HasPrefix(text, "+")
		}
	}
	if !closed {
		problems.Add(tool.Truncated, 0, "the table ends before its end")
	}
	return c
}

func (g *GPU) counted(link, name string, v float64) {
	if g.Errors[link] == nil {
		g.Errors[link] = map[string]float64{}
	}
	g.Errors[link][name] = v
}

// errors is how many errors there were over all links; a rate is none.
func (g GPU) errors() (sum float64) {
	for _, link := range g.Errors {
		for name, v := range link {
			if !strings.Contains(name, "BER") {
				sum += v
			}
		}
	}
	return sum
}
