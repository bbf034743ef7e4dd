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

// MIG is what nvidia-smi mig lists: the parts of GPUs that there are (-lgi, -lci),
// and those that there may be (-lgip, -lcip).
type MIG struct {
	GPUInstances     []MIGPart `json:"gpu_instances,omitempty"`
	ComputeInstances []MIGPart `json:"compute_instances,omitempty"`
	GPUProfiles      []MIGPart `json:"gpu_instance_profiles,omitempty"`
	ComputeProfiles  []MIGPart `json:"compute_instance_profiles,omitempty"`
}

// MIGPart is one part, or one kind of part.
type MIGPart struct {
	GPU      int      `json:"gpu"`
	Instance *int64   `json:"gpu_instance,omitempty"` // that a compute instance is of
	Profile  string   `json:"profile"`                // 1g.10gb
	ID       int64    `json:"profile_id"`
	Number   *int64   `json:"id,omitempty"` // of an instance
	Start    *int64   `json:"placement_start,omitempty"`
	Size     *int64   `json:"placement_size,omitempty"`
	Free     *int64   `json:"free,omitempty"` // how many more there may be
	Total    *int64   `json:"total,omitempty"`
	Memory   *float64 `json:"memory_gib,omitempty"`
	SMs      *int64   `json:"sms,omitempty"`
}

// errMIG says that there is no table of nvidia-smi mig.
var errMIG = errors.New("no table of nvidia-smi mig in it")

var (
	migIn    = lazyregexp.New(`(?m)^\s*\| (?:GPU|Compute) instances?(?: profiles)?:\s*\|`)
	migTitle = lazyregexp.New(`^\| (GPU|Compute) (instances|instance profiles):`)
	migRow   = lazyregexp.New(`^\|\s+(\d+)\s+(?:(\d+)\s+)?MIG (\S+)\s+(\d+)\*?\s+(\S.*?)\s*\|$`)
	migTorn  = lazyregexp.New(`^\|\s+\d+\s.*MIG `)
	migNone  = lazyregexp.New(`(?i)^no (?:gpu|compute) instances? found|^no mig-enabled devices found|^no mig-supported devices found`)
)

func isMIG(b []byte) int {
	switch begin := b[:min(len(b), 64<<10)]; {
	case migIn.Match(begin):
		return 90
	case migNone.Match(begin):
		return 60
	}
	return 0
}

// ParseMIG reads nvidia-smi mig -lgi, -lci, -lgip and -lcip, also several of them.
func ParseMIG(b []byte) (MIG, tool.Problems, error) {
	var v MIG
	var p tool.Problems
	var into *[]MIGPart
	tables, last, none := 0, "", false
	eachLine(b, func(n int, line string) {
		line = strings.TrimSpace(line)
		if m := migTitle.FindStringSubmatch(line); m != nil {
			into, tables = v.list(m[1], m[2]), tables+1
		} else if m := migRow.FindStringSubmatch(line); m != nil && into != nil {
			v.row(n, m, into, &p)
		} else if into != nil && migTorn.MatchString(line) {
			p.Add(tool.Truncated, n, "the row ends before its end")
		} else if !noteComplaint(n, line, &p) {
			none = none || migNone.MatchString(line)
		}
		if strings.HasPrefix(line, "|") || strings.HasPrefix(line, "+") {
			last = line
		}
	})
	switch {
	case tables == 0 && !none:
		return MIG{}, p, errMIG
	case tables > 0 && !strings.HasPrefix(last, "+"):
		p.Add(tool.Truncated, 0, "the table ends without its last line")
	}
	return v, p, nil
}

// list is where the rows below a title go.
func (v *MIG) list(of, what string) *[]MIGPart {
	switch {
	case of == "GPU" && what == "instances":
		return &v.GPUInstances
	case of == "GPU":
		return &v.GPUProfiles
	case what == "instances":
		return &v.ComputeInstances
	}
	return &v.ComputeProfiles
}

// row adds the part that a row is to the list that it stands in.
func (v *MIG) row(n int, m []string, into *[]MIGPart, p *tool.Problems) {
	part, err := migPartOf(m, into == &v.GPUInstances || into == &v.ComputeInstances, into == &v.GPUProfiles)
	if err != nil {
		p.Add(tool.Inconsistent, n, "%v", err)
		return
	}
	*into = append(*into, part)
}

// migPartOf makes a part of a row: behind the profile there is "3  4:2" of an
// instance, "7/7  4.75  No  14" of the profile of a GPU instance, and "0/3  14" of
// that of a compute instance.
func migPartOf(m []string, instance, ofGPU bool) (MIGPart, error) {
	gpu, err := strconv.Atoi(m[1])
	if err != nil {
		return MIGPart{}, err
	}
	part := MIGPart{GPU: gpu, Instance: parseWhole(m[2]), Profile: m[3]}
	if id := parseWhole(m[4]); id != nil {
		part.ID = *id
	}
	words := append(strings.Fields(m[5]), "", "", "", "")
	if instance {
		start, size, _ := strings.Cut(words[1], ":")
		part.Number, part.Start, part.Size = parseWhole(words[0]), parseWhole(start), parseWhole(size)
		return part, nil
	}
	free, total, _ := strings.Cut(words[0], "/")
	part.Free, part.Total, part.SMs = parseWhole(free), parseWhole(total), parseWhole(words[1])
	if ofGPU {
		part.Memory, _ = parseNumber(words[1])
		part.SMs = parseWhole(words[3])
	}
	return part, nil
}

// parseWhole returns a number without a unit, or nil.
func parseWhole(s string) *int64 {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return nil
	}
	return &v
}

// Summary is a line for each instance, and one for the profiles.
func (v MIG) Summary() []string {
	out := []string{fmt.Sprintf("%d GPU instances, %d compute instances, %d profiles", len(v.GPUInstances), len(v.ComputeInstances), len(v.GPUProfiles)+len(v.ComputeProfiles))}
	for _, p := range v.GPUInstances {
		line := fmt.Sprintf("GPU %d: %s", p.GPU, p.Profile)
		if p.Number != nil {
			line += fmt.Sprintf(", instance %d", *p.Number)
		}
		out = append(out, line)
	}
	return out
}
