// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// NVLinks is the content of nvidia-smi nvlink: -s, -e, -c, -R or several of them.
type NVLinks struct {
	GPUs []NVLinkGPU `json:"gpus"`
}

// NVLinkGPU is the links of one GPU.
type NVLinkGPU struct {
	Index int      `json:"index"`
	Name  string   `json:"name"`
	UUID  string   `json:"uuid"`
	Links []NVLink `json:"links"`
	// MIGDevices counts the parts that the GPU is divided into, where they are listed.
	MIGDevices int `json:"mig_devices,omitempty"`
	// Info is of -info, by name: nvle, firmware_version_netir.
	Info map[string]string `json:"info,omitempty"`
}

// NVLink is one link.
type NVLink struct {
	Link         int                `json:"link"`
	Active       *bool              `json:"active"`                 // -s
	Rate         *float64           `json:"gbytes_per_s"`           // -s; GB/s, each direction
	Counters     map[string]float64 `json:"counters,omitempty"`     // -e, by name: replay_errors, recovery_errors, crc_errors
	Capabilities map[string]bool    `json:"capabilities,omitempty"` // -c, by name: p2p_is_supported
	Remote       string             `json:"remote,omitempty"`       // -R and -p: the other end
}

// errNVLink says that there is no output of nvidia-smi nvlink.
var errNVLink = errors.New(`no GPU with a line "Link 0: ..." in it`)

var (
	linkLine   = lazyregexp.New(`^\s*Link (\d+)[:,] *(.*?)\s*$`)
	linkRate   = lazyregexp.New(`^([0-9.]+) GB/s$`)
	linkRemote = lazyregexp.New(`^Remote Device (\S+?):? +(Link \d+)$`)
	linkBus    = lazyregexp.New(`^[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]$`)
	infoLine   = lazyregexp.New(`^\s+([A-Za-z][\w ]*):(?: +(\S.*?))?\s*$`)
	infoIn     = lazyregexp.New(`(?m)^\s+(?:NVLE: |NVLink Encryption: |Firmware Version:)`)
	inactive   = lazyregexp.New(`(?i)^<?(?:inactive|sleep|disabled)>?$`)
	allDown    = lazyregexp.New(`(?i)all links are inactive`)
	migDevice  = lazyregexp.New(`^\s*MIG \S+\s+Device\s+\d+:`)
	noNVLink   = lazyregexp.New(`(?i)(?:unable to retrieve nvlink information|does not (?:have or )?support nvlink)`)
)

func isNVLink(b []byte) int {
	begin := b[:min(len(b), 64<<10)]
	if listedIn.Match(begin) && (linkIn.Match(begin) || infoIn.Match(begin) || noNVLink.Match(begin)) || allDown.Match(begin) {
		return 90
	}
	return 0
}

// ParseNVLink reads nvidia-smi nvlink -s, -e, -c and -R.
func ParseNVLink(b []byte) (NVLinks, tool.Problems, error) {
	var v NVLinks
	var p tool.Problems
	r := linkReader{v: &v, p: &p, gpus: map[int]int{}, links: map[[2]int]int{}, gpu: -1}
	eachLine(b, r.read)
	if len(v.GPUs) == 0 {
		return NVLinks{}, p, errNVLink
	}
	r.check()
	return v, p, nil
}

// linkReader goes through the lines.
type linkReader struct {
	v       *NVLinks
	p       *tool.Problems
	gpus    map[int]int    // index into v.GPUs, by GPU
	links   map[[2]int]int // index into Links, by place of the GPU and link
	gpu     int            // the one that is read, index into v.GPUs
	allDown bool           // said of one: it has no links, or none that is up
	section string         // of -info, with its line of no value
}

func (r *linkReader) read(n int, line string) {
	if m := listed.FindStringSubmatch(line); m != nil {
		r.begin(n, m)
		return
	}
	switch m := linkLine.FindStringSubmatch(line); {
	case m != nil && r.gpu >= 0:
		r.link(n, m)
	case allDown.MatchString(line):
		where := "no GPU"
		if r.gpu >= 0 {
			where = fmt.Sprintf("GPU %d", r.v.GPUs[r.gpu].Index)
		}
		r.allDown = true
		r.p.Add(tool.Failed, n, "%s: all links are inactive", where)
	case r.gpu >= 0 && noNVLink.MatchString(line):
		r.allDown = true
		r.p.Add(tool.Failed, n, "GPU %d: %s", r.v.GPUs[r.gpu].Index, strings.TrimSpace(line))
	case noteComplaint(n, line, r.p):
	case tool.IsElision(line):
		r.p.Add(tool.Truncated, n, "lines are left out here")
	case r.gpu >= 0 && migDevice.MatchString(line):
		r.v.GPUs[r.gpu].MIGDevices++
	case r.gpu >= 0 && infoLine.MatchString(line):
		r.info(infoLine.FindStringSubmatch(line))
	case listTorn.MatchString(line):
		r.p.Add(tool.Truncated, n, "the line ends before its UUID")
	}
}

// begin reads the line above the links of a GPU. Of several outputs each has it.
func (r *linkReader) begin(n int, m []string) {
	i, err := strconv.Atoi(m[1])
	if err != nil {
		return
	}
	at, known := r.gpus[i]
	if !known {
		at = len(r.v.GPUs)
		r.gpus[i] = at
		r.v.GPUs = append(r.v.GPUs, NVLinkGPU{Index: i, Name: m[2], UUID: m[3]})
	} else if r.v.GPUs[at].UUID != m[3] {
		r.p.Add(tool.Inconsistent, n, "GPU %d is %s and %s", i, r.v.GPUs[at].UUID, m[3])
	}
	r.gpu, r.section = at, ""
}

// info reads a line of -info: "NVLE: disabled", or below "Firmware Version:" that of
// one part.
func (r *linkReader) info(m []string) {
	g := &r.v.GPUs[r.gpu]
	switch v, ok := readValue(m[2]); {
	case m[2] == "":
		r.section = m[1] + " "
	case ok && len(g.Info) < widest:
		g.Info = putValue(g.Info, normalizeLabel(r.section+m[1]), v)
	}
}

// link reads what a line says of one link.
func (r *linkReader) link(n int, m []string) {
	number, err := strconv.Atoi(m[1])
	if err != nil {
		return
	}
	g := &r.v.GPUs[r.gpu]
	key := [2]int{r.gpu, number}
	at, known := r.links[key]
	if !known {
		at = len(g.Links)
		r.links[key] = at
		g.Links = append(g.Links, NVLink{Link: number})
	}
	l := &g.Links[at]
	up, down := true, false
	name, value, pair := strings.Cut(m[2], ": ")
	rate := linkRate.FindStringSubmatch(m[2])
	remote := linkRemote.FindStringSubmatch(m[2])
	switch {
	case rate != nil:
		f, err := strconv.ParseFloat(rate[1], 64)
		if err != nil {
			r.p.Add(tool.Inconsistent, n, "%q is no rate", rate[1])
			return
		}
		l.Active, l.Rate = &up, &f
	case inactive.MatchString(m[2]):
		l.Active = &down
	case remote != nil:
		l.Remote = BusID(remote[1]) + " " + remote[2]
	case linkBus.MatchString(m[2]):
		l.Remote = BusID(m[2])
	case pair:
		r.value(n, l, normalizeLabel(name), strings.TrimSpace(value))
	case m[2] != "" && unsaid[strings.ToLower(trimCell(m[2]))]: // neither up nor down: N/A in MIG mode
	case broken[strings.ToLower(trimCell(m[2]))]:
		r.p.Add(tool.Failed, n, "link %d of GPU %d: %s", number, g.Index, m[2])
	default:
		r.p.Add(tool.Truncated, n, "link %d of GPU %d: nothing readable: %q", number, g.Index, m[2])
	}
}

// value reads a counter or a capability.
func (r *linkReader) value(n int, l *NVLink, name, value string) {
	if value == "true" || value == "false" {
		l.Capabilities = putValue(l.Capabilities, name, value == "true")
		return
	}
	v, err := parseNumber(value)
	switch {
	case err != nil:
		r.p.Add(tool.Inconsistent, n, "%s: %v", name, err)
	case v != nil:
		l.Counters = putValue(l.Counters, name, *v)
	case broken[strings.ToLower(trimCell(value))]:
		r.p.Add(tool.Failed, n, "%s: %s", name, value)
	}
}

// check compares the GPUs: all of one model have as many links.
func (r *linkReader) check() {
	most := map[string]int{}
	for _, g := range r.v.GPUs {
		most[g.Name] = max(most[g.Name], len(g.Links))
	}
	for i, g := range r.v.GPUs {
		r.gaps(g)
		if n := len(g.Links); n < most[g.Name] && !(r.allDown && n == 0) {
			kind := tool.Inconsistent
			if i == len(r.v.GPUs)-1 {
				kind = tool.Truncated
			}
			r.p.Add(kind, 0, "GPU %d has %d links, another %s has %d", g.Index, n, g.Name, most[g.Name])
		}
	}
}

// gaps notes links that are not in the output though one with a higher number is:
// nvidia-smi counts them from 0.
func (r *linkReader) gaps(g NVLinkGPU) {
	there := map[int]bool{}
	last := -1
	for _, l := range g.Links {
		there[l.Link] = true
		last = max(last, l.Link)
	}
	if last < 0 || last >= widest {
		return
	}
	var absent []string
	for n := range last {
		if !there[n] {
			absent = append(absent, strconv.Itoa(n))
		}
	}
	if len(absent) > 0 {
		r.p.Add(tool.Missing, 0, "GPU %d: links %s are not in it, link %d is", g.Index, strings.Join(absent, ", "), last)
	}
}

// Summary is a line for each GPU.
func (v NVLinks) Summary() []string {
	out := []string{fmt.Sprintf("NVLinks of %d GPUs", len(v.GPUs))}
	for _, g := range v.GPUs {
		up, known, errs := 0, 0, 0.0
		for _, l := range g.Links {
			if l.Active != nil {
				known++
				if *l.Active {
					up++
				}
			}
			for name, n := range l.Counters {
				if strings.Contains(name, "error") {
					errs += n
				}
			}
		}
		line := fmt.Sprintf("GPU %d %s: %d links", g.Index, g.Name, len(g.Links))
		if known > 0 {
			line += fmt.Sprintf(", %d of %d up", up, known)
		}
		if errs > 0 {
			line += fmt.Sprintf(", %g errors", errs)
		}
		out = append(out, line)
	}
	return out
}
